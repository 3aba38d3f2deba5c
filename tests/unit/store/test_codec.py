"""store/codec.py: events to bytes and back."""

import msgspec
import pytest

from convmem.domain import Domain, Event, Origin
from convmem.store.codec import Codec
from convmem.store.log import NAME, Log, Position
from tests.support.faulty_files import FaultyFiles
from tests.support.notebook import NOTEBOOK, Added, Struck

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
