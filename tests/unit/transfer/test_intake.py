"""What meets the store: new, unchanged, refused or in a stored record's place; and what the next generation holds."""

from typing import Any

import apsw
import pytest

from convmem.errors import CallerError, Conflict, NotFound
from convmem.limits import REVISION_MAX, TIME_MS_MAX
from convmem.messages import DOMAIN
from convmem.messages.events import FingerprintKept, MessageKept
from convmem.messages.inputs import CaptureEvent
from convmem.transfer.intake import Plan
from tests.support.filed import ULIDS, exported, folded_from, message, records_of, taken, written
from tests.support.folded import Folded, tables
from tests.support.manual_clock import ManualClock


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


def fingerprints(connection: apsw.Connection) -> list[Any]:
    return connection.execute("SELECT * FROM messages_fingerprint ORDER BY sequence").fetchall()


def seen(number: int, event_id: str, **more: Any) -> dict[str, Any]:
    """A captured record of a file; `more` is said otherwise."""
    return message(number, capture={"kind": "prompt", "event_id": event_id}, **more)


def is_known(connection: apsw.Connection, event_id: str) -> bool:
    """True if a hook's event of the session of all these records would not be stored again."""
    # Its ids are none of those that a file has from another such store.
    folded = Folded(clock=ManualClock(bits=1 << 70))
    folded.connection, folded.sequence, folded.last_number = connection, 1_000, 1_000
    connection.execute("SAVEPOINT asked")
    # Said otherwise than all records, so that it is known by its name alone.
    command = CaptureEvent(event_id=event_id, kind="prompt", session_id="s", content="asked")
    replayed: bool = folded.commit(command)["replayed"]
    connection.execute("ROLLBACK TO asked")
    connection.execute("RELEASE asked")
    return replayed


async def test_an_event_that_a_file_brought_is_known_when_its_hook_sends_it_again():
    folded = await captured()
    _, records = taken(exported(folded.connection))
    index = folded_from(records)
    assert DOMAIN.check(index) == []
    events = ["own 0", "own 1", "own 2", "own 3"]
    assert [is_known(index, event_id) for event_id in events] == [True, False, True, False], "what was deleted is gone"
    left = [(kept.sequence, kept.at_ms) for kept in records if isinstance(kept.event, FingerprintKept)]
    assert left == [(kept.sequence, kept.at_ms) for kept in records if isinstance(kept.event, MessageKept)]
    assert tables(folded_from(list(DOMAIN.live(index)))) == tables(index), "a compaction changes nothing about it"


def test_two_records_of_one_event_are_two_messages_and_one_event():
    file = written([seen(0, "e"), message(1), seen(2, "e"), seen(3, "e", session_id="other")])
    plan, records = taken(file)
    assert plan == Plan(new=4, unchanged=0, overwritten=0)
    index = folded_from(records)
    assert DOMAIN.check(index) == []
    assert [row[-1] for row in fingerprints(index)] == [1, 4], "the first of the file is believed"
    assert exported(index).split(b"\n")[1:] == file.split(b"\n")[1:]
    assert tables(folded_from(list(DOMAIN.live(index)))) == tables(index)


async def test_what_the_store_knows_of_an_event_is_left_as_it_is():
    folded = await captured()
    before = fingerprints(folded.connection)
    assert len(before) == 3
    file = written([seen(0, "own 1"), seen(1, "new")])
    _, records = taken(file, folded.connection, through=folded.sequence, last_number=3)
    assert len(records) == 2 + 3 + 2 + 1
    assert fingerprints(folded_from(records))[:3] == before
    assert is_known(folded_from(records), "new")


@pytest.mark.parametrize("event_id", ["own 2", "other"])
async def test_a_record_in_the_place_of_another_leaves_its_event_too(event_id: str):
    folded = await captured()
    plain = await folded.say("between")
    before = fingerprints(folded.connection)
    taking = seen(0, event_id, message_id=plain)
    _, records = taken(written([taking]), folded.connection, "overwrite", through=folded.sequence, last_number=3)
    assert [kept.sequence for kept in records] == sorted(kept.sequence for kept in records)
    index = folded_from(records)
    assert DOMAIN.check(index) == []
    assert is_known(index, event_id)
    assert fingerprints(index)[:3] == before
    assert [row[-1] for row in fingerprints(index)[3:]] == ([] if event_id == "own 2" else [folded.sequence])


async def test_no_time_that_a_file_says_makes_the_store_forget_an_event():
    folded = await captured()
    ends = [seen(0, "first", timestamp=0, updated_at=0), seen(1, "last", timestamp=TIME_MS_MAX, updated_at=TIME_MS_MAX)]
    _, records = taken(written(ends), folded.connection, through=folded.sequence, last_number=3)
    index = folded_from(records)
    assert DOMAIN.check(index) == []
    assert [is_known(index, event_id) for event_id in ("own 0", "own 1", "own 2", "last")] == [True] * 4
    assert fingerprints(index)[:3] == fingerprints(folded.connection)


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
