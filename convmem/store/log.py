"""The append-only file of frames: where it ends, how it grows, how it is read.

The log knows its own end (`Position`) and writes there; nobody else moves it. An append is durable only after sync(),
and a log whose file lost its name is not durable at all: sync() refuses then.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from convmem.errors import StoreFailed
from convmem.files import File
from convmem.limits import MIB
from convmem.store import frame
from convmem.store.frame import HEADER_SIZE, Fault, Header

NAME = "convmem.log"
READ_AHEAD_BYTES = 1 * MIB


class Position(NamedTuple):
    """An end of the log: byte offset, and the sequence that the next frame begins with."""

    offset: int
    next_sequence: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One batch as it stands in the file."""

    offset: int
    header: Header
    payload: bytes

    @property
    def end(self) -> Position:
        """The position behind this frame."""
        return Position(self.offset + self.header.frame_size, self.header.next_sequence)


class Reader:
    """Reads frames one after another from a file that may grow behind them, never past `end`."""

    def __init__(self, file: File, *, end: int) -> None:
        self._file = file
        self._end = end
        self._block = b""
        self._block_offset = 0

    def header(self, offset: int) -> Header | Fault:
        """Return the header at `offset`, whatever its payload is like, or the fault there."""
        return frame.decode_header(self._bytes(offset, HEADER_SIZE))

    def frame(self, offset: int) -> Frame | Fault:
        """Return the frame at `offset`, NONE at the end, or the fault there."""
        assert 0 <= offset <= self._end
        if offset == self._end:
            return Fault.NONE
        header = self.header(offset)
        if isinstance(header, Fault):
            return header
        if offset + header.frame_size > self._end:
            return Fault.SHORT_PAYLOAD
        payload = self._bytes(offset + HEADER_SIZE, header.payload_size)
        if not frame.payload_is_whole(header, payload):
            return Fault.BAD_PAYLOAD
        return Frame(offset, header, payload)

    def walk(self, offset: int, generation: int, before: Header | None = None) -> Iterator[Frame | Fault]:
        """Yield the frames from `offset` on, each in its place, then the fault that ends the walk (NONE at a good end).

        `before` is the header of the frame before `offset`, if it is known.
        """
        while True:
            found = self.frame(offset)
            if isinstance(found, Fault):
                is_cut_short = found is Fault.NONE and before is not None and before.is_inside_state
                yield Fault.STATE_NOT_ENDED if is_cut_short else found
                return
            if found.header.generation != generation or not frame.may_follow(found.header, before):
                yield Fault.OUT_OF_PLACE
                return
            yield found
            before, offset = found.header, found.end.offset

    def has_frame_after(self, offset: int) -> bool:
        """True if a whole frame begins anywhere behind `offset`: then what stands at `offset` is damage, not a cut."""
        at = offset + 1
        while at < self._end:
            block = self._file.read(at, min(READ_AHEAD_BYTES, self._end - at))
            found = block.find(frame.MAGIC)
            while found != -1:
                if isinstance(self.frame(at + found), Frame):
                    return True
                found = block.find(frame.MAGIC, found + 1)
            # A magic may lie across two blocks.
            at += max(1, len(block) - len(frame.MAGIC) + 1)
        return False

    def _bytes(self, offset: int, size: int) -> bytes:
        size = min(size, self._end - offset)
        start = offset - self._block_offset
        if start < 0 or start + size > len(self._block):
            self._block = self._file.read(offset, min(max(size, READ_AHEAD_BYTES), self._end - offset))
            self._block_offset, start = offset, 0
        return self._block[start : start + size]


class Log:
    """The log of one store, positioned behind its last whole frame."""

    def __init__(self, file: File, *, generation: int, end: Position) -> None:
        assert end.next_sequence >= 1
        self._file = file
        self.generation = generation
        self.end = end

    @staticmethod
    def size_of(payload: bytes) -> int:
        """Bytes that append() will add for this payload."""
        return HEADER_SIZE + len(payload)

    def encoded(self, payload: bytes, entry_count: int) -> bytes:
        """The frame of a batch as it would stand at the end."""
        return self._encoded(frame.BATCH, self.end.next_sequence, entry_count, payload)

    def write(self, data: bytes, entry_count: int) -> None:
        """Write the frame that encoded() gave. OSError: any part of it may be there; call cut_back()."""
        self._file.write(self.end.offset, data)
        self.end = Position(self.end.offset + len(data), self.end.next_sequence + entry_count)

    def append(self, payload: bytes, entry_count: int) -> None:
        """Write one batch at the end. OSError: any part of it may be there; call cut_back()."""
        self.write(self.encoded(payload, entry_count), entry_count)

    def append_state(self, payload: bytes, sequence: int, entry_count: int) -> None:
        """Write one frame of the state that a later generation opens with; `entry_count` 0 ends it."""
        assert sequence >= self.end.next_sequence or self.end.offset == 0
        data = self._encoded(frame.STATE, sequence, entry_count, payload)
        self._file.write(self.end.offset, data)
        self.end = Position(self.end.offset + len(data), sequence + (entry_count == 0))

    def _encoded(self, kind: int, sequence: int, entry_count: int, payload: bytes) -> bytes:
        return frame.encode(
            kind=kind, generation=self.generation, sequence=sequence, entry_count=entry_count, payload=payload
        )

    def sync(self) -> None:
        """Return when everything appended is durable. OSError or StoreFailed: nobody knows what is."""
        self._file.sync()
        if not self._file.is_linked():
            raise StoreFailed("the log file was removed while the daemon was running")

    def cut_back(self, end: Position) -> None:
        """Make `end` the end again and drop what was written behind it. OSError: the store cannot go on."""
        assert end.offset <= self.end.offset
        self._file.truncate(end.offset)
        self.end = end

    def frames(self, start: int = 0) -> Iterator[Frame]:
        """Yield the frames from `start` to the end; they were verified when the log was opened or written."""
        reader = Reader(self._file, end=self.end.offset)
        offset = start
        while offset < self.end.offset:
            found = reader.frame(offset)
            if isinstance(found, Fault):
                raise StoreFailed(f"the log changed under the daemon: {found.value}", offset=offset, fault=found.value)
            yield found
            offset = found.end.offset

    def until(self, end: Position) -> "Log":
        """The same log as it was when it ended at `end`, to read from; it may grow meanwhile."""
        return Log(self._file, generation=self.generation, end=end)

    def close(self) -> None:
        """Close the file; what was synced stays."""
        self._file.close()
