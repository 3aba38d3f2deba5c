"""store/codec.py: events to bytes and back."""

from collections.abc import Sequence

import msgspec
import pytest

from convmem.domain import Domain, Event, Kept, Origin
from convmem.store.codec import Codec, Through
from convmem.store.log import NAME, Log, Position
from tests.support.faulty_files import FaultyFiles
from tests.support.notebook import NOTEBOOK, Added, AddedKept, Struck

LAPTOP, DESKTOP = Origin("laptop", "http", "agent/1"), Origin("desktop", "stdio")


def test_entries_come_back_in_order_with_their_places() -> None:
    codec = Codec([NOTEBOOK])
    entries = [
        (5, 0, (Added(note_id="A", note="日本🟡\x00"), Added(note_id="A", note=""))),
        (3, 1, (Struck(sequence=1),)),
    ]
    payload = codec.encode([LAPTOP, DESKTOP], entries)
    log = Log(FaultyFiles().open(NAME), generation=1, end=Position(0, 7))
    log.append(payload, 2)
    (found,) = log.frames()
    first, second = codec.decode(found)
    assert (first[0].sequence, first[0].at_ms, first[0].origin) == (7, 5, LAPTOP)
    assert first[1] == list(entries[0][2])
    assert (second[0].sequence, second[0].at_ms, second[0].origin) == (8, 3, DESKTOP)
    assert second[1] == list(entries[1][2])


def test_the_payload_is_the_documented_one() -> None:
    payload = Codec([NOTEBOOK]).encode([LAPTOP], [(5, 0, (Struck(sequence=1),))])
    assert msgspec.msgpack.decode(payload) == [
        [["laptop", "http", "agent/1"]],
        [[5, 0, [{"type": "struck", "sequence": 1}]]],
    ]


def test_a_field_that_was_added_later_may_be_missing() -> None:
    class Longer(Event, frozen=True, kw_only=True, tag="struck"):
        sequence: int
        reason: str = "none given"

    later = Domain(name="later", create="", deciders={}, appliers={Longer: lambda *_: None})
    payload = Codec([NOTEBOOK]).encode([LAPTOP], [(5, 0, (Struck(sequence=1),))])
    log = Log(FaultyFiles().open(NAME), generation=1, end=Position(0, 1))
    log.append(payload, 1)
    ((_, events),) = Codec([later]).decode(next(log.frames()))
    assert events == [Longer(sequence=1, reason="none given")]


def test_two_events_with_one_tag_are_refused_at_the_start() -> None:
    class Twin(Event, frozen=True, kw_only=True, tag="struck"):
        other: int

    twin = Domain(name="twin", create="", deciders={}, appliers={Twin: lambda *_: None})
    with pytest.raises(TypeError):
        Codec([NOTEBOOK, twin])


def test_a_header_that_counts_wrongly_is_a_fault_of_ours() -> None:
    codec = Codec([NOTEBOOK])
    log = Log(FaultyFiles().open(NAME), generation=1, end=Position(0, 1))
    log.append(codec.encode([LAPTOP], [(5, 0, (Struck(sequence=1),))]), 2)
    with pytest.raises(AssertionError):
        codec.decode(next(log.frames()))


KEPT = (
    Kept(3, 5, LAPTOP, AddedKept(note_id="A", note="日本🟡\x00")),
    Kept(8, 2, DESKTOP, AddedKept(note_id="B", note="")),
    Kept(8, 2, DESKTOP, AddedKept(note_id="B", note="second")),
    Kept(9, 7, LAPTOP, AddedKept(note_id="C", note="c")),
)


def encoded(codec: Codec, records: Sequence[Kept]) -> bytes:
    return codec.encode_state([(kept, codec.encode_event(kept.event)) for kept in records])


def state_log() -> Log:
    codec = Codec([NOTEBOOK])
    log = Log(FaultyFiles().open(NAME), generation=2, end=Position(0, 1))
    log.append_state(encoded(codec, KEPT), 3, len(KEPT))
    log.append_state(codec.encode_through(Through(last_id="Z")), 12, 0)
    return log


def test_live_records_come_back_each_with_its_own_sequence_time_and_origin() -> None:
    found, _ = state_log().frames()
    records = Codec([NOTEBOOK]).decode(found)
    assert [Kept(place.sequence, place.at_ms, place.origin, *events) for place, events in records] == list(KEPT)


def test_the_end_of_a_state_holds_no_entry_and_says_what_the_store_knows_of_itself() -> None:
    codec = Codec([NOTEBOOK])
    first, last = state_log().frames()
    assert codec.decode(last) == []
    assert codec.decode_through(last) == Through(last_id="Z")
    with pytest.raises(AssertionError):
        codec.decode_through(first)


def test_the_payloads_of_a_state_are_the_documented_ones() -> None:
    codec = Codec([NOTEBOOK])
    assert msgspec.msgpack.decode(encoded(codec, KEPT[:3])) == [
        [["laptop", "http", "agent/1"], ["desktop", "stdio", None]],
        [
            [5, 0, {"type": "added_kept", "note_id": "A", "note": "日本🟡\x00"}, 3],
            [2, 1, {"type": "added_kept", "note_id": "B", "note": ""}, 8],
            [2, 1, {"type": "added_kept", "note_id": "B", "note": "second"}, 8],
        ],
    ]
    assert msgspec.msgpack.decode(codec.encode_through(Through(last_id="Z"))) == {"last_id": "Z"}
    assert msgspec.msgpack.decode(codec.encode_through(Through())) == {}


def test_what_a_later_version_says_at_the_end_of_a_state_is_passed_over() -> None:
    codec = Codec([NOTEBOOK])
    log = Log(FaultyFiles().open(NAME), generation=2, end=Position(0, 1))
    log.append_state(msgspec.msgpack.encode({"last_id": "Z", "added_later": [1]}), 1, 0)
    assert codec.decode_through(next(log.frames())) == Through(last_id="Z")


def test_one_event_alone_has_the_bytes_that_it_has_in_a_payload() -> None:
    codec = Codec([NOTEBOOK])
    assert codec.encode_event(KEPT[0].event) in encoded(codec, KEPT)


def test_a_state_that_counts_wrongly_is_a_fault_of_ours() -> None:
    codec = Codec([NOTEBOOK])
    log = Log(FaultyFiles().open(NAME), generation=2, end=Position(0, 1))
    log.append_state(encoded(codec, KEPT), 3, 1)
    with pytest.raises(AssertionError):
        codec.decode(next(log.frames()))
