"""`like`: a text against a pattern, in Python and in SQL, with the same answer.

`%` stands for any characters, `_` for one, `\\` makes the next character an ordinary one. Letters A to Z match in
either case, no others: that is what SQLite's LIKE does, and what people know.

SQLite's LIKE reads a text only up to its first U+0000. So where a text or the pattern holds one, another character
takes its place on both sides, one that the pattern does not hold.

Rejected: a regular expression (may take exponential time), and a Python function for SQLite (holds up all others).
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final, NamedTuple

# SQLite folds these and no other.
_FOLD: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_FIRST_PRIVATE_CODE_POINT = 0xF0000
# U+0000 has no literal in SQL that `replace` sees, so it is replaced as JSON writes it, once `\\` cannot be mistaken.
_WITHOUT_NUL = r"json_extract(replace(replace(json_quote(replace({0}, ?, ?)), '\\', '\u005c'), '\u0000', ?), '$')"


class _Sign(NamedTuple):
    """One place of a pattern: `%`, `_`, or a character as it stands."""

    is_many: bool = False
    is_one: bool = False
    character: str = ""


@lru_cache(maxsize=256)
def _signs(pattern: str) -> tuple[_Sign, ...]:
    return tuple(_read(iter(pattern.translate(_FOLD))))


def _read(characters: Iterator[str]) -> Iterator[_Sign]:
    for character in characters:
        if character == "\\":
            yield _Sign(character=next(characters))
        else:
            yield _Sign(is_many=character == "%", is_one=character == "_", character=character)


def is_like(text: str, pattern: str) -> bool:
    """True if the whole text is like the pattern. At most len(text) * len(pattern) steps."""
    signs, text = _signs(pattern), text.translate(_FOLD)
    at = sign = 0
    # Where the last `%` stands, and up to where it has been taken to reach: only that one is ever tried again.
    many, reached = -1, 0
    while at < len(text):
        if sign < len(signs) and signs[sign].is_many:
            many, reached = sign, at
            sign += 1
        elif sign < len(signs) and (signs[sign].is_one or signs[sign].character == text[at]):
            at, sign = at + 1, sign + 1
        elif many >= 0:
            reached += 1
            at, sign = reached, many + 1
        else:
            return False
    return all(left.is_many for left in signs[sign:])


def condition(value: str, pattern: str) -> tuple[str, list[Any]]:
    """The same as SQL on an expression that is a text: a condition and its bindings."""
    stand_in, other = (character for character, _ in zip(_unused(pattern), range(2), strict=False))
    otherwise = "''" if "\0" in pattern else value
    subject = f"CASE WHEN instr({value}, char(0)) THEN {_WITHOUT_NUL.format(value)} ELSE {otherwise} END"
    return f"{subject} LIKE ? ESCAPE '\\'", [stand_in, other, stand_in, pattern.replace("\0", stand_in)]


def _unused(pattern: str) -> Iterator[str]:
    """Characters of private use that the pattern does not hold."""
    return (chr(point) for point in count(_FIRST_PRIVATE_CODE_POINT) if chr(point) not in pattern)
