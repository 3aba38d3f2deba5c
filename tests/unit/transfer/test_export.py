"""An export is one moment of the store: a manifest that counts, then every live record."""

import json

import pytest

from convmem.transfer import export as export_module
from convmem.transfer.export import export
from tests.support.filed import DOMAINS, exported, records_of
from tests.support.folded import Folded
from tests.support.manual_clock import START_MS


@pytest.fixture
def folded() -> Folded:
    return Folded()


async def test_records_stand_in_the_order_they_were_written_and_the_manifest_counts_them(folded: Folded):
    ids = [await folded.say(f"text {number}") for number in range(5)]
    await folded.call("update_message", message_id=ids[0], content="new")
    await folded.call("delete_message", message_id=ids[2])
    data = exported(folded.connection)
    assert json.loads(data.split(b"\n")[0])["records"] == 4
    assert [record["message_id"] for record in records_of(data)] == [ids[0], ids[1], ids[3], ids[4]]
    assert not data.endswith(b"\n\n")
    assert data.endswith(b"}\n")


async def test_an_empty_store_is_a_manifest(folded: Folded):
    assert len(exported(folded.connection).split(b"\n")) == 2


async def test_pieces_are_whole_lines_of_bounded_size(folded: Folded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(export_module, "EXPORT_PIECE_BYTES", 3_000)
    for number in range(40):
        await folded.say("x" * (number * 17))
    pieces = list(export(folded.connection, DOMAINS, START_MS))
    assert len(pieces) > 3
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert all(len(piece) < 3_000 + 2_000 for piece in pieces)
    assert b"".join(pieces).count(b"\n") == 41


async def test_no_record_points_at_one_that_is_not_there_and_receipts_stay_at_home(folded: Folded):
    first, second = await folded.say("a"), await folded.say("b")
    await folded.call("write_message", session_id="s", role="user", content="keyed", idempotency_key="k")
    relations = [{"type": "r", "message_id": first}, {"type": "r", "message_id": second}]
    await folded.say("c", relations=relations, source_message_ids=[second, first])
    await folded.call("delete_message", message_id=first)
    data = exported(folded.connection)
    *_, last = records_of(data)
    assert last["metadata"]["relations"] == [{"type": "r", "message_id": second}]
    assert last["metadata"]["source_message_ids"] == [second]
    assert {record["type"] for record in records_of(data)} == {"message"}
