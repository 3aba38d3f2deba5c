"""How much is remembered: counts by kind, sizes, from when to when, and the sections of the profile."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import apsw

from convmem.domain import Access, Answer
from convmem.limits import LIST_ENTRIES_MAX, STATISTICS_CODE_POINTS_MAX
from convmem.memory import queries
from convmem.memory.inputs import MemoryStats
from convmem.messages import queries as messages
from convmem.quoting import cut, moment

# What the store says of its size, and how it is called here.
SIZES = {"log_bytes": "log", "index_bytes": "index", "search_bytes": "search"}


async def memory_stats(access: Access, ask: MemoryStats) -> Answer:
    """{preferences, preferences_by_category, lessons, captured{kind: n}, messages, sessions, sizes{log, index, search:
    bytes}, preference_times, lesson_times, message_times{oldest_at?, newest_at?}, sections[{section, code_points,
    updated_at}], more?{sections}}; `more` counts the sections that are not listed.
    """
    facts = await access.read(_counted)
    health = access.health()
    facts["sizes"] = {name: health[field] for field, name in SIZES.items() if field in health}
    return Answer(facts, _text(facts))


def _counted(connection: apsw.Connection) -> dict[str, Any]:
    own, all_messages = queries.totals(connection), messages.totals(connection)
    listed = islice(queries.sections(connection), LIST_ENTRIES_MAX)
    more = own.sections - LIST_ENTRIES_MAX
    facts = {
        "preferences": own.preferences,
        "preferences_by_category": dict(queries.category_totals(connection)),
        "lessons": own.lessons,
        "captured": dict(messages.capture_totals(connection)),
        "messages": all_messages.live,
        "sessions": all_messages.sessions,
        "preference_times": _times(*queries.preference_times(connection)),
        "lesson_times": _times(*queries.lesson_times(connection)),
        "message_times": _times(*messages.times(connection)),
        "sections": [
            {"section": found.section, "code_points": len(found.content), "updated_at": found.updated_at}
            for found in listed
        ],
    }
    return {**facts, "more": {"sections": more}} if more > 0 else facts


def _times(oldest_at: int | None, newest_at: int | None) -> dict[str, int]:
    times = {"oldest_at": oldest_at, "newest_at": newest_at}
    return {name: at_ms for name, at_ms in times.items() if at_ms is not None}


def _text(facts: Mapping[str, Any]) -> str:
    """The page; names of sections are the only thing on it that was stored."""
    categories = _listed(facts["preferences_by_category"])
    more = facts.get("more", {}).get("sections", 0)
    lines = [
        f"Preferences: {facts['preferences']}{categories}{_span(facts['preference_times'])}",
        f"Lessons: {facts['lessons']}{_span(facts['lesson_times'])}",
        f"Messages: {facts['messages']} in {facts['sessions']} sessions{_span(facts['message_times'])}",
        f"Captured by hooks: {sum(facts['captured'].values())}{_listed(facts['captured'])}",
        "Bytes on disk: " + ", ".join(f"{name} {size:,}" for name, size in facts["sizes"].items()),
        f"Profile sections: {len(facts['sections']) + more}",
    ]
    sizes = [f"{found['section']} ({found['code_points']:,} characters)" for found in facts["sections"]]
    room = STATISTICS_CODE_POINTS_MAX - len("\n".join(lines)) - len("\n> ")
    return "\n".join([*lines, *([f"> {_as_many(sizes, more, room)}"] if sizes else [])])


def _listed(counts: Mapping[str, int]) -> str:
    known = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    return f" ({known})" if known else ""


def _span(times: Mapping[str, int]) -> str:
    return f", {moment(times['oldest_at'])} to {moment(times['newest_at'])}" if times else ""


def _as_many(texts: list[str], more: int, room: int) -> str:
    """As many as find room, and how many did not, with those that are not among them."""
    for count in range(len(texts), 0, -1):
        left_out = len(texts) - count + more
        line = ", ".join(texts[:count]) + (f" … and {left_out} more" if left_out else "")
        if len(line) <= room:
            return line
    return cut(texts[0], room)
