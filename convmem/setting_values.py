"""How the text of one setting is read: paths, choices, lists, lengths of time, tokens.

A reader takes what was found and returns the value, or raises ValueError with what is wrong with it; whoever asked
completes the sentence with the setting's name and the place where it stands. A text is meant exactly or refused: `6` is
no length of time, since nobody can know six of what.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from convmem import files
from convmem.limits import BACKUP_EVERY_S_MAX, RETENTION_DAYS_MAX, TOKEN_BYTES_MAX

BYTE_ORDER_MARK = "\ufeff".encode()
UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}


class Found(NamedTuple):
    """The text of a setting, where it stands (for people), and the directory that its relative paths start from."""

    text: str
    source: str
    base: Path


class Setting(NamedTuple):
    """One setting. `read` turns the text into the value; the ValueError it may raise is completed with the place."""

    name: str
    flag: str | None
    variable: str
    default: str | None
    meaning: str
    read: Callable[[Found], Any]


def path(found: Found) -> Path:
    """A path, relative to where it is written; ~ is the home directory."""
    if not found.text.strip():
        raise ValueError("is empty")
    return found.base / os.path.expanduser(found.text)


def choice(*allowed: str) -> Callable[[Found], str]:
    """One of a few words, exactly."""

    def read(found: Found) -> str:
        if found.text not in allowed:
            raise ValueError(f"{found.text!r} is none of {', '.join(allowed)}")
        return found.text

    return read


def one(read: Callable[[str], Any]) -> Callable[[Found], Any]:
    """What a reader of plain text makes of it."""
    return lambda found: read(found.text)


def each(read_one: Callable[[str], str]) -> Callable[[Found], tuple[str, ...]]:
    """A list separated by commas, without duplicates; an empty text is an empty list."""

    def read(found: Found) -> tuple[str, ...]:
        if not found.text.strip():
            return ()
        return tuple(dict.fromkeys(read_one(item.strip()) for item in found.text.split(",")))

    return read


def duration_ms(text: str) -> int:
    """A length of time in ms: a whole number and a unit, 90s 30m 6h 1d."""
    found = re.fullmatch(r"([1-9][0-9]{0,8})([smhd])", text)
    if not found:
        raise ValueError(f"{text!r} is no length of time like 90s, 30m, 6h or 1d")
    length_s = int(found[1]) * UNITS_S[found[2]]
    if length_s > BACKUP_EVERY_S_MAX:
        raise ValueError(f"{text!r} is longer than {BACKUP_EVERY_S_MAX // UNITS_S['d']}d")
    return length_s * 1000


def days(text: str) -> int:
    """A number of days, whole and at least one."""
    if not re.fullmatch("[1-9][0-9]{0,8}", text) or int(text) > RETENTION_DAYS_MAX:
        raise ValueError(f"{text!r} is no number of days from 1 to {RETENTION_DAYS_MAX}")
    return int(text)


def whole(least: int, most: int) -> Callable[[Found], int]:
    """A whole number within bounds."""

    def read(found: Found) -> int:
        if not re.fullmatch("[0-9]{1,9}", found.text) or not least <= int(found.text) <= most:
            raise ValueError(f"{found.text!r} is no whole number from {least} to {most}")
        return int(found.text)

    return read


def truth(text: str) -> bool:
    """true or false, as people write them in such files."""
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if text.lower() not in words:
        raise ValueError(f"{text!r} is neither true nor false")
    return words[text.lower()]


def duration_text(length_ms: int) -> str:
    """A length of time as it would be written, in the greatest unit that divides it."""
    unit = next(unit for unit in reversed(UNITS_S) if length_ms % (UNITS_S[unit] * 1000) == 0)
    return f"{length_ms // (UNITS_S[unit] * 1000)}{unit}"


def token(data: bytes) -> bytes:
    """A token is what a client can send in a header (RFC 6750): no blanks around it, no control characters."""
    if not data.removeprefix(BYTE_ORDER_MARK).strip():
        raise ValueError("is blank: no client could send it")
    if data.startswith(BYTE_ORDER_MARK):
        raise ValueError("starts with a byte order mark: save it without one")
    if data != data.strip() or any(byte < 0x20 or byte == 0x7F for byte in data):
        raise ValueError("holds blanks at an end, line breaks or control characters: no client could send it")
    if len(data) > TOKEN_BYTES_MAX:
        raise ValueError(f"is longer than {TOKEN_BYTES_MAX} bytes")
    return data


def token_file(found: Found) -> bytes:
    """Read a token from a file and drop the one line end that an editor leaves."""
    place = path(found)
    try:
        data = files.read_text(place, bytes_max=TOKEN_BYTES_MAX + 3)
    except OSError as error:
        raise ValueError(f"{place} cannot be read: {error.strerror}") from None
    if data is None:
        raise ValueError(f"{place} is not there")
    return token(data[:-2] if data.endswith(b"\r\n") else data.removesuffix(b"\n"))
