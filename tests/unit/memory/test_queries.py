"""What the index answers, in which order, and that no answer costs a walk through everything."""

from typing import Any

import pytest

from convmem.memory import queries
from convmem.memory.model import CATEGORIES, lesson_name, preference_name
from tests.support.manual_clock import START_MS
from tests.support.remembered import LESSON, Remembered

NOBODY = "01HF7YAT00000000000000ZZZZ"


def test_preferences_come_last_stated_first_or_surest_first(remembered: Remembered):
    for key in "abc":
        remembered.remember(key=key)
    remembered.remember(key="a")
    remembered.remember(key="c")
    remembered.remember(key="b", value="other")
    assert [one.key for one in queries.preferences(remembered.connection)] == ["b", "c", "a"]
    assert [one.key for one in queries.surest(remembered.connection)] == ["c", "a", "b"]


def test_lessons_come_newest_first_and_sections_by_name(remembered: Remembered):
    for mistake in "abc":
        remembered.save_lesson(mistake=mistake)
    for section in ("style", "goals", "x_1"):
        remembered.write_section(section, section)
    assert [one.mistake for one in queries.lessons(remembered.connection)] == ["c", "b", "a"]
    assert [one.section for one in queries.sections(remembered.connection)] == ["goals", "style", "x_1"]


def test_a_record_is_found_by_all_it_is_named_by(remembered: Remembered):
    said, learned = remembered.remember(project="p"), remembered.save_lesson(project="p")
    connection = remembered.connection
    preference = queries.read_preference(connection, 1)
    assert preference is not None
    for found in (
        queries.preference_of(connection, "p", "coding_pref", "indent"),
        queries.preference_named(connection, preference_name("p", "coding_pref", "indent")),
        queries.by_number(connection, said["number"]),
        queries.by_id(connection, said["id"]),
    ):
        assert found == preference
    lesson = queries.read_lesson(connection, 2)
    assert lesson is not None
    for learned_again in (
        queries.lesson_of(connection, "p", **LESSON),
        queries.lesson_named(connection, lesson_name("p", **LESSON)),
        queries.by_number(connection, learned["number"]),
        queries.by_id(connection, learned["id"]),
    ):
        assert learned_again == lesson


def test_ids_come_with_the_names_of_their_records(remembered: Remembered):
    said, learned = remembered.remember(project="p"), remembered.save_lesson(project="p")
    connection = remembered.connection
    assert list(queries.preference_ids(connection)) == [
        (said["id"], preference_name("p", "coding_pref", "indent")),
    ]
    assert list(queries.lesson_ids(connection)) == [(learned["id"], lesson_name("p", **LESSON))]


def test_what_is_not_there_is_none(remembered: Remembered):
    remembered.remember(project="p")
    remembered.save_lesson()
    connection = remembered.connection
    assert queries.preference_of(connection, None, "coding_pref", "indent") is None
    assert queries.lesson_of(connection, "p", **LESSON) is None
    assert queries.read_preference(connection, 2) is None
    assert queries.read_lesson(connection, 1) is None
    assert queries.read_section(connection, "goals") is None
    assert queries.by_id(connection, NOBODY) is None
    assert [queries.by_number(connection, number) for number in (0, 3, 2**63 - 1, 2**63, 10**19 - 1)] == [None] * 5


def test_of_several_with_one_id_the_oldest_is_found():
    remembered = Remembered()
    remembered.remember(key="a")
    remembered.remember(key="b")
    remembered.connection.execute("UPDATE memory_preference SET preference_id = ?", (NOBODY,))
    found = queries.by_id(remembered.connection, NOBODY)
    assert found is not None
    assert found.sequence == 1


def test_what_is_searched_is_light_and_whole(remembered: Remembered):
    remembered.remember(key="Ｋ", value="É")
    remembered.save_lesson(project="p", situation="Ä", mistake="b", correction="C")
    remembered.remember(key="k2", value="v")
    remembered.remember(key="Ｋ", value="É")
    assert list(queries.searched(remembered.connection)) == [
        ("preference", 1, None, "k\0é"),
        ("preference", 3, None, "k2\0v"),
        ("lesson", 2, "p", "ä\0b\0c"),
    ]


def test_totals_and_times_are_those_of_what_is_live(remembered: Remembered):
    connection = remembered.connection
    assert queries.totals(connection) == (0, 0, 0)
    assert queries.preference_times(connection) == queries.lesson_times(connection) == (None, None)
    for number, category in enumerate(CATEGORIES):
        remembered.remember(category=category, key=f"k{number % 2}")
        remembered.save_lesson(mistake=category)
        remembered.clock.pass_ms(10)
    remembered.remember(category="other", key="more")
    remembered.remember(category=CATEGORIES[0], key="k0")
    remembered.forget(2)
    remembered.write_section("goals", "x")
    assert queries.totals(connection) == (6, 4, 1)
    assert queries.category_totals(connection) == dict.fromkeys(CATEGORIES, 1) | {"other": 2}
    assert queries.preference_times(connection) == (START_MS, START_MS + 50)
    assert queries.lesson_times(connection) == (START_MS + 10, START_MS + 40)


@pytest.mark.parametrize(
    ("ask", "arguments", "is_walk"),
    [
        (queries.read_preference, (1,), False),
        (queries.read_lesson, (1,), False),
        (queries.read_section, ("x",), False),
        (queries.preference_of, (None, "other", "x"), False),
        (queries.lesson_of, (None, "x", "y", "z"), False),
        (queries.by_number, (1,), False),
        (queries.by_id, ("x",), False),
        (queries.preference_times, (), False),
        (queries.lesson_times, (), False),
        (queries.preferences, (), True),
        (queries.surest, (), True),
        (queries.lessons, (), True),
        (queries.sections, (), True),
        (queries.preference_ids, (), True),
        (queries.lesson_ids, (), True),
        (queries.searched, (), True),
        (queries.totals, (), True),
        (queries.category_totals, (), True),
    ],
)
def test_no_question_sorts_and_only_lists_walk_a_table(ask: Any, arguments: tuple[Any, ...], is_walk: bool):
    remembered = Remembered()
    plans: list[str] = []
    remembered.connection.exec_trace = lambda cursor, sql, bindings: plans.append(sql) or True
    answer = ask(remembered.connection, *arguments)
    if is_walk and not isinstance(answer, tuple | dict):
        list(answer)
    remembered.connection.exec_trace = None
    assert plans
    for sql in plans:
        bindings = ("x",) * sql.count("?")
        steps = remembered.connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()
        said = [str(step[3]) for step in steps]
        assert not [step for step in said if "TEMP B-TREE" in step], sql
        if not is_walk:
            assert not [step for step in said if step.startswith("SCAN") and step != "SCAN CONSTANT ROW"], sql
