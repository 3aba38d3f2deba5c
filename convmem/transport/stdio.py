"""MCP on stdin and stdout: one JSON text a line, every line answered, nothing else ever on stdout.

The SDK's own stdio transport leaves a caller waiting for ever after a line it cannot parse; here the line is read by
the same strict parser as a request over HTTP and answered by the same kernel. A leading byte order mark, CRLF, blank
lines and a last line without its end are tolerated; a line longer than a request over HTTP may be is refused and
skipped. In answers U+2028 and U+2029 are escaped, because some readers of lines take them for line ends.

Requests run side by side and begin in the order in which they came. The end of input ends nothing that has begun.

Rejected: threads that block in read and write (they could not be ended at a stop), and descriptors set to non-blocking
(that would also change them for the program that shares them with us). A descriptor is asked before it is used.
"""

import asyncio
import fcntl
import logging
import os
import select
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, NamedTuple

from convmem.domain import Origin
from convmem.limits import BODY_BYTES_MAX, STDIO_REQUESTS_MAX
from convmem.transport import jsonrpc
from convmem.transport.loading import Loading
from convmem.transport.origins import client_of

if TYPE_CHECKING:
    from convmem.transport.protocol import Kernel

logger = logging.getLogger("convmem")

READ_BYTES = 64 * 1024
FIRST_PRIVATE_DESCRIPTOR = 3
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TOO_LONG = jsonrpc.Refused(jsonrpc.INVALID_REQUEST, f"the line is longer than {BODY_BYTES_MAX} bytes")


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


class Handshake(NamedTuple):
    """What `initialize` agreed on: the version, and who the client is."""

    version: str | None = None
    client: str | None = None


class Stdio:
    """One client at the other end of two descriptors."""

    def __init__(self, loading: Loading, profile: str, streams: Streams) -> None:
        self._loading = loading
        self._profile = profile
        self._lines = Lines(streams.incoming)
        self._output = Output(streams.outgoing)
        self._handshake = Handshake()
        self._room = asyncio.Semaphore(STDIO_REQUESTS_MAX)
        self._cancellable: dict[jsonrpc.Id, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Answer every line; return when the input has ended (or `stop` was called) and all is answered.

        To end it early call `stop`: a cancellation could cut a line that is being written.
        """
        kernel = await self._loading.wait()
        async with asyncio.TaskGroup() as tasks:
            async for line in self._lines:
                await self._take(line, kernel, tasks)

    def stop(self) -> None:
        """Read no further; what was read is answered."""
        self._lines.stop()

    async def _take(self, line: bytes | None, kernel: "Kernel", tasks: asyncio.TaskGroup) -> None:
        try:
            if line is None:
                raise TOO_LONG
            message = jsonrpc.read(line)
        except jsonrpc.Refused as refused:
            await self._output.line(jsonrpc.error(refused))
            return
        if isinstance(message, jsonrpc.Notification):
            self._notified(message)
        elif isinstance(message, jsonrpc.Request):
            await self._room.acquire()
            if message.method == "initialize":
                # Inline: what comes next speaks the version agreed on here.
                await self._answer(message, kernel, self._handshake)
            else:
                self._begin(message, kernel, tasks)

    def _begin(self, request: jsonrpc.Request, kernel: "Kernel", tasks: asyncio.TaskGroup) -> None:
        task = tasks.create_task(self._answer(request, kernel, self._handshake))
        if kernel.may_be_cancelled(request, self._profile):
            self._cancellable[request.id] = task

    def _keep_from_being_cancelled(self, request_id: jsonrpc.Id) -> None:
        if self._cancellable.get(request_id) is asyncio.current_task():
            del self._cancellable[request_id]

    def _notified(self, notification: jsonrpc.Notification) -> None:
        """A call that changes something is not among the cancellable; a cancelled one is not answered (MCP)."""
        if notification.method == "notifications/cancelled" and notification.params:
            request_id: Any = notification.params.get("requestId")
            task = self._cancellable.pop(request_id, None) if type(request_id) in (int, str) else None
            if task:
                task.cancel()

    async def _answer(self, request: jsonrpc.Request, kernel: "Kernel", handshake: Handshake) -> None:
        try:
            # Gathered, so that a fault of ours comes back as a value and leaves the other calls alone.
            result = self._result(request, kernel, handshake)
            (outcome,) = await asyncio.gather(result, return_exceptions=True)
            # From here on: a line is written whole or not at all.
            self._keep_from_being_cancelled(request.id)
            if isinstance(outcome, jsonrpc.Refused):
                outcome = jsonrpc.error(outcome, request.id)
            elif isinstance(outcome, BaseException):
                logger.error("%s ended by a fault", request.method, exc_info=outcome)
                outcome = jsonrpc.error(jsonrpc.internal_error(), request.id)
            await self._output.line(outcome)
        finally:
            self._room.release()

    async def _result(self, request: jsonrpc.Request, kernel: "Kernel", handshake: Handshake) -> bytes:
        era = kernel.era(request, None, handshake.version)
        origin = Origin("local", "stdio", era.client or handshake.client)
        token = jsonrpc.progress_token(request.params)
        reporter = None if token is None else jsonrpc.Reporter(token, self._output.line_if_idle)
        progress = reporter.report if reporter else None
        result = await kernel.answer(request, era, profile=self._profile, origin=origin, progress=progress)
        if reporter:
            reporter.end()
        if request.method == "initialize":
            assert isinstance(result, dict)
            client = client_of((request.params or {}).get("clientInfo"))
            self._handshake = Handshake(result["protocolVersion"], client)
        return jsonrpc.result(request.id, result)


class Lines:
    """The lines of a descriptor, without their ends; None stands for one that was too long."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = Descriptor(descriptor, select.POLLIN)
        self._has_stopped = False

    def stop(self) -> None:
        """End the iteration after the lines read so far."""
        self._has_stopped = True
        self._descriptor.wake()

    async def __aiter__(self) -> AsyncIterator[bytes | None]:
        pending, is_skipping = bytearray(), False
        while chunk := await self._read():
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                pending += piece
                if is_skipping or len(pending) > BODY_BYTES_MAX:
                    yield None
                elif line := _trimmed(pending):
                    yield line
                pending, is_skipping = bytearray(), False
            pending += rest
            if is_skipping or len(pending) > BODY_BYTES_MAX:
                pending, is_skipping = bytearray(), True
        if is_skipping:
            yield None
        elif line := _trimmed(pending):
            yield line

    async def _read(self) -> bytes:
        await self._descriptor.ready()
        try:
            return b"" if self._has_stopped else os.read(self._descriptor.number, READ_BYTES)
        except OSError as error:  # closed, reset, or a terminal that hung up: no more will come
            logger.info("stdin ended: %s", error.strerror)
            return b""


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
        await asyncio.sleep(0)
        if self.is_ready():
            return
        # Files and the like are always ready, so the loop only ever watches what it can: pipes, sockets, terminals.
        loop = asyncio.get_running_loop()
        self._woken = loop.create_future()
        watch, unwatch = (
            (loop.add_reader, loop.remove_reader)
            if self._interest == select.POLLIN
            else (loop.add_writer, loop.remove_writer)
        )
        watch(self.number, self.wake)
        try:
            await self._woken
        finally:
            unwatch(self.number)
            self._woken = None

    def wake(self) -> None:
        """End a wait in `ready`, if there is one."""
        if self._woken and not self._woken.done():
            self._woken.set_result(None)
