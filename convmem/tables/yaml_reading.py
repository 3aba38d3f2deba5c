"""YAML in: one document of a file becomes a node, by the rules of YAML 1.2's core schema and a few more.

The parser is ruamel.yaml's; from its events the value is built here, because what is refused must be refused with line
and column before it costs anything: duplicate keys, anchors and aliases (a billion laughs), tags (they build objects),
a second document, another version of YAML, control characters, more levels or values than a schema can need.

A plain scalar is also kept as it was written, so that who expects a text gets `no`, `1.10` and `12:30:45` as such. As a
value it is null, true or false by the core schema, and a number if that would be written back the same; everything else
is its text, so `1.10`, `0x1F` and `.nan` lose nothing.

Rejected: loading with ruamel.yaml's constructors (positions and plain texts are gone afterwards) and PyYAML (YAML 1.1:
`no` is false, `12:30` is 750, the last duplicate key wins).
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from convmem.errors import SchemaError
from convmem.limits import INT64_MAX, INT64_MIN, JSON_LEVELS_MAX, SCHEMA_BYTES_MAX, SCHEMA_NODES_MAX
from convmem.tables.nodes import Node, Position, child_path, refusal, text_fault

# What may stand in a file as it is; the rest can be escaped in a quoted text.
NOT_IN_A_FILE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ufffd\U00010000-\U0010ffff]")
WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")
DECIMAL = re.compile(r"-?[0-9]{1,32}(\.[0-9]{1,32})?(e[+-][0-9]{2,3})?")


class _Open(NamedTuple):
    """A mapping or a list whose end has not come: what is in it so far, and the key that waits for its value."""

    content: dict[str, Node] | list[Node]
    path: str
    at: Position
    key: list[Node]


def read(data: bytes) -> Node:
    """The one document of a file; SchemaError with `line` and `column` if it breaks a rule above. No document at all is
    null.
    """
    root = Node(None, "", "", Position(1, 1))
    stack: list[_Open] = []
    count = 0
    for event in _events(_decoded(data)):
        count += 1
        at = Position(event.start_mark.line + 1, event.start_mark.column + 1)
        if count > SCHEMA_NODES_MAX:
            raise refusal("", at, f"holds more than {SCHEMA_NODES_MAX} values")
        if isinstance(event, MappingEndEvent | SequenceEndEvent):
            done = stack.pop()
            content = done.content if isinstance(done.content, dict) else tuple(done.content)
            node = Node(content, None, done.path, done.at)
        else:
            path = _path_of_next(stack)
            _refuse_decorated(event, path, at)
            if not isinstance(event, ScalarEvent):
                _refuse_as_key(stack, path, at)
                if len(stack) >= JSON_LEVELS_MAX:
                    raise refusal(path, at, f"has more than {JSON_LEVELS_MAX} levels")
                stack.append(_Open({} if isinstance(event, MappingStartEvent) else [], path, at, []))
                continue
            node = _scalar(event, path, at)
        root = _placed(stack, node) or root
    return root


def _decoded(data: bytes) -> str:
    """The text of a file, which is UTF-8 without control characters."""
    if len(data) > SCHEMA_BYTES_MAX:
        raise SchemaError(f"a schema may have at most {SCHEMA_BYTES_MAX} bytes", line=1, column=1)
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refusal("", _position(data[: error.start].decode("utf-8")), "is not valid UTF-8 here") from None
    if found := NOT_IN_A_FILE.search(text):
        at = _position(text[: found.start()])
        raise refusal("", at, f"must not hold U+{ord(found.group()):04X} as it is")
    return text


def _position(before: str) -> Position:
    """Where the text behind `before` begins."""
    lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return Position(len(lines), len(lines[-1]) + 1)


def _events(text: str) -> Iterator[Any]:
    """What the one document consists of, in order."""
    documents = 0
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            if isinstance(event, DocumentStartEvent):
                documents += 1
                at = Position(event.start_mark.line + 1, event.start_mark.column + 1)
                if documents > 1:
                    raise refusal("", at, "must be one document")
                if (event.version or (1, 2)) != (1, 2):
                    raise refusal("", at, "must be YAML 1.2")
                if event.tags:
                    raise refusal("", at, "must not declare tags")
            elif hasattr(event, "anchor") or isinstance(event, MappingEndEvent | SequenceEndEvent):
                yield event
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = Position(mark.line + 1, mark.column + 1)
        raise refusal("", at, f"cannot be read: {error.problem or 'this is no YAML'}") from None
    except (YAMLError, ValueError, OverflowError) as error:
        # An escape beyond Unicode is the one fault that the parser does not mark.
        raise SchemaError("the schema holds an escape that is no character", **_escape(text, error)) from None


def _escape(text: str, error: Exception) -> dict[str, int]:
    """Line and column of the first escape that stands for no code point; of the start if there is none."""
    for found in re.finditer(r"\\U([0-9a-fA-F]{8})", text):
        if int(found.group(1), 16) > 0x10FFFF:
            return _position(text[: found.start()])._asdict()
    return Position(1, 1)._asdict()


def _path_of_next(stack: list[_Open]) -> str:
    if not stack:
        return ""
    top = stack[-1]
    if isinstance(top.content, list):
        return child_path(top.path, len(top.content))
    return child_path(top.path, top.key[0].text or "") if top.key else top.path


def _refuse_decorated(event: Any, path: str, at: Position) -> None:
    if isinstance(event, AliasEvent):
        raise refusal(path, at, "must not be an alias")
    if event.anchor is not None:
        raise refusal(path, at, "must not have an anchor")
    if event.tag is not None:
        raise refusal(path, at, "must not have a tag")


def _refuse_as_key(stack: list[_Open], path: str, at: Position) -> None:
    if stack and isinstance(stack[-1].content, dict) and not stack[-1].key:
        raise refusal(path, at, "must have texts as keys")


def _scalar(event: ScalarEvent, path: str, at: Position) -> Node:
    text = str(event.value)
    if fault := text_fault(text):
        raise refusal(path, at, fault)
    is_plain = event.implicit[0]
    return Node(plain_value(text) if is_plain else text, text, path, at)


def plain_value(text: str) -> str | int | float | bool | None:
    """What a plain scalar stands for, by the core schema; its text if that could not be written back the same."""
    if text in WORDS:
        return WORDS[text]
    if INTEGER.fullmatch(text) and INT64_MIN <= int(text) <= INT64_MAX:
        return int(text)
    if DECIMAL.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    return text


def _placed(stack: list[_Open], node: Node) -> Node | None:
    """Put a node where it belongs; the node itself if it is the whole document."""
    if not stack:
        return node
    top = stack[-1]
    if isinstance(top.content, list):
        top.content.append(node)
    elif top.key:
        key = top.key.pop()
        # What is not there has no place of its own; the parser gives it that of what comes next.
        top.content[key.text or ""] = replace(node, at=key.at) if node.text == "" and node.value is None else node
    else:
        assert node.text is not None
        if node.text in top.content:
            assert node.at is not None
            raise refusal(child_path(top.path, node.text), node.at, "stands there twice")
        top.key.append(node)
    return None
