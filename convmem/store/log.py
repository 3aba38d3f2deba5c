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

    def frame(self, offset: int) -> Frame | Fault:
        """Return the frame at `offset`, NONE at the end, or the fault there."""
        assert 0 <= offset <= self._end
        if offset == self._end:
            return Fault.NONE
        header = frame.decode_header(self._bytes(offset, HEADER_SIZE))
        if isinstance(header, Fault):
            return header
        if offset + header.frame_size > self._end:
            return Fault.SHORT_PAYLOAD
        payload = self._bytes(offset + HEADER_SIZE, header.payload_size)
        if not frame.payload_is_whole(header, payload):
            return Fault.BAD_PAYLOAD
        return Frame(offset, header, payload)

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

    def append(self, payload: bytes, entry_count: int) -> None:
        """Write one frame at the end. OSError: any part of it may be there; call cut_back()."""
        data = frame.encode(
            generation=self.generation, sequence=self.end.next_sequence, entry_count=entry_count, payload=payload
        )
        self._file.write(self.end.offset, data)
        self.end = Position(self.end.offset + len(data), self.end.next_sequence + entry_count)

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
                raise StoreFailed(f"the log changed under the daemon: {found.value}", offset=offset)
            yield found
            offset = found.end.offset

    def close(self) -> None:
        """Close the file; what was synced stays."""
        self._file.close()
