"""Times of other programs as ms since the Unix epoch, whatever they are written as, and the same in every time zone.

Numbers are seconds up to 1e11 and ms beyond, as text too. A date alone is its midnight in UTC; a time without a zone is
UTC: nobody knows where it was written, and a rule that depends on the machine would give two imports two times.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from convmem.limits import TIME_MS_MAX

# Larger numbers are ms: as seconds this one is in the year 5138.
SECONDS_MAX = 1e11
NUMBER = re.compile(r"-?[0-9]{1,16}(\.[0-9]{1,12})?")
# RFC 3339, more digits of a second than Python takes, and the end of a day (ISO 8601) as 24:00.
STAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,12}))?)?\s*(Z|z|[+-]\d{2}:?\d{2})?)?"
)


def at_ms(value: Any) -> int | None:
    """A time of a source in ms; None if it says none, or none that we can hold (from 1970 on)."""
    if isinstance(value, str):
        text = value.strip()
        return _of_number(float(text)) if NUMBER.fullmatch(text) else _of_stamp(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _of_number(value)


def _of_number(value: float) -> int | None:
    # Not a number is neither less nor greater.
    if not 0 < value < 1e15:
        return None
    ms = round(value if value > SECONDS_MAX else value * 1000)
    return ms if 0 < ms <= TIME_MS_MAX else None


def _of_stamp(text: str) -> int | None:
    found = STAMP.fullmatch(text)
    if found is None:
        return None
    date, hour, minute, second, fraction, zone = found.groups()
    is_end_of_day = hour == "24" and (minute, second or "00", (fraction or "").strip("0")) == ("00", "00", "")
    clock = "00:00:00" if hour is None or is_end_of_day else f"{hour}:{minute}:{second or '00'}"
    try:
        moment = datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=UTC)
        if zone not in (None, "Z", "z"):
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            moment += offset if zone[0] == "-" else -offset
        ms = round(moment.timestamp()) * 1000 + (86_400_000 if is_end_of_day else 0)
    except (ValueError, OverflowError):
        return None
    ms += int(f"{fraction or '0':0<3}"[:3])
    return ms if 0 < ms <= TIME_MS_MAX else None
