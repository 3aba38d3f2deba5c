"""What is live, as state events that make the same index anew."""

from convmem.domain import Waste
from convmem.messages import DOMAIN, kept
from convmem.messages.events import FingerprintKept, MessageKept, ReceiptKept
from convmem.messages.inputs import CaptureEvent
from tests.support.filed import folded_from
from tests.support.folded import Folded, empty_index, tables

# What compaction takes away is the only difference.
VAIN = {"messages_total", "messages_gone"}


async def stocked() -> Folded:
    folded = Folded()
    first = await folded.say("one", tags=["a", "b"], project="p", summary="sum")
    second = await folded.say("two", relations=[{"type": "r", "message_id": first}], source_message_ids=[first])
    await folded.call("write_message", session_id="t", role="user", content="keyed", idempotency_key="k")
    gone = await folded.call("write_message", session_id="t", role="user", content="gone", idempotency_key="l")
    folded.clock.pass_ms(50)
    await folded.call("update_message", message_id=second, content="zwei", metadata={"importance": 3})
    await folded.call("delete_message", message_id=gone["message_id"])
    return folded


async def test_an_index_folded_from_the_state_is_the_one_it_was_taken_from():
    folded = await stocked()
    again = folded_from(list(kept.live(folded.connection)))
    before, after = tables(folded.connection), tables(again)
    assert {name: rows for name, rows in before.items() if name not in VAIN} == {
        name: rows for name, rows in after.items() if name not in VAIN
    }
    assert DOMAIN.check(again) == []


async def test_records_come_by_rising_sequence_and_a_receipt_behind_its_message():
    records = list(kept.live((await stocked()).connection))
    assert [(record.sequence, type(record.event)) for record in records] == [
        (1, MessageKept),
        (2, MessageKept),
        (3, MessageKept),
        (3, ReceiptKept),
        (4, ReceiptKept),
    ]


async def test_what_points_at_nothing_is_left_out_and_the_rest_is_as_it_was():
    folded = await stocked()
    first, second = (record.event for record in list(kept.messages(folded.connection))[:2])
    assert isinstance(first, MessageKept)
    assert isinstance(second, MessageKept)
    await folded.call("delete_message", message_id=first.message_id)
    assert kept.waste(folded.connection) == Waste(deleted=2, superseded=1, dangling=2)
    after = kept.stored(folded.connection, second.message_id)
    assert after is not None
    assert isinstance(after.event, MessageKept)
    assert (after.event.relations, after.event.source_message_ids) == ((), ())
    assert (after.event.revision, after.event.updated_at) == (second.revision, second.updated_at)
    again = folded_from(list(kept.live(folded.connection)))
    assert kept.waste(again) == Waste()


async def test_a_captured_message_leaves_the_fingerprint_that_its_event_left():
    folded = Folded()
    folded.commit(CaptureEvent(event_id="e", kind="prompt", session_id="s", content="seen"))
    await folded.say("said")
    seen, fingerprint, said = kept.live(folded.connection)
    assert isinstance(fingerprint.event, FingerprintKept)
    elsewhere = empty_index()
    assert kept.left(elsewhere, seen) == fingerprint.event
    assert kept.left(elsewhere, said) is None
    assert kept.left(folded.connection, seen) is None, "what is known is left as it is"


async def test_one_message_and_a_page_are_found_as_the_whole_has_them():
    folded = await stocked()
    every = list(kept.messages(folded.connection))
    assert kept.stored(folded.connection, "7" * 26) is None
    for record in every:
        assert isinstance(record.event, MessageKept)
        assert kept.stored(folded.connection, record.event.message_id) == record
    assert list(kept.page(folded.connection, after=1, project=None, limit=1)) == every[1:2]
    assert list(kept.page(folded.connection, after=0, project="p", limit=9)) == every[:1]
