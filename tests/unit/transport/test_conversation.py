"""conversation: readers come and go, and every line is answered by one of them, in order."""

import asyncio
import json
import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from convmem.limits import STDIO_REQUESTS_MAX
from convmem.transport import lines
from convmem.transport.conversation import Conversation, Taken
from convmem.transport.jsonrpc import Notification, Request
from convmem.transport.lines import Streams
from tests.support.waiting import until


class Client(NamedTuple):
    """The other end of a conversation."""

    conversation: Conversation
    to: int
    come: int

    def say(self, *texts: bytes) -> None:
        os.write(self.to, b"".join(text + b"\n" for text in texts))

    def said(self) -> list[object]:
        """What came back so far."""
        return [json.loads(line) for line in os.read(self.come, 65_536).split(b"\n") if line]

    def end(self) -> None:
        os.close(self.to)


@pytest.fixture
def client() -> Iterator[Client]:
    (incoming, to), (come, outgoing) = os.pipe(), os.pipe()
    yield Client(Conversation(Streams(incoming, outgoing)), to, come)
    for descriptor in (incoming, to, come, outgoing):
        try:
            os.close(descriptor)
        except OSError:
            continue


def asking(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number


async def taken(conversation: Conversation, count: int = 1000) -> list[int]:
    """The ids of the requests that a reader takes, which it answers at once; it breaks off behind `count`."""
    found = []
    async for _, message in conversation.messages():
        if isinstance(message, Request):
            found.append(int(message.id))
            conversation.room.release()
        if len(found) == count:
            break
    return found


async def put_back(conversation: Conversation, *numbers: int) -> None:
    """Take as many requests as there are numbers, and put back those of these ids, as they are named."""
    by_id: dict[int, Taken] = {}
    async for line, message in conversation.messages():
        assert isinstance(message, Request)
        by_id[int(message.id)] = line
        conversation.room.release()
        if len(by_id) == max(numbers):
            break
    for number in numbers:
        conversation.put_back(by_id[number])


async def test_requests_and_notifications_come_in_order_and_the_end_ends_it(client: Client):
    client.say(
        asking(1), b'{"jsonrpc":"2.0","method":"x","params":{"a":1}}', asking(2), b'{"jsonrpc":"2.0","result":1}'
    )
    client.end()
    found = [(line.number, message) async for line, message in client.conversation.messages()]
    assert found == [
        (1, Request(1, "ping", None)),
        (2, Notification("x", {"a": 1})),
        (3, Request(2, "ping", None)),
    ]
    assert client.conversation.has_ended


async def test_what_says_nothing_is_answered_in_its_place(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lines, "BODY_BYTES_MAX", 60)
    client.say(b"{nope", asking(1), b"x" * 61, b'{"id":5,"method":"ping"}', asking(2))
    client.end()
    assert await taken(client.conversation) == [1, 2]
    errors = [(error["id"], error["error"]["code"]) for error in client.said()]  # type: ignore[index]
    assert errors == [(None, -32700), (None, -32600), (5, -32600)]


async def test_what_is_put_back_comes_first_and_in_the_order_in_which_it_came(client: Client):
    client.say(*(asking(number) for number in range(1, 5)))
    await put_back(client.conversation, 3, 1, 2)
    assert not client.conversation.has_ended
    client.say(asking(5))
    assert await taken(client.conversation, 5) == [1, 2, 3, 4, 5]


async def test_a_reader_that_was_asked_before_it_began_takes_nothing(client: Client):
    client.say(asking(1))
    client.conversation.hand_over()
    assert await taken(client.conversation) == []
    assert await taken(client.conversation, 1) == [1]


async def test_a_reader_that_waits_is_asked(client: Client):
    waiting = asyncio.create_task(taken(client.conversation))
    for _ in range(5):
        await asyncio.sleep(0)
    client.conversation.hand_over()
    assert await waiting == []
    client.say(asking(1))
    assert await taken(client.conversation, 1) == [1]


async def test_a_reader_that_is_at_work_is_asked(client: Client):
    client.say(*(asking(number) for number in range(1, 4)))
    found = []
    async for _, message in client.conversation.messages():
        assert isinstance(message, Request)
        found.append(message.id)
        client.conversation.hand_over()
    assert found == [1]
    client.conversation.room.release()
    assert await taken(client.conversation, 2) == [2, 3]


async def test_a_reader_that_hands_over_does_not_take_up_what_it_has_put_back(client: Client):
    client.say(asking(1))
    found = []
    async for line, message in client.conversation.messages():
        assert isinstance(message, Request)
        found.append(message.id)
        client.conversation.room.release()
        client.conversation.hand_over()
        client.conversation.put_back(line)
    assert found == [1]
    assert await taken(client.conversation, 1) == [1]


async def test_behind_the_end_nobody_hands_over_and_what_was_put_back_is_answered(client: Client):
    client.say(asking(1))
    await put_back(client.conversation, 1)
    client.conversation.stop()
    client.conversation.hand_over()
    assert not client.conversation.has_ended
    assert await taken(client.conversation) == [1]
    assert client.conversation.has_ended


async def test_the_end_that_one_reader_does_not_see_is_seen_by_the_next(client: Client):
    client.end()
    client.conversation.hand_over()
    assert await taken(client.conversation) == []
    assert not client.conversation.has_ended
    assert await taken(client.conversation) == []
    assert client.conversation.has_ended


async def test_a_stop_leaves_what_was_read_and_reads_no_further(client: Client):
    client.say(asking(1), asking(2))
    assert await taken(client.conversation, 1) == [1]
    client.conversation.stop()
    client.say(asking(3))
    assert await taken(client.conversation) == [2]


async def test_what_is_abandoned_is_over_at_once(client: Client):
    client.say(asking(1))
    await put_back(client.conversation, 1)
    client.conversation.abandon()
    assert client.conversation.has_ended
    assert await taken(client.conversation) == []


async def test_no_more_requests_are_taken_than_there_is_room_for(client: Client):
    client.say(*(asking(number) for number in range(STDIO_REQUESTS_MAX + 2)))
    messages = client.conversation.messages()
    for _ in range(STDIO_REQUESTS_MAX):
        await anext(messages)
    more = asyncio.ensure_future(anext(messages))
    await until(client.conversation.room.locked)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not more.done()
    client.conversation.room.release()
    line, _ = await more
    assert line.number == STDIO_REQUESTS_MAX + 1
    await messages.aclose()  # type: ignore[attr-defined]
