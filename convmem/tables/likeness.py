"""`like`: a text against a pattern, in Python and in SQL, with the same answer.

`%` stands for any characters, `_` for one, `\\` makes the next character an ordinary one. Letters A to Z match in
either case, no others: that is what SQLite's LIKE does, and what people know.

SQLite's LIKE reads a text only up to its first U+0000. So where a text or the pattern holds one, another character
takes its place on both sides, one that the pattern does not hold.

Rejected: a regular expression (may take exponential time), and a Python function for SQLite (holds up all others).
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import count
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

# SQLite folds these and no other.
_FOLD: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_FIRST_PRIVATE_CODE_POINT = 0xF0000
# U+0000 has no literal in SQL that `replace` sees, so it is replaced as JSON writes it, once `\\` cannot be mistaken.
_WITHOUT_NUL = r"json_extract(replace(replace(json_quote(replace({0}, ?, ?)), '\\', '\u005c'), '\u0000', ?), '$')"


# Characters between two `%`, as they stand; None is `_`.
Run = tuple[str | None, ...]
Look = Callable[[], object]
CHARACTERS_BETWEEN_LOOKS = 16_384


def do_not_look() -> None:
    """For whoever has time."""


@lru_cache(maxsize=256)
def _runs(pattern: str) -> tuple[Run, ...]:
    """A pattern taken apart at each `%`."""
    runs: list[list[str | None]] = [[]]
    characters = iter(pattern.translate(_FOLD))
    for character in characters:
        if character == "%":
            runs.append([])
        elif character == "_":
            runs[-1].append(None)
        else:
            runs[-1].append(next(characters) if character == "\\" else character)
    return tuple(map(tuple, runs))


def is_like(text: str, pattern: str, look: Look = do_not_look) -> bool:
    """True if the whole text is like the pattern. The time grows with the text alone; `look` is called meanwhile, and
    may raise.
    """
    first, *others = _runs(pattern)
    text = text.translate(_FOLD)
    if not others:
        return len(text) == len(first) and _stands(text, 0, first)
    *middle, last = others
    end = len(text) - len(last)
    at = len(first)
    if end < at or not _stands(text, 0, first) or not _stands(text, end, last):
        return False
    for run in middle:
        look()
        found = _find(text, run, at, end, look)
        if found < 0:
            return False
        at = found + len(run)
    return True


def _stands(text: str, at: int, run: Run) -> bool:
    """Whether a run of signs is like what stands at a place."""
    return all(sign is None or text[at + number] == sign for number, sign in enumerate(run))


def _find(text: str, run: Run, at: int, end: int, look: Look) -> int:
    """Where a run stands first between two places, -1 if nowhere.

    With `_` in it, all places are followed at once, one bit each (Baeza-Yates and Gonnet, "A new approach to text
    searching", 1992).
    """
    if None not in run:
        return text.find("".join(sign for sign in run if sign is not None), at, end)
    anything = sum(1 << number for number, sign in enumerate(run) if sign is None)
    masks: dict[str, int] = {}
    for number, sign in enumerate(run):
        if sign is not None:
            masks[sign] = masks.get(sign, anything) | 1 << number
    whole, reached = 1 << len(run) - 1, 0
    for place in range(at, end):
        if not place % CHARACTERS_BETWEEN_LOOKS:
            look()
        reached = (reached << 1 | 1) & masks.get(text[place], anything)
        if reached & whole:
            return place - len(run) + 1
    return -1


def condition(value: str, pattern: str) -> tuple[str, list[Any]]:
    """The same as SQL on an expression that is a text: a condition and its bindings."""
    stand_in, other = (character for character, _ in zip(_unused(pattern), range(2), strict=False))
    otherwise = "''" if "\0" in pattern else value
    subject = f"CASE WHEN instr({value}, char(0)) THEN {_WITHOUT_NUL.format(value)} ELSE {otherwise} END"
    return f"{subject} LIKE ? ESCAPE '\\'", [stand_in, other, stand_in, pattern.replace("\0", stand_in)]


def _unused(pattern: str) -> Iterator[str]:
    """Characters of private use that the pattern does not hold."""
    return (chr(point) for point in count(_FIRST_PRIVATE_CODE_POINT) if chr(point) not in pattern)
