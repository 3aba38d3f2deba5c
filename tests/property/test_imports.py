"""Files of other programs that were damaged: nothing falls, and no conversation is lost that was not hit."""

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.importers.chatgpt import CHATGPT
from convmem.importers.claude_ai import CLAUDE_AI
from convmem.importers.claude_code import CLAUDE_CODE
from convmem.importers.codex import CODEX
from convmem.importers.model import Format, Message, Notes
from convmem.importers.sources import Unreadable, found

TIME = "2025-01-01T00:00:00Z"
COUNT = 6
WORDS = 'text {} {{\\"[]'


def chatgpt(number: int) -> Any:
    content = {"content_type": "text", "parts": [WORDS.format(number)]}
    message = {"id": f"m{number}", "author": {"role": "user"}, "create_time": 1e9 + number, "content": content}
    mapping = {"r": {"parent": None, "children": ["q"], "message": None}, "q": {"parent": "r", "message": message}}
    return {"conversation_id": f"c{number}", "title": f"t{number}", "create_time": 1e9, "mapping": mapping}


def claude_ai(number: int) -> Any:
    block = {"type": "text", "text": WORDS.format(number)}
    message = {"uuid": f"m{number}", "sender": "human", "content": [block], "created_at": TIME}
    return {"uuid": f"c{number}", "name": f"t{number}", "created_at": TIME, "chat_messages": [message]}


def claude_code(number: int) -> Any:
    message = {"role": "user", "content": WORDS.format(number)}
    facts = {"type": "user", "uuid": f"u{number}", "sessionId": f"c{number}", "timestamp": TIME}
    return {**facts, "parentUuid": None, "message": message}


def codex(number: int) -> Any:
    block = {"type": "input_text", "text": WORDS.format(number)}
    payload = {"type": "message", "role": "user", "content": [block]}
    return {"timestamp": TIME, "type": "response_item", "payload": payload}


# Each format, how a conversation of it is made, and whether they stand on lines.
MADE: dict[str, tuple[Format, Callable[[int], Any], bool]] = {
    "chatgpt": (CHATGPT, chatgpt, False),
    "claude-ai": (CLAUDE_AI, claude_ai, False),
    "claude-code": (CLAUDE_CODE, claude_code, True),
    "codex-cli": (CODEX, codex, True),
}


def texts(format_: Format, data: bytes) -> list[str]:
    """What is read out of these bytes, whatever they seem to be."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "x"
        path.write_bytes(data)
        notes = Notes()
        sources = list(found([path]))
        with suppress(Unreadable):
            assert format_.fits(sources[0].sample, sources[0]) in (True, False)
        records = [record for entry in list(format_.entries(sources, notes)) for record in entry.read()]
        return [record.content for record in records if isinstance(record, Message)]


def together(parts: list[bytes], *, are_lines: bool) -> bytes:
    return b"\n".join(parts) + b"\n" if are_lines else b"[" + b",\n".join(parts) + b"]"


DAMAGE = st.lists(
    st.tuples(
        st.integers(0, COUNT - 1),
        st.sampled_from(["flip", "cut", "drop", "twice", "zeros", "insert"]),
        st.integers(0, 10_000),
        st.integers(1, 255),
    ),
    max_size=3,
)


def hurt(part: bytes, how: str, place: int, value: int) -> bytes:
    at = place % len(part)
    if how == "flip":
        return part[:at] + bytes([part[at] ^ value]) + part[at + 1 :]
    if how == "cut":
        return part[:at]
    if how == "drop":
        return part[:at] + part[at + 1 + value % 5 :]
    if how == "twice":
        return part[:at] + part
    return part[:at] + (b"\0" * value if how == "zeros" else bytes([value])) + part[at:]


@pytest.mark.parametrize("name", MADE)
@settings(max_examples=150, deadline=None)
@given(damage=DAMAGE, order=st.permutations(range(COUNT)))
def test_damage_takes_no_conversation_that_it_did_not_hit(name: str, damage: list[Any], order: list[int]):
    format_, make, are_lines = MADE[name]
    parts = [json.dumps(make(number)).encode() for number in range(COUNT)]
    for number, how, place, value in damage:
        if parts[number]:
            parts[number] = hurt(parts[number], how, place, value)
    hit = {number for number, *_ in damage}
    read = texts(format_, together([parts[number] for number in order], are_lines=are_lines))
    for number in set(range(COUNT)) - hit:
        assert any(text.startswith(f"text {number} ") for text in read), (number, read)


@pytest.mark.parametrize("name", MADE)
@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=400))
def test_no_bytes_make_a_format_fall(name: str, data: bytes):
    texts(MADE[name][0], data)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("name", MADE)
@settings(max_examples=200, deadline=None)
@given(where=st.lists(st.integers(0, 5), min_size=1, max_size=6), value=VALUES)
def test_odd_types_anywhere_make_no_format_fall(name: str, where: list[int], value: Any):
    format_, make, are_lines = MADE[name]
    odd, kept = make(0), make(1)
    place: Any = odd
    for depth, step in enumerate(where, start=1):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[step % len(keys)]
        if depth == len(where) or not isinstance(place[key], dict | list) or not place[key]:
            place[key] = value
            break
        place = place[key]
    read = texts(format_, together([json.dumps(odd).encode(), json.dumps(kept).encode()], are_lines=are_lines))
    assert any(text.startswith("text 1 ") for text in read)
