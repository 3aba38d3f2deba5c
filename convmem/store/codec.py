"""Events of all domains <-> the payload of a frame (msgpack), as store/frame.py lays it out.

    [[origin, …], [[at_ms, origin_index, [event, …]], …]]      origin = [device, transport, client]

An event is a map with its tag under `type`; a field that holds its default is left out, so fields can be added for
ever and old entries still decode. Origins stand once a frame: a batch mostly has one.
"""

from collections.abc import Sequence
from typing import Any, Union

import msgspec

from convmem.domain import Domain, Event, Origin, Place
from convmem.store.log import Frame

Entry = tuple[int, int, Sequence[Event]]  # at_ms, index of the origin, events


class Codec:
    """Events of all domains <-> the payload of a frame. Two events with one tag are refused here, at start."""

    def __init__(self, domains: Sequence[Domain]) -> None:
        kinds = [kind for domain in domains for kind in domain.appliers]
        events: Any = Union[tuple(kinds)]  # noqa: UP007 - made at run time
        entries: Any = tuple[list[Origin], list[tuple[int, int, list[events]]]]
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(entries)
        self._encoder = msgspec.msgpack.Encoder()

    def encode(self, origins: Sequence[Origin], entries: Sequence[Entry]) -> bytes:
        return self._encoder.encode((origins, entries))

    def decode(self, frame: Frame) -> list[tuple[Place, list[Event]]]:
        """Return (place, events) of each entry, in order."""
        origins, entries = self._decoder.decode(frame.payload)
        assert len(entries) == frame.header.entry_count
        return [
            (Place(sequence, at_ms, origins[index]), events)
            for sequence, (at_ms, index, events) in enumerate(entries, frame.header.sequence)
        ]
