"""Events are read for ever: every shape that was ever written still decodes, to the same values.

A file a tag, a line a shape: `msgpack` is what stands in the log, `event` the same for people (bytes in base64). Lines
are only ever added.
"""

import json
from pathlib import Path
from typing import Any, Union

import msgspec
import pytest

from convmem.daemon import domains
from convmem.domain import Event, Origin, Place
from convmem.memory import queries
from tests.support.folded import empty_index
from tests.support.remembered import BOTH

EVENTS = Path(__file__).parent / "events"
KINDS: dict[str, type[Event]] = {
    str(kind.__struct_config__.tag): kind for domain in domains() for kind in domain.appliers
}
DECODER: Any = msgspec.msgpack.Decoder(Union[tuple(KINDS.values())])  # noqa: UP007 - made at run time
GOLDEN = [
    (path.stem, json.loads(line))
    for path in sorted(EVENTS.glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").split("\n")
    if line
]
# What tags there are; a renamed class must not rename them.
TAGS = {
    *("message_written", "message_updated", "message_deleted", "message_kept", "receipt_kept", "fingerprint_kept"),
    *("source_forgotten", "record_forgotten"),
    *("preference_saved", "preference_stated", "preference_forgotten", "preference_kept"),
    *("lesson_saved", "lesson_forgotten", "lesson_kept", "section_written", "section_deleted", "section_kept"),
}


def test_tags_are_these_and_each_has_its_golden_lines():
    assert set(KINDS) == TAGS
    assert {path.stem for path in EVENTS.iterdir()} == TAGS


@pytest.mark.parametrize(("tag", "golden"), GOLDEN)
def test_every_shape_ever_written_decodes_to_what_it_meant(tag: str, golden: Any):
    event = DECODER.decode(bytes.fromhex(golden["msgpack"]))
    assert type(event) is KINDS[tag]
    assert event == msgspec.json.decode(json.dumps(golden["event"]), type=KINDS[tag])
    assert msgspec.json.decode(msgspec.json.encode(event)) == golden["event"]


@pytest.mark.parametrize(("tag", "golden"), GOLDEN)
def test_a_field_of_a_later_version_is_passed_over(tag: str, golden: Any):
    later = msgspec.msgpack.decode(bytes.fromhex(golden["msgpack"])) | {"added_later": [1, {"x": None}]}
    assert DECODER.decode(msgspec.msgpack.encode(later)) == DECODER.decode(bytes.fromhex(golden["msgpack"]))


@pytest.mark.parametrize("tag", sorted(TAGS))
def test_a_field_that_not_every_golden_line_has_has_a_default(tag: str):
    kind = KINDS[tag]
    lines = [golden["event"] for name, golden in GOLDEN if name == tag]
    everywhere = set.intersection(*(set(line) for line in lines)) - {"type"}
    required = {field.name for field in msgspec.structs.fields(kind) if field.required}
    assert required <= everywhere
    shown = set().union(*lines) - {"type"}
    assert shown == set(kind.__struct_fields__), "each field stands in a golden line"


def test_golden_lines_of_messages_can_be_applied():
    (messages,) = (domain for domain in domains() if domain.name == "messages")
    connection = empty_index()
    place = Place(1, 1, Origin("local", "test"))
    seen: set[str] = set()
    for tag in ("message_written", "message_updated", "message_deleted"):
        for number, (_, golden) in enumerate((tag, line) for name, line in GOLDEN if name == tag):
            event = DECODER.decode(bytes.fromhex(golden["msgpack"]))
            if event.message_id in seen and tag == "message_written":
                continue
            seen.add(event.message_id)
            messages.appliers[type(event)](connection, event, place._replace(sequence=len(seen) + number))
    assert connection.execute("SELECT count(*) FROM messages_message").fetchone() == (3,)


def test_golden_lines_of_a_state_can_be_applied():
    (messages,) = (domain for domain in domains() if domain.name == "messages")
    connection = empty_index()
    for tag in ("message_kept", "receipt_kept"):
        lines = {golden["event"]["message_id"]: golden for name, golden in GOLDEN if name == tag}
        for number, golden in enumerate(lines.values(), 20):
            event = DECODER.decode(bytes.fromhex(golden["msgpack"]))
            messages.appliers[type(event)](connection, event, Place(number, 1, Origin("local", "")))
    assert connection.execute("SELECT count(*) FROM messages_message").fetchone() == (4,)
    assert connection.execute("SELECT count(*) FROM messages_receipt").fetchone() == (2,)


def test_golden_lines_of_memory_can_be_applied():
    (memory,) = (domain for domain in domains() if domain.name == "memory")
    order = ("saved", "written", "stated", "forgotten", "deleted")
    happened = [(order.index(end), tag) for tag in map(str, KINDS) if (end := tag.split("_")[1]) in order]
    for tags, left in (
        ([tag for _, tag in sorted(happened) if KINDS[tag] in memory.appliers], (2, 2, 1)),
        (["preference_kept", "lesson_kept", "section_kept"], (2, 2, 2)),
    ):
        connection = empty_index(BOTH)
        for sequence, golden in enumerate((line for tag in tags for name, line in GOLDEN if name == tag), 1):
            event = DECODER.decode(bytes.fromhex(golden["msgpack"]))
            memory.appliers[type(event)](connection, event, Place(sequence, 1, Origin("local", "test")))
        assert queries.totals(connection) == left
