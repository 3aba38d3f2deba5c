"""What commands do to what is there: receipts, refusals, and nothing at all where nothing changes."""

import hashlib
from typing import Any

import msgspec
import pytest

from convmem.domain import Origin
from convmem.errors import Conflict, NotFound, SessionMismatch
from convmem.limits import RECEIPTS_KEPT_MS, REVISION_MAX
from convmem.messages.decide import DECIDERS
from convmem.messages.imports import ImportMessage
from convmem.messages.inputs import CaptureEvent, DeleteMessage, UpdateMessage, WriteMessage
from tests.support.folded import Folded
from tests.support.manual_clock import START_MS

NOBODY = "01HF7YAT00000000000000ZZZZ"
DAY_MS = 24 * 3600 * 1000


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_a_write_is_answered_with_its_receipt(folded: Folded):
    answer = await folded.call("write_message", session_id="s", role="user", content="hé\0")
    assert answer == {
        "message_id": "01HF7YAT000000000000000007",
        "session_id": "s",
        "timestamp": START_MS,
        "revision": 1,
        "sequence": "1",
        "sha256": sha256("hé\0"),
    }


async def test_ids_and_sequences_rise_when_the_clock_steps_back(folded: Folded):
    first = await folded.call("write_message", session_id="s", role="user", content="1")
    folded.clock.pass_ms(-3_600_000)
    second = await folded.call("write_message", session_id="s", role="user", content="2")
    assert second["message_id"] > first["message_id"]
    assert int(second["sequence"]) > int(first["sequence"])
    assert second["timestamp"] == START_MS - 3_600_000


async def test_an_update_says_what_changed_and_counts_the_revision(folded: Folded):
    message_id = await folded.say("old", tags=["a"])
    folded.clock.pass_ms(5)
    answer = await folded.call(
        "update_message", message_id=message_id, content="new", metadata={"tags": ["a"], "importance": 3}
    )
    assert answer == {
        "message_id": message_id,
        "revision": 2,
        "updated_at": START_MS + 5,
        "changed": ["content", "metadata.importance"],
        "sequence": "2",
        "sha256": sha256("new"),
    }
    event = msgspec.msgpack.decode(folded.log[-1][1])
    assert set(event) == {"type", "message_id", "revision", "content", "importance"}


async def test_an_update_that_changes_nothing_writes_nothing_and_answers_the_current_revision(folded: Folded):
    message_id = await folded.say("text", tags=["a"])
    changed = await folded.call("update_message", message_id=message_id, metadata={"project": "p"})
    await folded.say("another")
    before = len(folded.log)
    for same in ({}, {"content": "text"}, {"metadata": {"tags": ["a", "a"], "project": "p", "summary": None}}):
        answer = await folded.call("update_message", message_id=message_id, expected_revision=2, **same)
        assert answer == changed | {"changed": []}
    assert len(folded.log) == before


async def test_updated_at_never_falls_below_what_it_was(folded: Folded):
    message_id = await folded.say("1")
    folded.clock.pass_ms(-1_000)
    answer = await folded.call("update_message", message_id=message_id, content="2")
    assert answer["updated_at"] == START_MS


async def test_null_takes_a_key_away_and_an_absent_key_stays(folded: Folded):
    message_id = await folded.say("x", tags=["a"], summary="s", project="p", importance=9, memory_tier="long")
    patch = {"tags": None, "summary": None, "importance": None, "memory_tier": None}
    answer = await folded.call("update_message", message_id=message_id, metadata=patch)
    assert answer["changed"] == ["metadata.tags", "metadata.memory_tier", "metadata.importance", "metadata.summary"]
    page = await folded.call("read_messages", view="history", session_id="s")
    metadata = page["messages"][0]["metadata"]
    assert "summary" not in metadata
    assert (metadata["tags"], metadata["importance"], metadata["memory_tier"]) == ([], 0, "mid")
    assert metadata["project"] == "p"


async def test_another_revision_than_expected_is_a_conflict_that_names_the_current_one(folded: Folded):
    message_id = await folded.say("1")
    await folded.call("update_message", message_id=message_id, content="2", expected_revision=1)
    for content in ("2", "3"):
        with pytest.raises(Conflict) as refusal:
            await folded.call("update_message", message_id=message_id, content=content, expected_revision=1)
        assert refusal.value.details["current_revision"] == 2


async def test_of_updates_that_expect_the_same_revision_one_wins(folded: Folded):
    message_id = await folded.say("0")
    won = 0
    for content in "12345":
        try:
            await folded.call("update_message", message_id=message_id, content=content, expected_revision=1)
            won += 1
        except Conflict:
            pass
    assert won == 1


async def test_the_last_revision_is_the_last():
    folded = Folded()
    message_id = await folded.say("1")
    folded.connection.execute("UPDATE messages_message SET revision = ?", (REVISION_MAX,))
    with pytest.raises(Conflict):
        await folded.call("update_message", message_id=message_id, content="2")


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"relations": [{"type": "after", "message_id": NOBODY}]}, "metadata.relations.0.message_id"),
        ({"source_message_ids": [NOBODY]}, "metadata.source_message_ids.0"),
    ],
)
async def test_what_is_pointed_at_must_be_there(folded: Folded, metadata: dict[str, Any], field: str):
    message_id = await folded.say("x")
    for call in (
        {"name": "write_message", "session_id": "s", "role": "user", "content": "y"},
        {"name": "update_message", "message_id": message_id},
    ):
        with pytest.raises(NotFound) as refusal:
            await folded.call(**call, metadata=metadata)
        assert refusal.value.details == {"field": field, "message_id": NOBODY}


async def test_relations_that_stay_as_they_are_may_point_at_what_has_gone(folded: Folded):
    target = await folded.say("target")
    message_id = await folded.say("x", relations=[{"type": "after", "message_id": target}])
    await folded.call("delete_message", message_id=target)
    same = {"relations": [{"type": "after", "message_id": target}], "importance": 1}
    answer = await folded.call("update_message", message_id=message_id, metadata=same)
    assert answer["changed"] == ["metadata.importance"]


async def test_a_message_may_point_at_itself_and_be_deleted(folded: Folded):
    message_id = await folded.say("x")
    links = {"relations": [{"type": "self", "message_id": message_id}], "source_message_ids": [message_id]}
    await folded.call("update_message", message_id=message_id, metadata=links)
    await folded.call("delete_message", message_id=message_id)


async def test_a_deletion_is_answered_once(folded: Folded):
    message_id = await folded.say("x")
    answer = await folded.call("delete_message", message_id=message_id.lower(), session_id="s")
    assert answer == {"message_id": message_id, "deleted": True, "sequence": "2"}
    for name in ("delete_message", "update_message"):
        with pytest.raises(NotFound) as refusal:
            await folded.call(name, message_id=message_id)
        assert refusal.value.details["field"] == "message_id"


async def test_the_guard_of_a_deletion_holds(folded: Folded):
    message_id = await folded.say("x")
    with pytest.raises(SessionMismatch):
        await folded.call("delete_message", message_id=message_id, session_id="t")
    assert (await folded.call("get_system_health"))["live"] == 1


KEYED: dict[str, Any] = {"session_id": "s", "role": "user", "content": "x", "idempotency_key": "k"}


async def test_a_repeated_key_is_answered_with_the_first_receipt_and_stores_nothing(folded: Folded):
    first = await folded.call("write_message", **KEYED)
    folded.clock.pass_ms(1)
    again = await folded.call("write_message", **KEYED, metadata={})
    assert again == first | {"replayed": True}
    assert len(folded.log) == 1


async def test_a_known_key_with_other_arguments_is_a_conflict(folded: Folded):
    await folded.call("write_message", **KEYED)
    with pytest.raises(Conflict) as refusal:
        await folded.call("write_message", **KEYED | {"content": "y"})
    assert refusal.value.details["field"] == "idempotency_key"


async def test_a_key_outlives_its_message_and_the_targets_it_pointed_at(folded: Folded):
    target = await folded.say("target")
    keyed = KEYED | {"metadata": {"source_message_ids": [target]}}
    first = await folded.call("write_message", **keyed)
    await folded.call("update_message", message_id=first["message_id"], content="changed")
    await folded.call("delete_message", message_id=target)
    await folded.call("delete_message", message_id=first["message_id"])
    assert await folded.call("write_message", **keyed) == first | {"replayed": True}


async def test_a_key_belongs_to_its_device(folded: Folded):
    first = await folded.call("write_message", **KEYED)
    folded.origin = Origin("phone", "http")
    second = await folded.call("write_message", **KEYED)
    assert second["message_id"] != first["message_id"]
    assert "replayed" not in second


async def test_a_key_is_kept_for_seven_days_and_let_go_afterwards(folded: Folded):
    first = await folded.call("write_message", **KEYED)
    folded.clock.pass_ms(RECEIPTS_KEPT_MS)
    await folded.call("write_message", **KEYED | {"idempotency_key": "other"})
    assert (await folded.call("write_message", **KEYED))["message_id"] == first["message_id"]
    folded.clock.pass_ms(1)
    await folded.call("write_message", **KEYED | {"idempotency_key": "third"})
    again = await folded.call("write_message", **KEYED)
    assert again["message_id"] != first["message_id"]


def test_every_command_has_its_rule():
    assert set(DECIDERS) == {WriteMessage, UpdateMessage, DeleteMessage, CaptureEvent, ImportMessage}
