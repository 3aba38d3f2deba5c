"""Putting one member into a JSON text, or taking one out, by its span: all that stands outside keeps its bytes.

The idea: where a member is new it is written as its neighbours are (line ends, indentation, comma behind the last), and
in a way that taking it out again finds: what `put` has added to an object, `take` removes to the byte. What belongs to
whom is decided once. A comment on the line of a member is that member's; a comment on a line of its own is nobody's and
stays.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from convmem.connecting.jsonc import Member, Value, parse, skip_blank
from convmem.connecting.misfits import BYTE_ORDER_MARK, misfit_at

ON_THE_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*(?:(?!\*/)[^\r\n])*\*/))*")
REST_IS_BLANK = re.compile(r"[ \t]*(?:\r?\n|\Z)")
PIECE = re.compile(r"[ \t\r\n,]+|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
INDENTATION = re.compile(r"[ \t]*")
INDENT = "  "
Path = Sequence[str]


class Style(NamedTuple):
    """How a text is written: its line end, and what it is indented by."""

    newline: str
    indent: str


def put(text: str, path: Path, value: Any) -> str:
    """The text with `value` as the member at `path`; objects on the way that are missing are made.

    Misfit if the text cannot be read or something on the way is no object.
    """
    assert path
    if says_nothing(text):
        text = _with_an_object(text)
    root = parse(text)
    style = _style(text, root)
    parents = _parents(text, root, path)
    if len(parents) == len(path) and (member := parents[-1].member(path[-1])):
        indent = _indent_of_line(text, member.start)
        rendered = _rendered(value, style, indent if _begins_a_line(text, member.start) else None)
        return text[: member.value.start] + rendered + text[member.value.end :]
    for key in reversed(path[len(parents) :]):
        value = {key: value}
    return _inserted(text, parents, path[len(parents) - 1], value, style)


def take(text: str, path: Path) -> str:
    """The text without the member at `path`; itself if there is none. Misfit as for `put`."""
    parents = _parents(text, parse(text), path)
    member = parents[-1].member(path[-1]) if len(parents) == len(path) else None
    return text if member is None else _without(text, parents[-1], member)


def value_at(text: str, path: Path) -> Any:
    """What stands at `path`, None if nothing does. Misfit as for `put`."""
    parents = _parents(text, parse(text), path)
    member = parents[-1].member(path[-1]) if len(parents) == len(path) else None
    return None if member is None else member.value.plain


def merged(text: str, path: Path, wanted: Mapping[str, Any], ours: frozenset[str]) -> str:
    """The text with `wanted` in the object at `path`; of what stands there the keys in `ours` go, others stay."""
    found = None if says_nothing(text) else value_at(text, path)
    if not isinstance(found, dict):
        return put(text, path, dict(wanted))
    for key in found:
        if key in ours and key not in wanted:
            text = take(text, (*path, key))
    for key, value in wanted.items():
        if found.get(key) != value or key not in found:
            text = put(text, (*path, key), value)
    return text


def snippet(path: Path, value: Mapping[str, Any]) -> str:
    """A text of its own with `value` at `path`, as it goes into an empty file."""
    return put("", path, dict(value))


def says_nothing(text: str) -> bool:
    """True for a text of blanks and comments alone, as a file is that was just made."""
    return skip_blank(text, len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0) == len(text)


def _parents(text: str, root: Value, path: Path) -> list[Value]:
    """The objects that lead to the last key of the path, as far as they are there."""
    if not root.is_object:
        raise misfit_at(text, root.start, "the outermost value is no object {…}")
    found = [root]
    for key in path[:-1]:
        member = found[-1].member(key)
        if member is None:
            break
        if not member.value.is_object:
            raise misfit_at(text, member.value.start, f"{key!r} is no object {{…}}")
        found.append(member.value)
    return found


def _with_an_object(text: str) -> str:
    """A text that says nothing yet, with an empty object behind what comments it holds."""
    newline = "\r\n" if "\r\n" in text else "\n"
    needs_line = text.rpartition("\n")[2].strip(f" \t\r{BYTE_ORDER_MARK}") != ""
    return text + (newline if needs_line else "") + "{}" + newline


def _style(text: str, root: Value) -> Style:
    first_end = text.find("\n")
    newline = "\r\n" if first_end > 0 and text[first_end - 1] == "\r" else "\n"
    if root.members and _begins_a_line(text, root.members[0].start):
        return Style(newline, _indent_of_line(text, root.members[0].start))
    return Style(newline, INDENT)


def _begins_a_line(text: str, offset: int) -> bool:
    return text[text.rfind("\n", 0, offset) + 1 : offset].strip(" \t") == "" and "\n" in text[:offset]


def _indent_of_line(text: str, offset: int) -> str:
    start = text.rfind("\n", 0, offset) + 1
    start += text.startswith(BYTE_ORDER_MARK, start)
    found = INDENTATION.match(text, start)
    assert found is not None
    return found[0]


def _rendered(value: Any, style: Style, indent: str | None) -> str:
    """JSON in the style of the text, its further lines indented by `indent`; one line if that is None."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, indent=style.indent).replace("\n", style.newline + indent)


def _has_lines(text: str, parents: Sequence[Value]) -> bool:
    """True if a member of the innermost object stands on a line of its own; an empty object is like the one around."""
    *outer, inner = parents
    if inner.members:
        return "\n" in text[inner.start : inner.members[0].start]
    return _has_lines(text, outer) if outer else True


def _inserted(text: str, parents: Sequence[Value], key: str, value: Any, style: Style) -> str:
    inner = parents[-1]
    base = _indent_of_line(text, inner.start)
    is_lined = _has_lines(text, parents)
    indent = base + style.indent
    if inner.members and _begins_a_line(text, inner.members[0].start):
        indent = _indent_of_line(text, inner.members[0].start)
    member = f"{json.dumps(key, ensure_ascii=False)}: {_rendered(value, style, indent if is_lined else None)}"
    if not inner.members:
        at = inner.start + 1
        added = style.newline + indent + member + style.newline + base if is_lined else member
        return text[:at] + added + text[at:]
    end = inner.members[-1].value.end
    comma = skip_blank(text, end)
    has_comma = text[comma] == ","
    at = comma + 1 if has_comma else end
    if is_lined:
        found = ON_THE_LINE.match(text, at)
        assert found is not None
        at = found.end()
    added = (style.newline + indent if is_lined else " ") + member
    if has_comma:
        return text[:at] + added + "," + text[at:]
    return text[:end] + "," + text[end:at] + added + text[at:]


def _without(text: str, parent: Value, member: Member) -> str:
    number = parent.members.index(member)
    end = member.value.end
    comma = skip_blank(text, end)
    cuts: list[tuple[int, int]] = []
    if text[comma] == ",":
        if text[end:comma].strip(" \t\r\n") == "":
            end = comma + 1
        else:
            cuts.append((comma, comma + 1))
    elif number:
        before = skip_blank(text, parent.members[number - 1].value.end)
        cuts.append((before, before + 1))
    start, end = _span_with_blanks(text, parent, member, end)
    for first, last in sorted([*cuts, (start, end)], reverse=True):
        text = text[:first] + text[last:]
    return text


def _span_with_blanks(text: str, parent: Value, member: Member, end: int) -> tuple[int, int]:
    """The span to cut for a member that ends at `end`: with the blanks that only it needs."""
    start = parent.start + 1 + len(text[parent.start + 1 : member.start].rstrip(" \t\r\n"))
    blanks = text[start : member.start]
    if "\n" not in blanks:
        return start, end
    if not REST_IS_BLANK.match(text, end) and _ends_in_a_line_comment(text, parent, start):
        # The line end closes the comment: without it the comment would swallow what follows.
        return member.start, end
    if len(parent.members) == 1 and start == parent.start + 1:
        # What `put` adds to an empty object: the line of the closing brace too.
        closing = re.compile(r"\r?\n" + re.escape(_indent_of_line(text, parent.start))).match(text, end)
        end = closing.end() if closing else end
    line_end = start + blanks.rindex("\n")
    return line_end - (blanks[: line_end - start].endswith("\r")), end


def _ends_in_a_line_comment(text: str, parent: Value, offset: int) -> bool:
    """True if a comment // ends at `offset`, which lies between two members."""
    at = [parent.start + 1, *(member.value.end for member in parent.members if member.value.end <= offset)][-1]
    pieces = [piece[0] for piece in PIECE.finditer(text, at, offset)]
    return bool(pieces) and pieces[-1].startswith("//")
