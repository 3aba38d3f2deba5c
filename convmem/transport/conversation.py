"""What a client on stdin and stdout says and is told, whoever answers: the store in this process or a daemon elsewhere.

The idea: whoever answers may change in the middle, and no line is lost or answered twice by that. So the lines that
come in, the lines that go out, what `initialize` agreed on, and what was taken but is still to be answered live here;
one reader after the other takes them over. A reader is asked to hand over and never cancelled: that could lose the line
that is coming, or cut the one that is being written.
"""

import asyncio
from collections.abc import AsyncIterator
from enum import Enum
from typing import NamedTuple

from convmem.limits import BODY_BYTES_MAX, STDIO_REQUESTS_MAX
from convmem.transport import jsonrpc
from convmem.transport.lines import Lines, Output, Streams

TOO_LONG = jsonrpc.Refused(jsonrpc.INVALID_REQUEST, f"the line is longer than {BODY_BYTES_MAX} bytes")


class Handshake(NamedTuple):
    """What `initialize` agreed on: the version, and who the client is."""

    version: str | None = None
    client: str | None = None


class Taken(NamedTuple):
    """A line that somebody has begun to answer: its number in the order of all, and its text."""

    number: int
    text: bytes


class Mark(Enum):
    """What may come instead of a line."""

    END = 1


class Conversation:
    """One client at the other end of two descriptors.

    `room` bounds the requests that are being answered: it is acquired for each that is taken, and whoever has answered
    one releases it.
    """

    def __init__(self, streams: Streams) -> None:
        self.output = Output(streams.outgoing)
        self.handshake = Handshake()
        self.room = asyncio.Semaphore(STDIO_REQUESTS_MAX)
        self._lines = Lines(streams.incoming)
        self._incoming = aiter(self._lines)
        self._coming: asyncio.Task[bytes | Mark | None] | None = None
        self._is_handing_over = False
        self._handing_over: asyncio.Future[None] | None = None
        self._again: list[Taken] = []
        self._count = 0
        self._has_stopped = self._is_at_end = False

    def stop(self) -> None:
        """Read no further; what was read is answered."""
        self._has_stopped = True
        self._lines.stop()

    @property
    def has_ended(self) -> bool:
        """True if no more lines are to be read."""
        return self._is_at_end or self._has_stopped

    def hand_over(self) -> None:
        """End the iteration that goes on, or else the next one at its start; what follows goes on where it stopped."""
        self._is_handing_over = True
        if self._handing_over and not self._handing_over.done():
            self._handing_over.set_result(None)

    def put_back(self, taken: Taken) -> None:
        """Have a line answered by whoever reads next, in the order in which the lines came."""
        self._again.append(taken)
        self._again.sort()

    async def messages(self) -> AsyncIterator[tuple[Taken, jsonrpc.Request | jsonrpc.Notification]]:
        """Each request, with `room` acquired for it, and each notification; what is neither is answered here.

        Ends with the input, or where this reader is asked to hand over.
        """
        self._handing_over = asyncio.get_running_loop().create_future()
        try:
            while not self._is_handing_over and (taken := await self._line()):
                message = await self._read(taken)
                if isinstance(message, jsonrpc.Request):
                    await self.room.acquire()
                if isinstance(message, (jsonrpc.Request, jsonrpc.Notification)):
                    yield taken, message
        finally:
            self._is_handing_over = False

    async def _line(self) -> Taken | None:
        """The next line; None at the end of input, or if another reader goes on."""
        assert self._handing_over is not None
        if self._again:
            return self._again.pop(0)
        if self._is_at_end:
            return None
        if self._coming is None:
            self._coming = asyncio.ensure_future(self._next())
        await asyncio.wait((self._coming, self._handing_over), return_when=asyncio.FIRST_COMPLETED)
        if not self._coming.done():
            return None
        coming, self._coming = self._coming, None
        text = coming.result()
        if text is Mark.END:
            self._is_at_end = True
            return None
        self._count += 1
        if text is None:
            await self.output.line(jsonrpc.error(TOO_LONG))
            return Taken(self._count, b"")
        return Taken(self._count, text)

    async def _next(self) -> bytes | Mark | None:
        return await anext(self._incoming, Mark.END)

    async def _read(self, taken: Taken) -> jsonrpc.Request | jsonrpc.Notification | jsonrpc.Response | None:
        """What a line says; None if it was answered because it says nothing."""
        if not taken.text:
            return None
        try:
            return jsonrpc.read(taken.text)
        except jsonrpc.Refused as refused:
            await self.output.line(jsonrpc.error(refused))
            return None
