"""One frame, which is one batch: bytes <-> values. No I/O, no clock, no SQLite.

    offset size field           little endian
    0      4    magic           ff 63 76 6d; 0xff is in no UTF-8, so no text in a payload can look like a frame
    4      1    version         of this format; a greater one is LOG_TOO_NEW
    5      1    kind            1 = batch, 2 = state
    6      2    reserved        0
    8      8    generation      which rewrite of the log this is; 1, 2, 3, …
    16     8    sequence        batch: of the first entry inside; 1, 2, 3, … without a gap
                                state: of the first record inside; rising, with gaps
                                state without entries: N, the last sequence that the state speaks for, or 0
    24     4    entry_count     batch: 1 or more; state: 0 in the frame that ends it
    28     4    payload_size    bytes, at most FRAME_BYTES_MAX - HEADER_SIZE
    32     4    payload_crc     CRC-32 (zlib) of the payload
    36     4    header_crc      CRC-32 of bytes 0..35
    40     n    payload         msgpack, see store/codec.py

The first generation is batches only. Each later one opens with its state: frames of live records, then one without
entries that says `through N`; its batches go on at N + 1. A state is whole or the file is damaged: the file got its
name only after all of it was synced.

The header has a checksum of its own: without one, a flipped bit in payload_size would make a long run of good frames
look like one torn frame, and they would be cut off.

A batch is one frame, not many: a disk may save the end of a write before its start, and a whole frame behind a
damaged one must mean damage, never an unlucky power cut.
"""

import struct
from dataclasses import dataclass
from enum import Enum
from zlib import crc32

from convmem.limits import FRAME_BYTES_MAX

MAGIC = b"\xffcvm"
VERSION = 1
BATCH, STATE = 1, 2
HEADER = struct.Struct("<4sBBHQQIIII")
HEADER_SIZE = 40
assert HEADER.size == HEADER_SIZE
PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - HEADER_SIZE


class Fault(Enum):
    """Why no frame could be read at an offset."""

    NONE = "the log ends with a whole frame"
    SHORT_HEADER = "the file ends inside a header"
    BAD_HEADER = "the header is damaged"
    SHORT_PAYLOAD = "the file ends inside a payload"
    BAD_PAYLOAD = "the payload is damaged"
    OUT_OF_PLACE = "a whole frame of another place or generation"
    STATE_NOT_ENDED = "the state that the log opens with is not whole"
    TOO_NEW = "a frame of a newer format"


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before a payload."""

    kind: int
    generation: int
    sequence: int
    entry_count: int
    payload_size: int
    payload_crc: int
    checksum: int = 0

    @property
    def next_sequence(self) -> int:
        """The sequence that the next frame must begin with; inside a state, the least that it may."""
        if self.kind == BATCH:
            return self.sequence + self.entry_count
        return self.sequence + 1 if self.is_end_of_state else self.sequence

    @property
    def is_end_of_state(self) -> bool:
        """True for the frame that says `through N`."""
        return self.kind == STATE and self.entry_count == 0

    @property
    def is_inside_state(self) -> bool:
        """True for a frame that more of the state must follow."""
        return self.kind == STATE and self.entry_count > 0

    @property
    def frame_size(self) -> int:
        """Bytes of header and payload together."""
        return HEADER_SIZE + self.payload_size


def encode(*, kind: int = BATCH, generation: int, sequence: int, entry_count: int, payload: bytes) -> bytes:
    """Return the bytes of one frame."""
    assert kind in (BATCH, STATE)
    assert generation >= 1
    assert entry_count >= 1 or kind == STATE
    assert sequence >= sequence_min(kind, entry_count)
    assert len(payload) <= PAYLOAD_BYTES_MAX
    head = HEADER.pack(MAGIC, VERSION, kind, 0, generation, sequence, entry_count, len(payload), crc32(payload), 0)[:-4]
    return head + crc32(head).to_bytes(4, "little") + payload


def checksum_of(data: bytes) -> int:
    """The header's checksum in the bytes of a frame, which covers the payload's: frames that differ have others."""
    return int.from_bytes(data[HEADER_SIZE - 4 : HEADER_SIZE], "little")


def decode_header(data: bytes) -> Header | Fault:
    """Read a header from exactly HEADER_SIZE bytes, or fewer where the file ends (SHORT_HEADER)."""
    assert len(data) <= HEADER_SIZE
    if len(data) < HEADER_SIZE:
        return Fault.SHORT_HEADER
    magic, version, kind, _, generation, sequence, entry_count, size, payload_crc, header_crc = HEADER.unpack(data)
    if magic != MAGIC or crc32(data[:-4]) != header_crc:
        return Fault.BAD_HEADER
    if version != VERSION or kind not in (BATCH, STATE):
        # Whole by its checksum, so it was meant: a convmem that knows more has written here.
        return Fault.TOO_NEW
    if generation < 1 or (entry_count < 1 and kind == BATCH) or size > PAYLOAD_BYTES_MAX:
        return Fault.BAD_HEADER
    if sequence < sequence_min(kind, entry_count):
        return Fault.BAD_HEADER
    return Header(kind, generation, sequence, entry_count, size, payload_crc, header_crc)


def sequence_min(kind: int, entry_count: int) -> int:
    """The least sequence of a frame: a state that speaks for nothing ends with 0."""
    return 0 if kind == STATE and entry_count == 0 else 1


def may_follow(header: Header, before: Header | None) -> bool:
    """True if a frame may stand behind `before`, or at the beginning of a log."""
    if before is None:
        return header.is_inside_state or header.is_end_of_state or header.sequence == 1
    if header.generation != before.generation:
        return False
    if before.is_inside_state:
        return header.kind == STATE and header.sequence >= before.sequence
    return header.kind == BATCH and header.sequence == before.next_sequence


def payload_is_whole(header: Header, payload: bytes) -> bool:
    """True if `payload` is what the header was written for."""
    return len(payload) == header.payload_size and crc32(payload) == header.payload_crc
