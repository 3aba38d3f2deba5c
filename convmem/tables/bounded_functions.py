"""SQL functions that take two long texts, with SQLite's answers and in a time that grows with their length.

SQLite finds, replaces and trims by comparing at each place of one text with all of the other, within one step of its
machine, and between steps alone it asks whether the time is over: a megabyte against a megabyte is half a minute in
which a writer does nothing else. So here each call looks at the time first. What is short is given to SQLite itself, on
a connection that has its own functions; what is long is done in Python, whose search is linear, or refused.

They stay with the connection: SQLite has no way to get its own function of that name back. So they look at the time
only while a statement has one.
"""

from collections.abc import Callable, Mapping
from typing import Any

import apsw

from convmem.limits import LIKE_PATTERN_BYTES_MAX, ROW_DATA_BYTES_MAX
from convmem.tables.likeness import is_like

# What texts may be while a statement works with them, in bytes: a row's data and as much again.
TEXT_BYTES_MAX = 2 * ROW_DATA_BYTES_MAX
# Up to so many pairs of characters SQLite compares them itself: some milliseconds.
PAIRS_MAX = 1 << 22
# Nothing here is linear for these, so that more is refused: tens of milliseconds.
PATCH_PAIRS_MAX = 1 << 29

Look = Callable[[], object]


class TooLong(Exception):
    """Texts that a function would take too long for. The argument is a sentence."""


class BoundedFunctions:
    """The functions of one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._look: Look | None = None
        self._own = apsw.Connection(":memory:")
        self._own.limit(apsw.SQLITE_LIMIT_LENGTH, TEXT_BYTES_MAX)
        self._own.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LIKE_PATTERN_BYTES_MAX)
        for name, (counts, function) in FUNCTIONS.items():
            for count in counts:
                connection.create_scalar_function(name, self._bounded(name, count, function), count, deterministic=True)

    def watch(self, look: Look | None) -> None:
        """From now on call `look` again and again; what it raises ends the statement. None: nothing looks."""
        self._look = look

    def _bounded(self, name: str, count: int, function: "Function") -> Callable[..., Any]:
        sql = f"SELECT {name}({', '.join('?' * count)})"

        def call(*arguments: Any) -> Any:
            self.look()
            if function is _patched or _pairs(*arguments[:2]) > PAIRS_MAX:
                found = function(self, *arguments)
                if found is not _SQLITES_OWN:
                    return found
            return self._own.execute(sql, arguments).fetchall()[0][0]

        return call

    def look(self) -> None:
        """Look at the time."""
        if self._look is not None:
            self._look()


Function = Callable[..., Any]
_SQLITES_OWN = object()


def _pairs(one: Any, other: Any) -> int:
    """How many comparisons two texts, or two blobs, may cost."""
    return len(one) * len(other) if isinstance(one, str | bytes) and isinstance(other, str | bytes) else 0


def _instr(functions: BoundedFunctions, text: Any, part: Any) -> Any:
    if type(text) is not type(part):
        raise TooLong("instr() of a text and a blob that are this long takes too much time")
    return text.find(part) + 1


def _replace(functions: BoundedFunctions, text: Any, old: Any, new: Any) -> Any:
    if not all(isinstance(one, str) for one in (text, old, new)):
        raise TooLong("replace() of blobs that are this long takes too much time")
    if old[:1] in ("", "\0"):
        return text  # As SQLite has it.
    grown = (len(new.encode()) - len(old.encode())) * text.count(old)
    if len(text.encode()) + grown > TEXT_BYTES_MAX:
        raise TooLong("string or blob too big")
    return text.replace(old, new)


def _ltrim(functions: BoundedFunctions, text: Any, characters: Any) -> Any:
    taken = _taken(text, characters)
    return text[next((at for at, one in enumerate(text) if one not in taken), len(text)) :]


def _rtrim(functions: BoundedFunctions, text: Any, characters: Any) -> Any:
    taken = _taken(text, characters)
    return text[: len(text) - next((at for at, one in enumerate(reversed(text)) if one not in taken), len(text))]


def _trim(functions: BoundedFunctions, text: Any, characters: Any) -> Any:
    return _rtrim(functions, _ltrim(functions, text, characters), characters)


def _taken(text: Any, characters: Any) -> frozenset[str]:
    if not isinstance(text, str) or not isinstance(characters, str):
        raise TooLong("trim() of blobs that are this long takes too much time")
    return frozenset(characters.partition("\0")[0])  # As SQLite has it.


def _like(functions: BoundedFunctions, pattern: Any, text: Any, escape: Any = "") -> Any:
    """`text LIKE pattern ESCAPE escape`, in our own spelling of patterns."""
    if not all(isinstance(value, str) for value in (pattern, text, escape)) or len(escape) > 1:
        return _SQLITES_OWN
    if len(pattern.encode()) > LIKE_PATTERN_BYTES_MAX:
        raise TooLong("LIKE or GLOB pattern too complex")
    # SQLite's ends both at U+0000, and nothing is like a pattern that ends in its escape.
    signs, ours = iter(pattern.partition("\0")[0]), ""
    for sign in signs:
        escaped = next(signs, None) if sign == escape else sign if sign == "\\" else ""
        if escaped is None:
            return 0
        ours += f"\\{escaped}" if escaped else sign
    return int(is_like(text.partition("\0")[0], ours, functions.look))


def _glob(functions: BoundedFunctions, pattern: Any, text: Any) -> Any:
    raise TooLong("GLOB of a text this long takes too much time; LIKE does not")


def _patched(functions: BoundedFunctions, target: Any, patch: Any) -> Any:
    if _pairs(target, patch) > PATCH_PAIRS_MAX:
        raise TooLong("json_patch() of texts this long takes too much time; json_set() or data_update does not")
    return _SQLITES_OWN


# By name: with how many arguments, and what is done where they are long. `x LIKE y` is like(y, x).
FUNCTIONS: Mapping[str, tuple[tuple[int, ...], Function]] = {
    "instr": ((2,), _instr),
    "replace": ((3,), _replace),
    "ltrim": ((2,), _ltrim),
    "rtrim": ((2,), _rtrim),
    "trim": ((2,), _trim),
    "like": ((2, 3), _like),
    "glob": ((2,), _glob),
    "json_patch": ((2,), _patched),
}
