"""How messages look to programs."""

import msgspec
import pytest

from convmem.domain import Origin
from convmem.messages.model import KINDS, Message, Metadata, Relation, origin_facts, packed, split_tags, unpacked

MESSAGE = Message(
    message_id="01HF7YAT000000000000000007",
    session_id="s",
    timestamp=5,
    updated_at=6,
    revision=2,
    sequence=2**53 + 1,
    changed_sequence=2**53 + 2,
    role="user",
    content="hé\0",
    content_bytes=4,
    metadata=Metadata(relations=(Relation(type="after", message_id="01HF7YAT000000000000000001"),), project=""),
    origin=Origin("laptop", "http", None),
)


def test_a_message_shows_everything_that_is_there_and_nothing_that_is_not():
    assert MESSAGE.facts() == {
        "message_id": "01HF7YAT000000000000000007",
        "session_id": "s",
        "timestamp": 5,
        "updated_at": 6,
        "revision": 2,
        "sequence": "9007199254740993",
        "role": "user",
        "content": "hé\0",
        "metadata": {
            "tags": [],
            "memory_tier": "mid",
            "memory_kind": "conversation",
            "importance": 0,
            "relations": [{"type": "after", "message_id": "01HF7YAT000000000000000001"}],
            "source_message_ids": [],
            "project": "",
        },
        "origin": {"device": "laptop", "transport": "http"},
    }


def test_facts_are_plain_json():
    assert msgspec.json.decode(msgspec.json.encode(MESSAGE.facts()))["content"] == "hé\0"


def test_an_origin_names_its_client_if_it_was_named():
    assert origin_facts(Origin("local", "stdio", "agent/1")) == {
        "device": "local",
        "transport": "stdio",
        "client": "agent/1",
    }


@pytest.mark.parametrize("tags", [(), ("a",), ("a", "b,c", " ", "日本")])
def test_tags_come_back_from_the_one_text_they_are_kept_as(tags: tuple[str, ...]):
    assert split_tags("\0".join(tags)) == tags


def test_kinds_are_the_six_of_the_interface():
    assert KINDS == ("conversation", "episode", "semantic", "procedure", "preference", "summary")


def test_an_id_packed_and_unpacked_is_the_same_and_keeps_its_order():
    ids = ["0" * 26, "01HF7YAT00ABCDEFGHJKMNPQRS", "01HF7YAT00ABCDEFGHJKMNPQRT", "7" + "Z" * 25]
    assert [unpacked(packed(message_id)) for message_id in ids] == ids
    assert [packed(message_id) for message_id in ids] == sorted(packed(message_id) for message_id in ids)
    assert {len(packed(message_id)) for message_id in ids} == {16}
