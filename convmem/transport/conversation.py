"""What a client on stdin and stdout says and is told, whoever answers: the store in this process or a daemon elsewhere.

The idea: whoever answers may change in the middle, and no line is lost or answered twice by that. So the lines that
come in, the lines that go out, what is known of the other end, and what was taken but is still to be answered live
here; one reader after the other takes them over. A reader is asked to hand over and never cancelled: that could lose
the line that is coming, or cut the one that is being written.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

from convmem.limits import BODY_BYTES_MAX, STDIO_REQUESTS_MAX
from convmem.transport import jsonrpc
from convmem.transport.lines import Lines, Mark, Output, Streams

TOO_LONG = jsonrpc.Refused(jsonrpc.INVALID_REQUEST, f"the line is longer than {BODY_BYTES_MAX} bytes")


class Handshake(NamedTuple):
    """What `initialize` agreed on: the version, and who the client is."""

    version: str | None = None
    client: str | None = None


class Taken(NamedTuple):
    """A line that somebody has begun to answer: its number in the order of all, and its text."""

    number: int
    text: bytes


class Conversation:
    """One client at the other end of two descriptors.

    `room` bounds the requests that are being answered: it is acquired for each that is taken, and whoever has answered
    one releases it.
    """

    def __init__(self, streams: Streams) -> None:
        self.output = Output(streams.outgoing)
        self.handshake = Handshake()
        # By name; None as long as nobody has said which.
        self.read_only_tools: frozenset[str] | None = None
        self.room = asyncio.Semaphore(STDIO_REQUESTS_MAX)
        self._lines = Lines(streams.incoming)
        self._again: list[Taken] = []
        self._count = 0
        self._has_ended = False

    def stop(self) -> None:
        """Read no further; what was read is answered."""
        self._has_ended = True
        self._lines.stop()

    def abandon(self) -> None:
        """End it although something is still to be answered."""
        self.stop()
        self._again.clear()

    @property
    def has_ended(self) -> bool:
        """True if there is nothing more to answer."""
        return self._has_ended and not self._again

    def hand_over(self) -> None:
        """End the iteration that goes on, or else the next one at its start; what follows goes on where it stopped.

        Behind the end of the input nothing happens: the last reader answers what is left.
        """
        if not self._has_ended:
            self._lines.interrupt()

    def put_back(self, taken: Taken) -> None:
        """Have a line answered by whoever reads next, in the order in which the lines came."""
        self._again.append(taken)
        self._again.sort()

    async def messages(self) -> AsyncIterator[tuple[Taken, jsonrpc.Request | jsonrpc.Notification]]:
        """Each request, with `room` acquired for it, and each notification; what is neither is answered here.

        Ends with the input, or where this reader is asked to hand over.
        """
        while taken := await self._taken():
            message = await self._read(taken.text)
            if isinstance(message, jsonrpc.Request):
                await self.room.acquire()
            if isinstance(message, (jsonrpc.Request, jsonrpc.Notification)):
                yield taken, message

    async def _taken(self) -> Taken | None:
        """The next line; None if there is none for this reader. What was put back is not for one that hands over."""
        if self._again and not self._lines.is_interrupted:
            return self._again.pop(0)
        while (line := await self._lines.line()) is Mark.TOO_LONG:
            await self.output.line(jsonrpc.error(TOO_LONG))
        if isinstance(line, Mark):
            self._has_ended = self._has_ended or line is Mark.END
            return None
        self._count += 1
        return Taken(self._count, line)

    async def _read(self, text: bytes) -> jsonrpc.Request | jsonrpc.Notification | jsonrpc.Response | None:
        """What a line says; None if it was answered because it says nothing."""
        try:
            return jsonrpc.read(text)
        except jsonrpc.Refused as refused:
            await self.output.line(jsonrpc.error(refused))
            return None
