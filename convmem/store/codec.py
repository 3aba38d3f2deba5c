"""Events of all domains <-> the payloads of frames (msgpack).

    batch           [[origin, …], [[at_ms, origin_index, [event, …]], …]]          origin = [device, transport, client]
    state           [[origin, …], [[at_ms, origin_index, event, sequence], …]]     live records, by rising sequence
    end of state    {"last_id": …, "last_number": …, "store_id": …}                what the store knows of itself

An event is a map with its tag under `type`; a field that holds its default is left out, so fields can be added for
ever and old entries still decode. Origins stand once a frame: a batch mostly has one.
"""

from collections.abc import Sequence
from typing import Any, Union

import msgspec

from convmem.domain import Domain, Event, Kept, Origin, Place
from convmem.store.log import Frame
from convmem.store.made import Made

Entry = tuple[int, int, Sequence[Event]]  # at_ms, index of the origin, events


class Through(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What ends a state: the last id and number that the store itself had given out (made.py), and which store it is:
    two that are equal by chance, or by an import, are not one.
    """

    last_id: str = ""
    last_number: int = 0
    store_id: str = ""

    @property
    def made(self) -> Made:
        """What the store had given out."""
        return Made(self.last_id, self.last_number)


class Codec:
    """Events of all domains <-> the payloads of frames. Two events with one tag are refused here, at start."""

    def __init__(self, domains: Sequence[Domain]) -> None:
        kinds = [kind for domain in domains for kind in domain.appliers]
        events: Any = Union[tuple(kinds)]  # noqa: UP007 - made at run time
        batch: Any = tuple[list[Origin], list[tuple[int, int, list[events]]]]
        state: Any = tuple[list[Origin], list[tuple[int, int, events, int]]]
        self._batches: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(batch)
        self._states: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(state)
        self._throughs = msgspec.msgpack.Decoder(Through)
        self._encoder = msgspec.msgpack.Encoder()

    def encode(self, origins: Sequence[Origin], entries: Sequence[Entry]) -> bytes:
        """The payload of a batch."""
        return self._encoder.encode((origins, entries))

    def encode_event(self, event: Event) -> bytes:
        """One event alone, as it stands in a payload: the same fact has the same bytes."""
        return self._encoder.encode(event)

    def encode_state(self, records: Sequence[tuple[Kept, bytes]]) -> bytes:
        """The payload of a frame of live records, each with its event as encode_event() gave it."""
        origins: dict[Origin, int] = {}
        entries = [
            (kept.at_ms, origins.setdefault(kept.origin, len(origins)), msgspec.Raw(event), kept.sequence)
            for kept, event in records
        ]
        return self._encoder.encode((list(origins), entries))

    def encode_through(self, through: Through) -> bytes:
        """The payload of the frame that ends a state."""
        return self._encoder.encode(through)

    def decode(self, frame: Frame) -> list[tuple[Place, list[Event]]]:
        """Return (place, events) of each entry, in order; none for the end of a state."""
        if frame.header.is_end_of_state:
            return []
        if frame.header.is_inside_state:
            origins, records = self._states.decode(frame.payload)
            assert len(records) == frame.header.entry_count
            return [(Place(sequence, at_ms, origins[index]), [event]) for at_ms, index, event, sequence in records]
        origins, entries = self._batches.decode(frame.payload)
        assert len(entries) == frame.header.entry_count
        return [
            (Place(sequence, at_ms, origins[index]), events)
            for sequence, (at_ms, index, events) in enumerate(entries, frame.header.sequence)
        ]

    def decode_through(self, frame: Frame) -> Through:
        """What the end of a state says."""
        assert frame.header.is_end_of_state
        return self._throughs.decode(frame.payload)
