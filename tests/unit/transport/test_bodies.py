"""Bodies as they come in: each bounded, all together bounded, none waited for without end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from convmem.limits import BODIES_BYTES_MAX, BODY_BYTES_MAX
from convmem.transport import bodies
from convmem.transport.bodies import CROWDED, STOPPING, TOO_LARGE, TOO_SLOW, Bodies


def coming(*parts: bytes, ends: bool = True) -> Callable[[], Awaitable[Any]]:
    """A receive() that hands over these parts; without an end it then waits for ever."""
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if ends:
        messages[-1]["more_body"] = False

    async def receive() -> Any:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop(0)

    return receive


async def test_a_body_comes_back_whole_and_is_held_no_longer():
    held = Bodies()
    assert await held.read({}, coming(b"a", b"", b"bc")) == b"abc"
    assert held.bytes_held == 0


@pytest.mark.parametrize("declared", [b"%d" % (BODY_BYTES_MAX + 1), b"-1", b"1, 1", b"x", b""])
async def test_a_size_that_is_too_large_or_none_is_refused_before_a_byte_is_read(declared: bytes):
    assert await Bodies().read({b"content-length": declared}, coming(b"never read", ends=False)) == TOO_LARGE


async def test_a_body_that_grows_too_large_is_refused_at_once():
    held = Bodies()
    half = b"x" * (BODY_BYTES_MAX // 2 + 1)
    assert await held.read({}, coming(half, half, b"never read")) == TOO_LARGE
    assert held.bytes_held == 0


async def test_many_large_bodies_at_once_are_busy_and_room_is_given_back():
    held = Bodies()
    part = b"x" * (BODY_BYTES_MAX - 1)
    async with asyncio.TaskGroup() as tasks:
        waiting = [
            tasks.create_task(held.read({}, coming(part, ends=False))) for _ in range(BODIES_BYTES_MAX // len(part))
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert await held.read({}, coming(part)) == CROWDED
        assert await held.read({}, coming(b"small")) == b"small"
        for task in waiting:
            task.cancel()
    assert {task.result() for task in waiting} == {STOPPING}
    assert held.bytes_held == 0
    assert await held.read({}, coming(part)) == part


async def test_a_sender_that_falls_silent_is_let_go(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bodies, "BODY_SILENCE_S_MAX", 0)
    held = Bodies()
    assert await held.read({}, coming(b"a", ends=False)) == TOO_SLOW
    assert held.bytes_held == 0


async def test_a_stop_that_comes_before_the_whole_body_is_answered():
    async def receive() -> Any:
        raise asyncio.CancelledError

    assert await Bodies().read({}, receive) == STOPPING


async def test_a_client_that_goes_away_before_its_whole_body_gets_no_call_done():
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    assert await Bodies().read({}, receive) is None
