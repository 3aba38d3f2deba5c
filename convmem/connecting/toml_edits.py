"""Putting one table into a TOML text, or taking it out, by the lines it stands on: all other bytes stay.

The idea: tomllib is the judge of what a text means, before and after; here a text is only cut into its statements (the
header of a table, or a key with its value) with their lines and full keys. A table that is new goes to the end of the
file, where a header is always allowed; what stands between its lines is its own, a comment behind its last line is not.

Rejected: tomlkit. It gives a comment above a table to the table before it, so taking ours out took comments of others
along; it writes LF into files with CRLF, and cannot read a byte order mark.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from convmem.connecting.misfits import BYTE_ORDER_MARK, Misfit, misfit_at

BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\n]*?)?(?:\r?\n|\Z)")
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
STRINGS = (
    re.compile(r'"""(?:[^\\"]|\\.|"(?!""))*"{3,5}', re.DOTALL),
    re.compile(r"'''(?:[^']|'(?!''))*'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
PLACE = re.compile(r" \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)")
Path = tuple[str, ...]


class Statement(NamedTuple):
    """A header or a key with its value. `start` to `stop`: its whole lines; `value`: the span of its value."""

    kind: Literal["table", "array", "value"]
    path: Path
    start: int
    stop: int
    value: tuple[int, int]


def parse(text: str) -> dict[str, Any]:
    """What a text means, floats as they are written; Misfit if it is no TOML."""
    marks = text.startswith(BYTE_ORDER_MARK)
    try:
        return tomllib.loads(text[marks:], parse_float=lambda written: ("float", written))
    except tomllib.TOMLDecodeError as error:
        found = PLACE.search(str(error))
        message = PLACE.sub("", str(error))
        if found and found[1]:
            raise Misfit(message, int(found[1]), int(found[2])) from None
        raise misfit_at(text, len(text), message) from None
    except RecursionError:
        raise misfit_at(text, 0, "too many levels") from None


def value_at(text: str, path: Path) -> Any:
    """What stands at `path`, None if nothing does. Misfit if something on the way is no table."""
    value: Any = parse(text)
    for depth, key in enumerate(path):
        if not isinstance(value, dict):
            raise misfit_at(text, _place(text, path[:depth]), f"{'.'.join(path[:depth])} is no table")
        if key not in value:
            return None
        value = value[key]
    return value


def merged(text: str, path: Path, wanted: Mapping[str, Any], ours: frozenset[str]) -> str:
    """The text with `wanted` in the table at `path`; of what stands there the keys in `ours` go, others stay.

    Misfit if the text is no TOML, or writes the table in a way that cannot be added to.
    """
    found = value_at(text, path)
    if found is None:
        return _appended(text, path, wanted)
    headers = [one for one in statements(text) if one.path == path and one.kind == "table"]
    if not isinstance(found, dict) or not headers:
        if isinstance(found, dict) and set(found) - ours:
            message = f"write this as a table [{'.'.join(path)}] of its own, or take it out with --remove first"
            raise misfit_at(text, _place(text, path), message)
        return _appended(take(text, path), path, wanted)
    for key in found:
        if key in ours and key not in wanted:
            text = take(text, (*path, key))
    for key, value in wanted.items():
        if found.get(key) != value:
            text = _set(text, path, key, value)
    return text


def take(text: str, path: Path) -> str:
    """The text without what stands at `path`; itself if nothing does. Misfit if it stands inside an inline table."""
    if value_at(text, path) is None:
        return text
    spans: list[tuple[int, int, bool]] = []
    was_owned = False
    for one in statements(text):
        owned = one.path[: len(path)] == path
        if owned and was_owned:
            spans[-1] = (spans[-1][0], one.stop, spans[-1][2])
        elif owned:
            spans.append((one.start, one.stop, one.kind != "value"))
        was_owned = owned
    if not spans:
        raise misfit_at(text, _place(text, path), f"{'.'.join(path)} stands inside an inline table: change it by hand")
    for start, stop, is_a_table in reversed(spans):
        text = (_without_gap(text[:start], text[start:stop]) if is_a_table else text[:start]) + text[stop:]
    return text


def _without_gap(before: str, table: str) -> str:
    """What stands before a table, without the empty line that `merged` puts between; nor the line end of a last line
    that had none, which shows in the table's having none.
    """
    bare = _without_line_end(before)
    if bare.removeprefix(BYTE_ORDER_MARK) and not bare.endswith("\n"):
        return before
    return bare if table.endswith("\n") else _without_line_end(bare)


def _without_line_end(text: str) -> str:
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def _appended(text: str, path: Path, wanted: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = snippet(path, wanted).removesuffix("\n").replace("\n", newline)
    if text in ("", BYTE_ORDER_MARK):
        return text + lines + newline
    # An empty line between; the last line gets an end if it had none, and then ours has none.
    added = newline + lines + newline if text.endswith("\n") else newline * 2 + lines
    try:
        parse(text + added)
    except Misfit:
        message = f"this leaves no room for a table [{'.'.join(path)}]: write it as tables with headers"
        raise misfit_at(text, _place(text, path), message) from None
    return text + added


def snippet(path: Path, wanted: Mapping[str, Any]) -> str:
    """The table on its own, as it goes into a file with LF."""
    header = ".".join(key if BARE_KEY.fullmatch(key) else _written(key) for key in path)
    return f"[{header}]\n" + "".join(f"{key} = {_written(value)}\n" for key, value in wanted.items())


def _written(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        # JSON's escapes are TOML's too, but for DEL, which JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(_written, value))}]"


def _set(text: str, path: Path, key: str, value: Any) -> str:
    """The text with one key of the table at `path`, which has a header."""
    own = next((one for one in statements(text) if one.path == (*path, key) and one.kind == "value"), None)
    if own:
        return text[: own.value[0]] + _written(value) + text[own.value[1] :]
    text = take(text, (*path, key))
    at, is_inside = None, False
    for one in statements(text):
        is_inside = one.path == path if one.kind == "table" else is_inside and one.kind == "value"
        at = one if is_inside else at
    assert at is not None
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"{key} = {_written(value)}"
    before = text[: at.stop]
    return before + (line + newline if before.endswith("\n") else newline + line) + text[at.stop :]


def _place(text: str, path: Path) -> int:
    """Where a statement stands that has to do with the path: the nearest one."""
    for depth in range(len(path), 0, -1):
        for one in statements(text):
            if one.path[:depth] == path[:depth]:
                return one.start
    return 0


def statements(text: str) -> Iterator[Statement]:
    """The statements of a text that tomllib can read, in their order."""
    offset = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    table: Path = ()
    while (offset := _skip(text, offset)) < len(text):
        start = max(text.rfind("\n", 0, offset) + 1, len(BYTE_ORDER_MARK) * text.startswith(BYTE_ORDER_MARK))
        if text[offset] == "[":
            kind: Literal["table", "array"] = "array" if text.startswith("[[", offset) else "table"
            table, offset = _key(text, offset + (2 if kind == "array" else 1))
            offset += 2 if kind == "array" else 1
            offset = _line_end(text, offset)
            yield Statement(kind, table, start, offset, (start, start))
        else:
            key, offset = _key(text, offset)
            begin = _skip(text, offset + 1)
            end = _value_end(text, begin)
            offset = _line_end(text, end)
            yield Statement("value", table + key, start, offset, (begin, end))


def _skip(text: str, offset: int) -> int:
    found = BLANK.match(text, offset)
    assert found is not None
    return found.end()


def _line_end(text: str, offset: int) -> int:
    found = REST_OF_LINE.match(text, offset)
    assert found is not None
    return found.end()


def _string_end(text: str, offset: int) -> int | None:
    return next((found.end() for string in STRINGS if (found := string.match(text, offset))), None)


def _key(text: str, offset: int) -> tuple[Path, int]:
    """The dotted key from here on, and the offset of what follows it: = or ]."""
    keys: list[str] = []
    while True:
        offset = _skip(text, offset)
        bare = BARE_KEY.match(text, offset)
        end = bare.end() if bare else _string_end(text, offset)
        assert end is not None
        keys.append(bare[0] if bare else tomllib.loads(f"k={text[offset:end]}")["k"])
        offset = _skip(text, end)
        if text[offset] != ".":
            return tuple(keys), offset
        offset += 1


def _value_end(text: str, offset: int) -> int:
    """The offset behind the value that begins here."""
    depth, end = 0, offset
    while offset < len(text):
        if (string_end := _string_end(text, offset)) is not None:
            offset = end = string_end
            continue
        character = text[offset]
        if character == "#" and depth:
            offset = _skip(text, offset)
            continue
        if character in "#\r\n" and not depth:
            break
        depth += (character in "[{") - (character in "]}")
        offset += 1
        if character not in " \t\r\n":
            end = offset
    return end
