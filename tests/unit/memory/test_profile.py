"""memory/profile: sections, the surest preferences, the newest lessons, whatever they hold."""

import pytest

from convmem.limits import PROFILE_SECTIONS_MAX
from tests.support.memory_tools import HOSTILE, ask, is_fenced, result_bytes
from tests.support.remembered import Remembered


async def test_nothing_stored_is_said_plainly(remembered: Remembered):
    reply = await ask(remembered, "get_profile")
    assert reply.text == "Nothing is stored about the user yet."
    assert reply.facts == {"sections": [], "preferences": [], "lessons": []}


async def test_the_profile_shows_15_preferences_by_confidence_then_recency_and_5_lessons(remembered: Remembered):
    for number in range(20):
        remembered.remember(key=f"key {number}")
        remembered.save_lesson(situation=f"situation {number}")
    for number in (3, 7, 3):
        remembered.remember(key=f"key {number}")
    remembered.write_section("identity", "Works on clocks.")
    facts = (await ask(remembered, "get_profile")).facts
    keys = [found["key"] for found in facts["preferences"]]
    assert keys == ["key 3", "key 7", *(f"key {number}" for number in range(19, 6, -1) if number != 7), "key 6"]
    assert [found["situation"] for found in facts["lessons"]] == [f"situation {number}" for number in range(19, 14, -1)]
    assert [found["section"] for found in facts["sections"]] == ["identity"]
    assert facts["more"] == {"preferences": 5, "lessons": 15}


async def test_a_project_s_own_come_before_those_of_none_and_others_never(remembered: Remembered):
    for number, project in enumerate(("shop", None, "clock", None, "shop")):
        label = {"project": project} if project else {}
        remembered.remember(key=f"key {number}", **label)
        remembered.save_lesson(situation=f"situation {number}", **label)
    facts = (await ask(remembered, "get_profile", project="shop")).facts
    for name in ("preferences", "lessons"):
        assert [found.get("project") for found in facts[name]] == ["shop", "shop", None, None]
    assert "more" not in facts
    everything = await ask(remembered, "get_profile")
    assert len(everything.facts["preferences"]) == 5
    assert everything.text.count("; project clock)") == 2


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
async def test_a_full_profile_of_any_text_stays_inside_its_quotations_and_bounds(remembered: Remembered, text: str):
    for number in range(PROFILE_SECTIONS_MAX):
        remembered.write_section(f"section_{number:02}", (text * 40)[:4_000])
    for number in range(15):
        remembered.remember(key=f"{number} {text.replace(chr(0), '')}"[:200], value=(text * 40)[:2_000])
        remembered.save_lesson(situation=f"{number} {text}"[:1_000], mistake=text[:1_000], correction=text[:1_000])
    reply = await ask(remembered, "get_profile")
    assert is_fenced(reply.text), reply.text
    assert 2_000 < len(reply.text) <= 3_000
    assert result_bytes(reply) <= 64 * 1024
    assert {"[profile]", "[preferences]", "[lessons]"} <= set(reply.text.split("\n"))
    shown = len(reply.facts["sections"]) + reply.facts.get("more", {}).get("sections", 0)
    assert shown == PROFILE_SECTIONS_MAX


async def test_a_short_section_is_whole_though_another_is_as_long_as_may_be(remembered: Remembered):
    remembered.write_section("identity", "Works on clocks.\nLives in Chiang Mai.")
    remembered.write_section("notes", "word " * 800)
    reply = await ask(remembered, "get_profile")
    assert "\n> | Works on clocks.\n> | Lives in Chiang Mai.\n" in reply.text
    assert reply.facts["sections"][1]["content"] == "word " * 800
