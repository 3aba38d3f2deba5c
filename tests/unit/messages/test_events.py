"""What an entry holds of messages: only what the entry itself does not say, and of an update only what changed."""

import msgspec
import pytest

from convmem.messages.events import MessageDeleted, MessageUpdated, MessageWritten, Receipt
from convmem.messages.model import METADATA_FIELDS, Metadata, Relation

ID = "01HF7YAT000000000000000007"


def test_an_ordinary_message_takes_few_bytes_beside_its_text():
    event = MessageWritten(message_id=ID, session_id="s", role="user", content="x" * 100)
    assert set(msgspec.to_builtins(event)) == {"type", "message_id", "session_id", "role", "content"}
    assert len(msgspec.msgpack.encode(event)) - 100 < 110


def test_defaults_that_were_spelled_out_take_none():
    spelled = MessageWritten(
        message_id=ID, session_id="s", role="user", content="", **msgspec.structs.asdict(Metadata(memory_tier="mid"))
    )
    plain = MessageWritten(message_id=ID, session_id="s", role="user", content="")
    assert msgspec.msgpack.encode(spelled) == msgspec.msgpack.encode(plain)


def test_an_update_tells_untouched_from_taken_away():
    event = MessageUpdated(message_id=ID, revision=2, summary=None, tags=())
    builtins = msgspec.to_builtins(event)
    assert builtins == {"type": "message_updated", "message_id": ID, "revision": 2, "summary": None, "tags": ()}
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=MessageUpdated)
    assert (again.summary, again.tags, again.project, again.content) == (None, (), msgspec.UNSET, msgspec.UNSET)


def test_a_deletion_is_a_tombstone_of_fixed_size():
    assert len(msgspec.msgpack.encode(MessageDeleted(message_id=ID))) < 70


def test_an_update_can_change_all_metadata_and_the_content_and_nothing_else():
    changeable = set(MessageUpdated.__struct_fields__) - {"message_id", "revision"}
    assert changeable == {"content", "imported", *METADATA_FIELDS}


def test_written_metadata_has_the_names_of_metadata():
    own = {"message_id", "session_id", "role", "content", "receipt", "timestamp", "capture", "number", "imported"}
    assert set(MessageWritten.__struct_fields__) - own == set(METADATA_FIELDS)


@pytest.mark.parametrize("kind", [MessageWritten, MessageUpdated, MessageDeleted])
def test_an_event_is_never_changed(kind: type[msgspec.Struct]):
    assert kind.__struct_config__.frozen


def test_bytes_of_a_receipt_survive():
    event = MessageWritten(
        message_id=ID,
        session_id="s",
        role="user",
        content="",
        relations=(Relation(type="after", message_id=ID),),
        receipt=Receipt(b"\0\xff" * 8, b"\x80" * 16),
    )
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=MessageWritten) == event
