"""transport/conversation: one reader after the other goes on where the last one stopped; no line twice, none lost."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from convmem.limits import BODY_BYTES_MAX, STDIO_REQUESTS_MAX
from convmem.transport import jsonrpc
from convmem.transport.conversation import Conversation, Taken
from convmem.transport.lines import Streams


class Ends:
    """A conversation, and the client's ends of its pipes."""

    def __init__(self, conversation: Conversation, to: int, come: int) -> None:
        self.conversation, self.to, self.come = conversation, to, come

    def send(self, *texts: bytes) -> None:
        for text in texts:
            os.write(self.to, text + b"\n")

    def ping(self, *numbers: int) -> None:
        self.send(*(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number for number in numbers))

    def said(self) -> list[Any]:
        return [json.loads(line) for line in os.read(self.come, 65_536).splitlines()]


@asynccontextmanager
async def talking() -> AsyncIterator[Ends]:
    incoming, to = os.pipe()
    come, outgoing = os.pipe()
    ends = Ends(Conversation(Streams(incoming, outgoing)), to, come)
    try:
        yield ends
    finally:
        for descriptor in {incoming, ends.to, come, outgoing} - {-1}:
            os.close(descriptor)


async def taken(conversation: Conversation, count: int) -> list[tuple[Taken, Any]]:
    """So many messages, or fewer if no more are there for this reader."""
    found = []
    async for number, message in conversation.messages():
        found.append((number, message))
        if len(found) == count:
            break
    return found


def ids(found: list[tuple[Taken, Any]]) -> list[Any]:
    return [message.id for _, message in found]


async def test_what_is_no_message_is_answered_and_not_handed_on():
    async with talking() as ends:
        ends.send(b"{nope", b"[]", b"{}", b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","method":"n"}')
        ends.ping(1)
        found = await taken(ends.conversation, 2)
        assert [message.method for _, message in found] == ["n", "ping"]
        assert [answer["error"]["code"] for answer in ends.said()] == [-32700, -32600, -32600]


async def test_a_line_that_is_too_long_is_answered():
    async with talking() as ends:
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(taken(ends.conversation, 1))
            left = memoryview(b"x" * (BODY_BYTES_MAX + 1) + b"\n")
            while left:
                left = left[os.write(ends.to, left[:4096]) :]
                await asyncio.sleep(0)
            ends.ping(1)
        assert ids(reading.result()) == [1]
        assert ends.said()[0]["error"]["code"] == -32600


async def test_the_next_reader_goes_on_where_the_last_one_stopped():
    async with talking() as ends:
        ends.ping(1, 2, 3)
        assert ids(await taken(ends.conversation, 1)) == [1]
        ends.conversation.hand_over()
        assert ids(await taken(ends.conversation, 9)) == []
        assert not ends.conversation.has_ended
        assert ids(await taken(ends.conversation, 2)) == [2, 3]


async def test_a_reader_that_waits_hands_over_at_once():
    async with talking() as ends:
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(taken(ends.conversation, 1))
            for _ in range(5):
                await asyncio.sleep(0)
            ends.conversation.hand_over()
        assert reading.result() == []
        ends.ping(7)
        assert ids(await taken(ends.conversation, 1)) == [7]


async def test_what_was_put_back_comes_first_and_in_its_order():
    async with talking() as ends:
        ends.ping(1, 2, 3, 4)
        (first, _), (second, _), (third, _) = await taken(ends.conversation, 3)
        for number in (third, first, second):
            ends.conversation.put_back(number)
        again = await taken(ends.conversation, 4)
        assert ids(again) == [1, 2, 3, 4]
        assert [number for number, _ in again][:3] == [first, second, third]


async def test_there_is_something_to_answer_until_all_that_was_put_back_is_taken():
    async with talking() as ends:
        ends.ping(1)
        ((number, _),) = await taken(ends.conversation, 1)
        os.close(ends.to)
        ends.to = -1
        assert await taken(ends.conversation, 1) == []
        assert ends.conversation.has_ended
        ends.conversation.put_back(number)
        assert not ends.conversation.has_ended
        assert ids(await taken(ends.conversation, 2)) == [1]
        assert ends.conversation.has_ended


async def test_a_stop_ends_it_for_every_reader():
    async with talking() as ends:
        ends.ping(1, 2)
        assert ids(await taken(ends.conversation, 1)) == [1]
        ends.conversation.stop()
        assert ends.conversation.has_ended
        assert ids(await taken(ends.conversation, 9)) == [2]
        ends.ping(3)
        assert await taken(ends.conversation, 9) == []


async def test_so_many_requests_are_taken_at_once_and_no_more_until_one_is_answered():
    async with talking() as ends:
        conversation, found = ends.conversation, list[Any]()
        ends.ping(*range(STDIO_REQUESTS_MAX + 2))

        async def read() -> None:
            async for _, message in conversation.messages():
                assert isinstance(message, jsonrpc.Request)
                found.append(message.id)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(read())
            for expected in range(3):
                for _ in range(3 * STDIO_REQUESTS_MAX):
                    await asyncio.sleep(0)
                assert len(found) == STDIO_REQUESTS_MAX + expected
                if expected < 2:
                    conversation.room.release()
            conversation.hand_over()
