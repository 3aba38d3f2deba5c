"""A log that may be damaged anywhere, read as far as it can be: whole frames, and the gaps between them.

A start stops at the first fault (recovery.py); whoever saves what is left goes on behind it. The next whole frame is
looked for byte by byte: magic, checksum of the header, checksum of the payload, and its place in the order of the log.
A magic is in no text, so no message can be taken for a frame. Places of the disk that cannot be read at all count as
zeros.

Rejected: going on where a damaged frame says that it ends. Its header may be what is damaged.
"""

import errno
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from convmem.errors import LogTooNew
from convmem.files import File
from convmem.limits import MIB
from convmem.store import log
from convmem.store.frame import BATCH, MAGIC, Fault, Header
from convmem.store.log import Frame, Reader

BLOCK_BYTES = 4096


class Gap(NamedTuple):
    """Bytes of the log that no frame could be made of, and what stands where they begin."""

    offset: int
    size: int
    reason: str


class Wreck:
    """One log, open for reading. LogTooNew from all of it: what a newer convmem has written is not ours to judge."""

    def __init__(self, file: File) -> None:
        # A Reader only reads.
        self._file = cast(File, Forgiving(file))
        self.size = file.size()

    def generation(self) -> int | None:
        """The generation of this log: that of most bytes in whole frames; None if there is no whole frame."""
        sizes: Counter[int] = Counter()
        for found in self._frames(0, self.size, lambda header: True):
            sizes[found.header.generation] += found.header.frame_size
        return sizes.most_common(1)[0][0] if sizes else None

    def header(self, offset: int) -> Header | None:
        """The header at an offset, whatever its payload is like; None if there is none that is whole."""
        found = Reader(self._file, end=self.size).header(offset) if offset < self.size else None
        return found if isinstance(found, Header) else None

    def has_frame(self, offset: int) -> bool:
        """True if a whole frame, of whatever place or generation, begins at an offset or anywhere behind it."""
        return next(self._frames(offset, self.size, lambda header: True), None) is not None

    def pieces(self, generation: int, start: int, end: int, least: int) -> Iterator[Frame | Gap]:
        """Yield what lies between two byte offsets, in order. Frames are whole, of this generation, and none stands
        before sequence `least` or behind a greater one; a state opens the log, if anything does.
        """
        offset, before = start, None

        def fits(header: Header) -> bool:
            may_be_state = start == 0 if before is None else before.is_inside_state
            is_in_order = header.sequence >= (least if before is None else before.next_sequence)
            return header.generation == generation and is_in_order and (header.kind == BATCH or may_be_state)

        for found in self._frames(start, end, fits):
            if found.offset > offset:
                yield self._gap(offset, found.offset)
            yield found
            offset, before = found.end.offset, found.header
        if offset < end:
            yield self._gap(offset, end)

    def _gap(self, offset: int, end: int) -> Gap:
        found = Reader(self._file, end=self.size).frame(offset)
        return Gap(offset, end - offset, (found if isinstance(found, Fault) else Fault.OUT_OF_PLACE).value)

    def _frames(self, offset: int, end: int, fits: Callable[[Header], bool]) -> Iterator[Frame]:
        """Yield each whole frame that `fits`, as it is asked when it is met."""
        reader = Reader(self._file, end=end)
        while offset < end:
            found = _whole(reader, offset)
            if found is None or not fits(found.header):
                found = self._search(reader, offset + 1, end, fits)
                if found is None:
                    return
            yield found
            offset = found.end.offset

    def _search(self, reader: Reader, at: int, end: int, fits: Callable[[Header], bool]) -> Frame | None:
        while at < end:
            block = self._file.read(at, min(MIB, end - at))
            place = block.find(MAGIC)
            while place != -1:
                found = _whole(reader, at + place)
                if found is not None and fits(found.header):
                    return found
                place = block.find(MAGIC, place + 1)
            # A magic may lie across two blocks.
            at += max(1, len(block) - len(MAGIC) + 1)
        return None


def _whole(reader: Reader, offset: int) -> Frame | None:
    """The frame at an offset; None if there is none that is whole."""
    found = reader.frame(offset)
    if found is Fault.TOO_NEW:
        sentence = f"{log.NAME} was written by a newer convmem (byte {offset}): run that one"
        raise LogTooNew(sentence, file=log.NAME, offset=offset)
    return found if isinstance(found, Frame) else None


class Forgiving:
    """A file on a disk with bad places: what cannot be read comes as zeros, which no frame is made of."""

    def __init__(self, file: File) -> None:
        self._file = file

    def read(self, offset: int, size: int) -> bytes:
        """As File.read(). Raises OSError for all but unreadable places."""
        try:
            return self._file.read(offset, size)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        parts: list[bytes] = []
        end = offset + size
        while offset < end:
            wanted = min(BLOCK_BYTES - offset % BLOCK_BYTES, end - offset)
            try:
                parts.append(self._file.read(offset, wanted))
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                parts.append(bytes(wanted))
            offset += wanted
        return b"".join(parts)
