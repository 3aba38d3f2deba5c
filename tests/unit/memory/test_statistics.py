"""memory/statistics: how much there is, on a page of 1,500 characters."""

import pytest

from convmem.limits import LIST_ENTRIES_MAX, PROFILE_SECTIONS_MAX, REPLY_BYTES_DEFAULT, TIME_MS_MAX
from tests.support.memory_tools import ask, result_bytes
from tests.support.remembered import Remembered

HEALTH = {"status": "ok", "log_bytes": 1_234_567, "index_bytes": 20, "search_bytes": 30, "data_dir": "/secret/place"}


async def test_everything_is_counted_by_kind(remembered: Remembered):
    remembered.health_facts = HEALTH
    remembered.remember()
    remembered.remember(category="language", value="Thai")
    remembered.save_lesson()
    remembered.capture("prompt", at=1_600_000_000_000)
    remembered.capture("error", kind="error")
    remembered.write_message("message")
    remembered.write_section("identity", "Works on clocks.")
    reply = await ask(remembered, "memory_stats")
    facts = reply.facts
    assert (facts["preferences"], facts["lessons"], facts["messages"], facts["sessions"]) == (2, 1, 3, 2)
    assert {name: count for name, count in facts["preferences_by_category"].items() if count} == {
        "coding_pref": 1,
        "language": 1,
    }
    assert facts["captured"] == {"prompt": 1, "tool_call": 0, "error": 1}
    assert facts["sizes"] == {"log": 1_234_567, "index": 20, "search": 30}
    assert facts["message_times"]["oldest_at"] == 1_600_000_000_000 < facts["message_times"]["newest_at"]
    assert facts["preference_times"].keys() == facts["lesson_times"].keys() == {"oldest_at", "newest_at"}
    assert [(found["section"], found["code_points"]) for found in facts["sections"]] == [("identity", 16)]
    assert reply.text.split("\n") == [
        "Preferences: 2 (coding_pref 1, language 1), 2023-11-14T22:13Z to 2023-11-14T22:13Z",
        "Lessons: 1, 2023-11-14T22:13Z to 2023-11-14T22:13Z",
        "Messages: 3 in 2 sessions, 2020-09-13T12:26Z to 2023-11-14T22:13Z",
        "Captured by hooks: 2 (prompt 1, error 1)",
        "Bytes on disk: log 1,234,567, index 20, search 30",
        "Profile sections: 1",
        "> identity (16 characters)",
    ]


async def test_an_empty_store_has_no_times(remembered: Remembered):
    remembered.health_facts = HEALTH
    reply = await ask(remembered, "memory_stats")
    assert reply.facts["message_times"] == reply.facts["preference_times"] == reply.facts["lesson_times"] == {}
    assert reply.text.startswith("Preferences: 0\nLessons: 0\nMessages: 0 in 0 sessions\n")


async def test_no_path_of_the_machine_is_told(remembered: Remembered):
    remembered.health_facts = HEALTH
    reply = await ask(remembered, "memory_stats")
    assert "secret" not in reply.text + repr(reply.facts)


async def test_sections_that_find_no_room_are_counted(remembered: Remembered):
    remembered.health_facts = HEALTH
    for number in range(PROFILE_SECTIONS_MAX):
        remembered.write_section(f"{'s' * 61}_{number:02}", "c" * 4_000)
    reply = await ask(remembered, "memory_stats")
    assert len(reply.facts["sections"]) == PROFILE_SECTIONS_MAX
    assert 1_400 < len(reply.text) <= 1_500
    last = reply.text.split("\n")[-1]
    shown = last.count("(4,000 characters)")
    assert last.endswith(f" … and {PROFILE_SECTIONS_MAX - shown} more")


@pytest.mark.parametrize("count", [LIST_ENTRIES_MAX, LIST_ENTRIES_MAX + 1, 2_000])
async def test_the_list_of_sections_is_bounded_whatever_the_store_holds(count: int):
    remembered = Remembered()
    remembered.health_facts = HEALTH
    remembered.write_section("first", "c" * 4_000)
    remembered.connection.executemany(
        "INSERT INTO memory_section SELECT ?1, ?2, content, created_at, ?3, changed_sequence, device, transport, client"
        " FROM memory_section WHERE sequence = 1",
        [(number, f"{'s' * 58}_{number:05}", TIME_MS_MAX) for number in range(2, count + 1)],
    )
    reply = await ask(remembered, "memory_stats")
    assert len(reply.facts["sections"]) == LIST_ENTRIES_MAX
    assert reply.facts.get("more", {"sections": 0}) == {"sections": count - LIST_ENTRIES_MAX}
    assert ("more" in reply.facts) is (count > LIST_ENTRIES_MAX)
    assert result_bytes(reply) <= REPLY_BYTES_DEFAULT
    assert len(reply.text) <= 1_500
    heading, last = reply.text.split("\n")[-2:]
    assert heading == f"Profile sections: {count}"
    assert last.endswith(f" … and {count - last.count('(4,000 characters)')} more")
