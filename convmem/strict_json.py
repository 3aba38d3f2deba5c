"""JSON in: one parser for requests, stdio lines, nested strings and files, and it says no by rule.

Refused: duplicate keys (two readers would see two values), NaN and infinities, bad UTF-8 and lone surrogates, more than
JSON_LEVELS_MAX levels, integers beyond int64, numbers that overflow to infinity. The parser is jiter, which finds
duplicate keys and surrogates while it parses; levels and numbers are walked afterwards.

Rejected: json.loads (last key wins, NaN, surrogates pass, a 5,000-digit integer raises far away from here) and
msgspec.json (last key wins).
"""

from __future__ import annotations

from math import isfinite

import jiter

from convmem.limits import INT64_MAX, INT64_MIN, JSON_LEVELS_MAX

# Importing it takes a quarter of the time that the client for hooks has.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class MalformedJSON(ValueError):
    """The text is no JSON by our rules; the message says why, without repeating the text."""


def parse(data: bytes) -> Any:
    """Return the value of one JSON text in UTF-8 (RFC 8259); MalformedJSON if it breaks a rule above."""
    try:
        value = jiter.from_json(data, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")
    except ValueError as error:
        raise MalformedJSON(_reason(str(error), has_lines=b"\n" in data)) from None
    _walk(value, 1)
    return value


def beginning(data: bytes) -> Any:
    """What the beginning of a JSON text says, as far as it goes: its last member may be missing, or a part of it.

    MalformedJSON if that is no beginning of one. For looking at a file of somebody else: nothing else is checked.
    """
    try:
        return jiter.from_json(data, partial_mode=True, cache_mode="keys")
    except ValueError as error:
        raise MalformedJSON(_reason(str(error), has_lines=True)) from None


def _walk(value: Any, level: int) -> None:
    kind = type(value)
    if kind is int:
        if not INT64_MIN <= value <= INT64_MAX:
            raise MalformedJSON("an integer is beyond 64 bits")
    elif kind is float:
        if not isfinite(value):
            raise MalformedJSON("a number is too large")
    elif kind is dict or kind is list:
        if level > JSON_LEVELS_MAX:
            raise MalformedJSON(f"more than {JSON_LEVELS_MAX} levels")
        for inner in value.values() if kind is dict else value:
            if type(inner) is not str:
                _walk(inner, level + 1)


def _reason(text: str, *, has_lines: bool) -> str:
    """The parser's sentence without the text it quotes (a key may be a secret), nor a line where there is only one: it
    may be a line of something else.
    """
    if text.startswith("Detected duplicate key"):
        return "a key stands twice in one object"
    reason = text.split('"')[0].strip() or "not valid JSON"
    return reason if has_lines else reason.replace(" at line 1 column ", " at column ")
