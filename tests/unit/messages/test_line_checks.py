"""The quick look at a line never accepts what the close look would refuse, and passes what we write."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convmem import strict_json
from convmem.errors import CallerError
from convmem.messages.line_checks import MessageRead, MetadataRead, check, check_quickly
from convmem.messages.model import METADATA_FIELDS, Message
from convmem.record_lines import escaped
from tests.support.filed import ULIDS, message
from tests.support.texts import texts

PLAIN = msgspec.json.encode(message(0))


def closely(line: bytes) -> Any:
    try:
        return check(strict_json.parse(line))
    except (CallerError, strict_json.MalformedJSON):
        return None


def test_what_we_write_passes_the_quick_look():
    for number in range(3):
        line = msgspec.json.encode(message(number, metadata={"tags": ["a", "b"], "importance": 3}))
        assert check_quickly(line) == closely(line) is not None


def test_both_looks_name_record_and_references_alike():
    links = {"relations": [{"type": "r", "message_id": ULIDS[1]}], "source_message_ids": [ULIDS[2], ULIDS[3]]}
    line = msgspec.json.encode(message(0, metadata=links))
    named = check_quickly(line)
    assert named is not None
    assert named == closely(line)
    assert (named.ids, named.is_limited) == ((), False), "a message costs no more than its identity"
    assert [reference.field for reference in named.references] == [
        "metadata.relations.0.message_id",
        "metadata.source_message_ids.0",
        "metadata.source_message_ids.1",
    ]


@pytest.mark.parametrize(
    "line",
    [
        PLAIN.replace(b'"s"', b'"s" '),
        PLAIN.replace(b'"session_id":"s"', b'"session_id":"t","session_id":"s"'),
        PLAIN.replace(b'"revision":1', b'"revision":01'),
        PLAIN.replace(b"message 0", b"message \\u0030"),
        PLAIN.replace(b"message 0", "a\u2028b".encode()),
        PLAIN.replace(b"message 0", b"a\x7fb"),
        PLAIN.replace(b'"origin"', b'"more":1,"origin"'),
        PLAIN.replace(ULIDS[0].encode(), ULIDS[0].lower().encode()),
        PLAIN.replace(b'"tags":[]', b'"tags":["a","a"]'),
        PLAIN.replace(b'"content"', b'"Content"'),
        b'{"revision":1,' + PLAIN[1:],
        b" " + PLAIN,
        PLAIN + b" ",
        PLAIN[:-1],
        b"",
        b"{}",
        b"[]",
    ],
)
def test_what_stands_otherwise_is_looked_at_closely(line: bytes):
    assert check_quickly(line) is None


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("session_id", "s" * 65),
        ("session_id", ""),
        ("session_id", "a\0b"),
        ("content", "x" * (1_048_576 // 4 + 1)),
        ("revision", 2**31),
        ("timestamp", 2**63),
        ("timestamp", -1),
        ("updated_at", 0),
        ("role", "tool"),
    ],
)
def test_what_is_near_or_beyond_a_bound_is_looked_at_closely(where: str, value: Any):
    assert check_quickly(msgspec.json.encode(message(0, **{where: value}))) is None


values = st.one_of(
    texts, st.integers(-2, 2**31), st.none(), st.booleans(), st.floats(allow_nan=False), st.lists(texts, max_size=2)
)
paths = st.sampled_from(
    [
        *((name,) for name in message(0)),
        *(("metadata", name) for name in (*message(0)["metadata"], "summary", "project", "tool_call_id", "other")),
        *(("origin", name) for name in ("device", "transport", "client", "other")),
    ]
)


@given(st.lists(st.tuples(paths, values), max_size=3))
def test_the_quick_look_accepts_nothing_that_the_close_one_refuses(changes: list[tuple[tuple[str, ...], Any]]):
    record = message(0)
    for path, value in changes:
        inner = record
        for name in path[:-1]:
            if not isinstance(inner[name], dict):
                return
            inner = inner[name]
        inner[path[-1]] = value
    line = escaped(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    quick = check_quickly(line)
    assert quick is None or quick == closely(line)


def test_a_line_is_checked_in_every_field_that_a_message_has():
    assert set(MetadataRead.model_fields) == set(METADATA_FIELDS)
    not_exported = {"sequence", "changed_sequence", "content_bytes", "number"}
    assert set(MessageRead.model_fields) == {*Message.__struct_fields__, "type"} - not_exported
