"""The lines of a spool, read as what they may be: whole events, what a killed writer left of one, or too old to matter.

A line is an event as it is sent. One that holds none spoils nothing but itself: it is passed over and counted.
"""

from convmem import strict_json
from convmem.limits import SPOOL_AGE_MS_MAX, SPOOL_LINE_BYTES_MAX

BREAK = b"\n"


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
    try:
        at = strict_json.parse(text)["at"]
    except (ValueError, TypeError, KeyError):
        return None
    return at if isinstance(at, int) else None


def _event(text: bytes, now_ms: int) -> bytes | None:
    """The event of a line; None if the line holds none, or one that happened too long ago."""
    at = time_of(text) if len(text) <= SPOOL_LINE_BYTES_MAX else None
    return text if at is not None and now_ms - at <= SPOOL_AGE_MS_MAX else None
