"""What meets the store: new, unchanged, refused or in a stored record's place; and what the next generation holds."""

from typing import Any

import pytest

from convmem.errors import CallerError, Conflict, NotFound
from convmem.limits import REVISION_MAX
from convmem.messages import DOMAIN
from convmem.messages.events import MessageKept
from convmem.messages.inputs import CaptureEvent
from convmem.transfer.intake import Plan
from tests.support.filed import ULIDS, exported, folded_from, message, records_of, taken, written
from tests.support.folded import Folded


@pytest.fixture
async def store() -> Folded:
    """A store of three messages, the second changed once, the third pointing at the first."""
    folded = Folded()
    ids = [await folded.say(f"text {number}") for number in range(2)]
    await folded.say("text 2", relations=[{"type": "after", "message_id": ids[0]}])
    folded.clock.pass_ms(9)
    await folded.call("update_message", message_id=ids[1], content="changed")
    return folded


def imported(data: bytes, store: Folded, policy: Any = "reject") -> tuple[Plan, bytes]:
    plan, records = taken(data, store.connection, policy, through=store.sequence)
    sequences = [kept.sequence for kept in records]
    assert sequences == sorted(sequences)
    index = folded_from(records)
    assert DOMAIN.check(index) == []
    return plan, exported(index)


async def test_the_law_export_import_export(store: Folded):
    data = exported(store.connection)
    plan, again = imported(data, Folded())
    assert plan == Plan(new=3, unchanged=0, overwritten=0)
    assert again == data


async def test_what_is_known_and_equal_is_unchanged(store: Folded):
    data = exported(store.connection)
    for policy in ("reject", "overwrite"):
        assert imported(data, store, policy) == (Plan(new=0, unchanged=3, overwritten=0), data)


async def test_new_records_come_behind_in_the_order_of_the_file(store: Folded):
    before = records_of(exported(store.connection))
    more = [message(4), message(1), message(7)]
    plan, after = imported(written([before[1], *more]), store)
    assert plan == Plan(new=3, unchanged=1, overwritten=0)
    assert records_of(after) == [*before, *more]


async def test_a_known_record_with_other_content_refuses_the_file(store: Folded):
    records = records_of(exported(store.connection))
    with pytest.raises(Conflict) as refused:
        imported(written([message(0), records[0] | {"content": "other"}]), store)
    assert refused.value.details["line"] == 3


@pytest.mark.parametrize(("revision", "expected"), [(1, 3), (2, 3), (9, 9)])
async def test_overwrite_keeps_the_place_and_raises_the_revision_above_both(
    store: Folded, revision: int, expected: int
):
    records = records_of(exported(store.connection))
    other = records[1] | {"content": "theirs", "revision": revision, "role": "assistant"}
    plan, after = imported(written([message(0), other]), store, "overwrite")
    assert plan == Plan(new=1, unchanged=0, overwritten=1)
    assert records_of(after) == [records[0], other | {"revision": expected}, records[2], message(0)]


async def test_a_revision_that_cannot_rise_is_refused_with_its_line():
    store = Folded()
    _, records = taken(written([message(0, revision=REVISION_MAX)]))
    store.connection = folded_from(records)
    with pytest.raises(Conflict) as refused:
        taken(written([message(0, content="x")]), store.connection, "overwrite", through=1)
    assert refused.value.details["line"] == 2


async def test_references_may_point_forward_and_into_the_store(store: Folded):
    stored = records_of(exported(store.connection))[0]["message_id"]
    records = [
        message(0, metadata={"relations": [{"type": "r", "message_id": ULIDS[1]}], "source_message_ids": [stored]}),
        message(1, metadata={"source_message_ids": [ULIDS[0], ULIDS[1]]}),
    ]
    plan, after = imported(written(records), store)
    assert plan.new == 2
    assert records_of(after)[3:] == records


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"relations": [{"type": "r", "message_id": ULIDS[9]}]}, "metadata.relations.0.message_id"),
        ({"source_message_ids": [ULIDS[0], ULIDS[9]]}, "metadata.source_message_ids.1"),
    ],
)
def test_a_reference_to_nothing_refuses_the_file(metadata: Any, field: str):
    with pytest.raises(NotFound) as refused:
        taken(written([message(0), message(1, metadata=metadata)]))
    assert refused.value.details == {"line": 3, "field": field}


async def test_a_deleted_message_comes_back_as_new(store: Folded):
    data = exported(store.connection)
    first = records_of(data)[0]
    await store.call("delete_message", message_id=first["message_id"])
    # The stored one has lost its relation by now, the file's has it: it is different.
    with pytest.raises(CallerError):
        imported(data, store)
    plan, after = imported(data, store, "overwrite")
    assert plan == Plan(new=1, unchanged=1, overwritten=1)
    assert records_of(after)[-1] == first


async def test_receipts_stay_with_their_store(store: Folded):
    answer = await store.call("write_message", session_id="s", role="user", content="keyed", idempotency_key="k")
    plan, records = taken(written([message(0)]), store.connection, through=store.sequence)
    assert plan.new == 1
    kept = [kept.event for kept in records if type(kept.event).__name__ == "ReceiptKept"]
    assert [event.message_id for event in kept] == [answer["message_id"]]


SEEN = {"kind": "prompt", "event_id": "e", "directory": "/srv"}


async def captured() -> Folded:
    """A store of three captured messages, the second of them deleted."""
    folded = Folded()
    for number in range(3):
        facts = {"event_id": f"own {number}", "kind": "prompt", "session_id": "s", "content": f"own {number}"}
        folded.commit(CaptureEvent(**facts, at=5, directory="/srv"))
    found = records_of(exported(folded.connection))
    await folded.call("delete_message", message_id=found[1]["message_id"])
    return folded


async def test_what_hooks_captured_goes_out_and_in_with_its_facts_and_without_its_number():
    folded = await captured()
    data = exported(folded.connection)
    first = records_of(data)[0]
    assert first["capture"] == {"kind": "prompt", "event_id": "own 0", "directory": "/srv"}
    assert (first["timestamp"], first["metadata"]["memory_tier"], "number" in first) == (5, "short", False)
    plan, again = imported(data, Folded())
    assert (plan.new, again) == (2, data)
    assert imported(data, folded)[0] == Plan(new=0, unchanged=2, overwritten=0)


async def test_captured_records_of_a_file_get_numbers_above_all_that_were_given():
    folded = await captured()
    file = written([message(0, capture=SEEN), message(1), message(2, capture=SEEN)])
    _, records = taken(file, folded.connection, through=folded.sequence, last_number=folded.last_number)
    numbers = [kept.event.number for kept in records if isinstance(kept.event, MessageKept)]
    assert numbers == [1, 3, 4, None, 5]
    assert DOMAIN.check(folded_from(records)) == []


async def test_a_record_that_takes_a_captured_ones_place_has_its_number_if_it_is_captured_itself():
    folded = await captured()
    own = records_of(exported(folded.connection))
    plain = {name: value for name, value in own[1].items() if name != "capture"}
    file = written([own[0] | {"content": "theirs"}, plain])
    _, records = taken(file, folded.connection, "overwrite", through=folded.sequence, last_number=3)
    assert [kept.event.number for kept in records if isinstance(kept.event, MessageKept)] == [1, None]
    _, records = taken(written(own[1:]), folded_from(records), "overwrite", through=folded.sequence, last_number=3)
    assert [kept.event.number for kept in records if isinstance(kept.event, MessageKept)] == [1, 4]


@pytest.mark.parametrize(
    ("capture", "field"),
    [
        ({"kind": "thought", "event_id": "e"}, "capture.kind"),
        ({"kind": "error", "event_id": "e"}, "capture.kind"),
        ({"kind": "prompt"}, "capture.event_id"),
        ({"kind": "prompt", "event_id": "e", "number": 5}, "capture.number"),
        ([], "capture"),
    ],
)
def test_capture_facts_that_are_none_refuse_the_file(capture: Any, field: str):
    with pytest.raises(CallerError) as refused:
        taken(written([message(0, capture=capture)]))
    assert refused.value.details["field"] == field
