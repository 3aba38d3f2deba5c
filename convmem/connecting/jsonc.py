"""JSON as people write it into configurations, with comments and trailing commas, and where each part of it stands.

The idea: a text is read into values that know their span, so that an edit can touch one member and nothing else. It is
read strictly where two readers could see two things: a key that stands twice is refused. Comments and commas behind the
last item are taken, since the programs whose files these are take them too.

Rejected: json-five, the one library that writes comments back. It reads JSON5, so it would accept files that their own
programs cannot read, and it makes objects of every blank, which takes seconds for a file of some megabytes.
"""

import re
from typing import Any, NamedTuple

from convmem.connecting.misfits import BYTE_ORDER_MARK, misfit_at
from convmem.limits import CONFIG_LEVELS_MAX

BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
WORD = re.compile(r"[A-Za-z]+")
WORDS = {"true": True, "false": False, "null": None}
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


class Number(NamedTuple):
    """A number as it is written: nothing here counts with it, and 1e400 stays what it is."""

    text: str


class Value(NamedTuple):
    """A value, its span in the text, and what it means. `members` are those of an object, empty for all others."""

    start: int
    end: int
    plain: Any
    members: "tuple[Member, ...]" = ()

    @property
    def is_object(self) -> bool:
        """True for {…}."""
        return isinstance(self.plain, dict)

    def member(self, key: str) -> "Member | None":
        """The member of that key."""
        return next((member for member in self.members if member.key == key), None)


class Member(NamedTuple):
    """A key with its value; `start` is where the key's quote stands."""

    key: str
    start: int
    value: Value


def parse(text: str) -> Value:
    """Return the one value of a text; Misfit if it is none, or if a key stands twice in an object."""
    reader = _Reader(text)
    value = reader.value(reader.skip(len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0), 1)
    if (end := reader.skip(value.end)) < len(text):
        raise misfit_at(text, end, "nothing may stand behind the value")
    return value


def skip_blank(text: str, offset: int) -> int:
    """The offset behind all blanks and comments from here on."""
    found = BLANK.match(text, offset)
    assert found is not None
    return found.end()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, offset: int) -> int:
        end = skip_blank(self._text, offset)
        if self._text.startswith("/*", end):
            raise misfit_at(self._text, end, "the comment does not end")
        return end

    def value(self, start: int, level: int) -> Value:
        text = self._text
        first = text[start : start + 1]
        if first in ("{", "["):
            if level > CONFIG_LEVELS_MAX:
                raise misfit_at(text, start, f"more than {CONFIG_LEVELS_MAX} levels")
            return self._object(start, level) if first == "{" else self._array(start, level)
        if first == '"':
            return self._string(start)
        if found := NUMBER.match(text, start):
            return Value(start, found.end(), Number(found[0]))
        if (found := WORD.match(text, start)) and found[0] in WORDS:
            return Value(start, found.end(), WORDS[found[0]])
        raise misfit_at(text, start, "a value is missing" if first in ("", "}", "]", ",") else "not a value of JSON")

    def _string(self, start: int) -> Value:
        found = STRING.match(self._text, start)
        if not found:
            raise misfit_at(self._text, start, "the string does not end on its line, or holds what JSON does not know")
        return Value(start, found.end(), _unescaped(found[0][1:-1]))

    def _array(self, start: int, level: int) -> Value:
        items = []
        offset = self.skip(start + 1)
        while not self._text.startswith("]", offset):
            item = self.value(offset, level + 1)
            items.append(item.plain)
            offset = self._behind(item.end, "]")
        return Value(start, offset + 1, items)

    def _object(self, start: int, level: int) -> Value:
        members: list[Member] = []
        plain: dict[str, Any] = {}
        offset = self.skip(start + 1)
        while not self._text.startswith("}", offset):
            if not self._text.startswith('"', offset):
                raise misfit_at(self._text, offset, "a key in double quotes is missing")
            key = self._string(offset)
            if key.plain in plain:
                raise misfit_at(self._text, offset, f"the key {key.plain!r} stands here a second time")
            colon = self.skip(key.end)
            if not self._text.startswith(":", colon):
                raise misfit_at(self._text, colon, "a colon is missing behind the key")
            value = self.value(self.skip(colon + 1), level + 1)
            members.append(Member(key.plain, offset, value))
            plain[key.plain] = value.plain
            offset = self._behind(value.end, "}")
        return Value(start, offset + 1, plain, tuple(members))

    def _behind(self, end: int, closing: str) -> int:
        """The offset of the next item, or of what closes."""
        offset = self.skip(end)
        if self._text.startswith(",", offset):
            return self.skip(offset + 1)
        if not self._text.startswith(closing, offset):
            raise misfit_at(self._text, offset, f"a comma or {closing} is missing")
        return offset


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else ESCAPED[found[2]], text)
    # Two escapes of a pair are one character; half a pair stays as it is, as JavaScript reads it.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
