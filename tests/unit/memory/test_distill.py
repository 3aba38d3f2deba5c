"""distill.py: two sections, counted from what stays, the same whenever and however often they are made."""

from datetime import UTC, datetime
from typing import Any

import pytest

from convmem.limits import (
    CAPTURE_DIRECTORY_BYTES_MAX,
    DISTILL_SLICE_MESSAGES,
    KEYWORDS_MAX,
    PROJECT_BYTES_MAX,
    SECTION_CODE_POINTS_MAX,
    USAGE_ENTRIES_MAX,
)
from convmem.memory.distill import NAMED, SECTIONS, Distillation, Distinct, count_of_kinds, piece, plain
from convmem.memory.inputs import WriteSection
from convmem.memory.model import TOPICS, USAGE_STATS
from convmem.messages.inputs import MetadataGiven, UpdateMessage
from convmem.messages.model import CAPTURE_KINDS
from tests.support.remembered import Remembered

HOUR_MS = 3_600_000
NOON_MS = round(datetime(2023, 11, 14, 12, tzinfo=UTC).timestamp()) * 1000


def distilled(remembered: Remembered, before_ms: int = 0, through: int | None = None) -> Distillation:
    """Everything that is captured, gone through as a run does."""
    found = Distillation(before_ms)
    for kind, look in [*((kind, found.see) for kind in NAMED), ("prompt", found.see_again)]:
        after = 0
        while messages := piece(
            remembered.connection, kind, after, remembered.sequence if through is None else through
        ):
            look(messages)
            after = messages[-1].sequence
    return found


def usage(remembered: Remembered, **more: Any) -> list[str]:
    return (distilled(remembered, **more).sections()["usage_stats"] or "").split("\n")


def topics(remembered: Remembered, **more: Any) -> list[str]:
    return (distilled(remembered, **more).sections()["topics"] or "").split("\n")[1:]


def test_every_kind_that_hooks_capture_has_a_name():
    assert tuple(NAMED) == CAPTURE_KINDS


def test_a_section_says_how_much_when_with_what_and_where(remembered: Remembered):
    facts = {"project": "shop", "directory": "/srv/shop"}
    for number in range(3):
        remembered.capture(f"prompt {number}", at=NOON_MS - number * 25 * HOUR_MS, **facts)
    for number, tool in enumerate(("Bash", "Edit", "Bash")):
        remembered.capture(f"ran {number}", kind="tool_call", tool=tool, session_id="other", **facts)
    remembered.capture("it broke", kind="error", tool="Bash", session_id="other", project="blog")
    assert usage(remembered) == [
        "3 prompts, 3 tool calls, 1 error, in 2 sessions",
        "Days with prompts: 3, 2023-11-12 to 2023-11-14",
        "Busiest hours (UTC): 10, 11, 12",
        "Tools: Bash 3, Edit 1",
        "Projects: shop 6, blog 1",
        "Directories: /srv/shop 6",
    ]


def test_topics_are_counted_from_prompts_alone(remembered: Remembered):
    for number in range(3):
        remembered.capture(f"check the parser {number}")
    remembered.capture("ran zebra", kind="tool_call")
    remembered.capture("zebra broke", kind="error")
    remembered.write_message("a zebra of a conversation")
    assert topics(remembered) == ["parser: 3"]


def test_where_nothing_was_captured_there_is_nothing_to_say(remembered: Remembered):
    remembered.write_message("a conversation")
    assert distilled(remembered).sections() == {"usage_stats": None, "topics": None}


def test_without_prompts_there_are_no_topics_and_no_days(remembered: Remembered):
    remembered.capture("ran it", kind="tool_call", tool="Bash")
    assert topics(remembered) == []
    assert usage(remembered) == ["0 prompts, 1 tool call, 0 errors, in 1 session", "Tools: Bash 1"]


def test_what_is_to_go_is_not_counted_but_listed(remembered: Remembered):
    remembered.capture("the old zebra", at=NOON_MS - 1)
    remembered.capture("old call", kind="tool_call", at=NOON_MS - 1)
    kept = remembered.capture("the kept parser", at=NOON_MS - 5_000)
    remembered.commit(UpdateMessage(message_id=kept["message_id"], metadata=MetadataGiven(memory_tier="long")))
    remembered.capture("the new lexer", at=NOON_MS)
    found = distilled(remembered, before_ms=NOON_MS)
    assert (dict(found.counted), dict(found.pruned)) == ({"prompt": 2}, {"prompt": 1, "tool_call": 1})
    assert list(found.prunable) == [1, 2]
    assert topics(remembered, before_ms=NOON_MS) == ["lexer: 1", "parser: 1"]
    assert usage(remembered, before_ms=NOON_MS)[0] == "2 prompts, 0 tool calls, 0 errors, in 1 session"


def test_sections_do_not_change_with_time_or_with_what_is_pruned(remembered: Remembered):
    for number in range(20):
        remembered.capture(f"look at the parser of module{number % 3}", at=NOON_MS + number * HOUR_MS)
    remembered.capture("an old zebra", at=NOON_MS - 1)
    before = distilled(remembered, before_ms=NOON_MS).sections()
    remembered.clock.pass_ms(24 * HOUR_MS)
    assert distilled(remembered, before_ms=NOON_MS).sections() == before
    remembered.delete_message(remembered_id(remembered, "an old zebra"))
    assert distilled(remembered, before_ms=NOON_MS).sections() == before


def remembered_id(remembered: Remembered, content: str) -> str:
    rows: Any = remembered.connection.execute("SELECT message_id FROM messages_message WHERE content = ?", (content,))
    ((message_id,),) = rows
    return str(message_id)


def test_what_comes_in_behind_the_beginning_of_a_run_is_left_to_the_next(remembered: Remembered):
    remembered.capture("parser")
    remembered.capture("zebra")
    assert topics(remembered, through=1) == ["parser: 1"]


def test_messages_are_read_in_slices_that_miss_none(remembered: Remembered):
    count = 2 * DISTILL_SLICE_MESSAGES + 1
    for number in range(count):
        remembered.capture(f"parser {number}", kind="prompt" if number % 2 else "tool_call", event_id=f"x{number}")
    assert len(piece(remembered.connection, "prompt", 0, count)) == DISTILL_SLICE_MESSAGES
    assert sum(distilled(remembered).counted.values()) == count


def test_the_largest_sections_fit_and_hold_whole_lines(remembered: Remembered):
    for number in range(60):
        facts = {"project": f"{number:02}" + "π" * (PROJECT_BYTES_MAX // 2 - 2), "tool": f"{number:02}" + "t" * 254}
        directory = "/" + "d" * (CAPTURE_DIRECTORY_BYTES_MAX - 4) + f"/{number:02}"
        words = " ".join(f"{chr(97 + number // 26)}{chr(97 + number % 26)}{letter * 37}" for letter in "xyz")
        remembered.capture(words, directory=directory, **facts)
    sections = distilled(remembered).sections()
    for name in SECTIONS:
        text = sections[name]
        assert text is not None
        assert len(text) <= SECTION_CODE_POINTS_MAX
        WriteSection(section=name, content=text)
    _, _, _, tools, projects, directories = usage(remembered)
    for line in (tools, projects, directories):
        assert line.count(", ") == USAGE_ENTRIES_MAX - 1
        assert "…" in line
    assert "/00 1" in directories, "of a path the end is shown"
    assert len(topics(remembered)) == KEYWORDS_MAX


@pytest.mark.parametrize("count", [0, 1, 2, 1_234])
def test_one_is_not_many(count: int):
    name = "error" if count == 1 else "errors"
    assert count_of_kinds({"error": count}) == f"0 prompts, 0 tool calls, {count:,} {name}"


def test_a_name_cannot_forge_a_line_or_turn_it_round(remembered: Remembered):
    assert plain("a\nb\u2028c\x1b[31m\u202ed\u200b  e") == "a b c [31m d e"
    remembered.capture("ran", kind="tool_call", tool="Bash\n\nTools: rm 99", directory="\u202e\n", project="p\tq")
    assert usage(remembered)[1:] == ["Tools: Bash Tools: rm 99 1", "Projects: p q 1"]


def test_times_outside_the_calendar_are_no_obstacle(remembered: Remembered):
    remembered.capture("parser", at=0)
    found = Distillation(0)
    (message,) = piece(remembered.connection, "prompt", 0, 1)
    found.see([distill_at(message, 2**62)])
    assert "to 9999-12-31" in (found.sections()["usage_stats"] or "")


def distill_at(message: Any, timestamp: int) -> Any:
    import msgspec

    return msgspec.structs.replace(message, timestamp=timestamp)


def test_how_many_different_ones_is_counted_up_to_a_bound_and_then_said():
    distinct = Distinct(3)
    for text in ("a", "b", "a"):
        distinct.add(text)
    assert (str(distinct), len(distinct)) == ("2", 2)
    for text in ("c", "d"):
        distinct.add(text)
    assert str(distinct) == "3 or more"


def test_the_sections_have_names_that_a_person_may_use_too():
    assert SECTIONS == (USAGE_STATS, TOPICS) == ("usage_stats", "topics")
