"""memory/facts: each record as a program sees it, without what is absent."""

from convmem.memory import queries
from convmem.memory.facts import lesson_facts, preference_facts, section_facts
from tests.support.remembered import LESSON, Remembered


def test_a_preference_shows_what_was_said_where_and_when(remembered: Remembered):
    first = remembered.remember(project="shop")
    known = queries.read_preference(remembered.connection, 1)
    assert known is not None
    facts = preference_facts(known)
    assert facts == {
        "id": first["id"],
        "number": 1,
        "category": "coding_pref",
        "key": "indent",
        "value": "four spaces",
        "confidence": 0.5,
        "source": "explicit",
        "project": "shop",
        "created_at": first["updated_at"],
        "updated_at": first["updated_at"],
        "sequence": "1",
        "origin": {"device": "local", "transport": "test"},
    }
    remembered.remember(project="shop", value="tabs")
    changed = queries.read_preference(remembered.connection, 1)
    assert changed is not None
    assert preference_facts(changed)["previous_value"] == "four spaces"


def test_a_lesson_shows_its_three_texts(remembered: Remembered):
    saved = remembered.save_lesson()
    known = queries.read_lesson(remembered.connection, 1)
    assert known is not None
    facts = lesson_facts(known)
    assert {name: facts[name] for name in LESSON} == LESSON
    assert (facts["id"], facts["number"], facts["sequence"]) == (saved["id"], 1, "1")
    assert "project" not in facts


def test_a_section_shows_all_of_its_content(remembered: Remembered):
    remembered.write_section("identity", "Works on clocks.\n\0")
    known = queries.read_section(remembered.connection, "identity")
    assert known is not None
    facts = section_facts(known)
    assert (facts["section"], facts["content"]) == ("identity", "Works on clocks.\n\0")
    assert facts["created_at"] == facts["updated_at"]
