"""Lines on two descriptors: stdin as lines of bytes, whole lines to what was stdout, neither ever blocks the process.

A leading byte order mark, CRLF, blank lines and a last line without its end are tolerated; a line longer than a request
over HTTP may be is skipped and said to be too long. In what is written U+2028 and U+2029 are escaped, because some
readers of lines take them for line ends.

Rejected: threads that block in read and write (they could not be ended at a stop), and descriptors set to non-blocking
(that would also change them for the program that shares them with us). A descriptor is asked before it is used.
"""

import asyncio
import fcntl
import logging
import os
import select
from collections import deque
from enum import Enum
from typing import NamedTuple

from convmem.limits import BODY_BYTES_MAX

logger = logging.getLogger("convmem")

READ_BYTES = 64 * 1024
FIRST_PRIVATE_DESCRIPTOR = 3
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Streams(NamedTuple):
    """The descriptors that carry the protocol."""

    incoming: int
    outgoing: int


def claim() -> Streams:
    """Take stdout for the protocol alone: whatever is printed to it from now on goes to stderr.

    To be called before anything else can write; done on descriptors, so that C code obeys too.
    """
    outgoing = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE_DESCRIPTOR)
    os.dup2(2, 1)
    return Streams(0, outgoing)


class Mark(Enum):
    """What there is instead of a line."""

    TOO_LONG = 1
    END = 2
    INTERRUPTED = 3


class Lines:
    """The lines of a descriptor, without their ends. What has been read is kept, whoever asks for the next line."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = Descriptor(descriptor, select.POLLIN)
        self._whole: deque[bytes | Mark] = deque()
        self._pending = bytearray()
        self._is_skipping = self._is_at_end = self._is_interrupted = False

    def stop(self) -> None:
        """Read no further: behind the lines that were read there is the end."""
        self._is_at_end = True
        self._descriptor.wake()

    def interrupt(self) -> None:
        """End the wait for a line, or else the next one, with Mark.INTERRUPTED; nothing is lost by that."""
        self._is_interrupted = True
        self._descriptor.wake()

    @property
    def is_interrupted(self) -> bool:
        """True if the next line asked for is Mark.INTERRUPTED."""
        return self._is_interrupted

    async def line(self) -> bytes | Mark:
        """The next line, or what there is instead."""
        while True:
            if self._is_interrupted:
                self._is_interrupted = False
                return Mark.INTERRUPTED
            if self._whole:
                return self._whole.popleft()
            if self._is_at_end:
                return Mark.END
            await self._descriptor.ready()
            if not self._is_interrupted and not self._is_at_end:
                self._read()

    def _read(self) -> None:
        """Take what is there, without blocking: the descriptor is ready."""
        try:
            chunk = os.read(self._descriptor.number, READ_BYTES)
        except OSError as error:  # closed, reset, or a terminal that hung up: no more will come
            logger.info("stdin ended: %s", error.strerror)
            chunk = b""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            self._end_line()
        self._add(rest)
        if not chunk:
            self._end_line()
            self._is_at_end = True

    def _add(self, piece: bytes) -> None:
        if not self._is_skipping:
            self._pending += piece
            self._is_skipping = len(self._pending) > BODY_BYTES_MAX
        if self._is_skipping:
            self._pending.clear()

    def _end_line(self) -> None:
        if self._is_skipping:
            self._whole.append(Mark.TOO_LONG)
        elif line := _trimmed(self._pending):
            self._whole.append(line)
        self._pending, self._is_skipping = bytearray(), False


def _trimmed(line: bytearray) -> bytes:
    """A line without a byte order mark in front and blanks around it."""
    return bytes(line).removeprefix(BYTE_ORDER_MARK).strip(b" \t\r")


class Output:
    """Whole lines to a descriptor, one after the other, without ever blocking the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = Descriptor(descriptor, select.POLLOUT)
        self._turn = asyncio.Lock()
        self._is_gone = False

    async def line(self, text: bytes) -> None:
        """Write one line and wait until it is written; nothing happens once the reader is gone."""
        escaped = text.replace("\u2028".encode(), b"\\u2028").replace("\u2029".encode(), b"\\u2029")
        left = memoryview(escaped + b"\n")
        async with self._turn:
            while left and not self._is_gone:
                await self._descriptor.ready()
                try:
                    # That much is taken at once by whatever says that it is ready (POSIX: PIPE_BUF).
                    left = left[os.write(self._descriptor.number, left[: select.PIPE_BUF]) :]
                except OSError as error:  # nobody reads any more; what was asked is still done
                    logger.info("stdout ended: %s", error.strerror)
                    self._is_gone = True

    async def line_if_idle(self, text: bytes) -> None:
        """Write one line if nothing waits to be written, else drop it: a slow reader holds up nobody's work."""
        if not self._turn.locked() and self._descriptor.is_ready():
            await self.line(text)


class Descriptor:
    """A file descriptor that is asked before it is used. `interest` is select.POLLIN or select.POLLOUT."""

    def __init__(self, number: int, interest: int) -> None:
        self.number = number
        self._interest = interest
        self._poll = select.poll()
        self._poll.register(number, interest)
        self._woken: asyncio.Future[None] | None = None

    def is_ready(self) -> bool:
        """True if one read or one small write will not block; also at the end of input and after an error."""
        return bool(self._poll.poll(0))

    async def ready(self) -> None:
        """Wait until it is ready, or until `wake`. Lets other tasks run in any case."""
        loop = asyncio.get_running_loop()
        # Made first: whoever wakes may do so while other tasks run.
        self._woken = loop.create_future()
        try:
            await asyncio.sleep(0)
            if not self._woken.done() and not self.is_ready():
                await self._watched(loop, self._woken)
        finally:
            self._woken = None

    async def _watched(self, loop: asyncio.AbstractEventLoop, woken: asyncio.Future[None]) -> None:
        # Files and the like are always ready, so the loop only ever watches what it can: pipes, sockets, terminals.
        watch, unwatch = (
            (loop.add_reader, loop.remove_reader)
            if self._interest == select.POLLIN
            else (loop.add_writer, loop.remove_writer)
        )
        watch(self.number, self.wake)
        try:
            await woken
        finally:
            unwatch(self.number)

    def wake(self) -> None:
        """End a wait in `ready`, if there is one."""
        if self._woken and not self._woken.done():
            self._woken.set_result(None)
