"""The lines of a spool, read as what they may be: whole events, what a killed writer left of one, or too old to matter.

A line is an event as it is sent, with one field more: when it was put here. How long it may wait is counted from then,
not from when it happened. A line that holds no event spoils nothing but itself: it is passed over and counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from convmem import strict_json
from convmem.hooks.json_text import encoded
from convmem.limits import SPOOL_AGE_MS_MAX, SPOOL_LINE_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BREAK = b"\n"
SPOOLED_AT = "spooled_at"
# Stands for an event that was dropped before it got here, and is counted as all that hold none.
NO_EVENT = b"{}" + BREAK


def line_of(event: bytes, now_ms: int) -> bytes:
    """The line of an event, one JSON object, that is spooled now."""
    return b'%b,"%b":%d}%b' % (event[:-1], SPOOLED_AT.encode(), now_ms, BREAK)


def sorted_out(data: bytes, events_max: int, now_ms: int, *, is_all: bool) -> tuple[tuple[bytes, ...], int, int]:
    """The events at the start of `data` as they are sent, how many lines among them are spoiled, and where they end.

    A last line without its end was never finished; or, unless this is all there is, the rest of it has not been read.
    """
    events: list[bytes] = []
    spoiled = end = 0
    while end < len(data) and len(events) < events_max:
        found = data.find(BREAK, end)
        if found < 0 and not is_all and end > 0:
            break
        text = data[end : found if found >= 0 else len(data)]
        event = _event(text, now_ms) if found >= 0 else None
        if event is not None:
            events.append(event)
        elif text.strip():
            spoiled += 1
        end += len(text) + (found >= 0)
    return tuple(events), spoiled, end


def time_of(text: bytes) -> int | None:
    """When the event of a line was; None if the line holds none."""
    said = _said(text)
    return None if said is None else said["at"]


def _event(text: bytes, now_ms: int) -> bytes | None:
    """The event of a line; None if the line holds none, or one that has waited too long."""
    said = _said(text) if len(text) <= SPOOL_LINE_BYTES_MAX else None
    if said is None or now_ms - said.get(SPOOLED_AT, said["at"]) > SPOOL_AGE_MS_MAX:
        return None
    if SPOOLED_AT not in said:
        return text
    return encoded({name: value for name, value in said.items() if name != SPOOLED_AT})


def _said(text: bytes) -> Mapping[str, Any] | None:
    """What a line says, with whole numbers for times; None if it holds no event."""
    try:
        said = strict_json.parse(text)
        is_event = all(isinstance(said[name], int) for name in ("at", *({SPOOLED_AT} & said.keys())))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return said if is_event else None
