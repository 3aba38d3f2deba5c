"""A client at the other end of a conversation's two descriptors, in the test's own loop."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from convmem.transport.conversation import Conversation
from convmem.transport.lines import Streams
from tests.support.waiting import PATIENCE_S


class Piped:
    """Sends lines to a conversation, and gets what comes back."""

    def __init__(self, conversation: Conversation, to: asyncio.StreamWriter, come: asyncio.StreamReader) -> None:
        self.conversation, self._to, self._come = conversation, to, come

    def send(self, *messages: Any) -> None:
        """Messages, or bytes as they are."""
        for message in messages:
            self._to.write(message if isinstance(message, bytes) else msgspec.json.encode(message) + b"\n")

    async def answer(self) -> Any:
        """The next line that comes."""
        async with asyncio.timeout(PATIENCE_S):
            return json.loads(await self._come.readuntil(b"\n"))

    async def answers(self, count: int) -> dict[Any, Any]:
        """So many answers, by their ids."""
        return {answer["id"]: answer for answer in [await self.answer() for _ in range(count)]}

    def end(self) -> None:
        """End the input."""
        self._to.close()


@asynccontextmanager
async def piped() -> AsyncIterator[Piped]:
    """A conversation and its client, for the time of the block."""
    loop = asyncio.get_running_loop()
    (incoming, to_write), (to_read, outgoing) = os.pipe(), os.pipe()
    come = asyncio.StreamReader(2**25)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(come), os.fdopen(to_read, "rb"))
    writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(to_write, "wb"))
    to = asyncio.StreamWriter(writing, protocol, None, loop)
    try:
        yield Piped(Conversation(Streams(incoming, outgoing)), to, come)
    finally:
        to.close()
        reading.close()
        for descriptor in (incoming, outgoing):
            os.close(descriptor)
