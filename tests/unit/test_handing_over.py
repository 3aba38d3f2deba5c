"""handing_over: a daemon that starts gets the store from whoever may give it, and gives up on whoever may not."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from convmem import config, handing_over, holding
from convmem.config import Settings
from convmem.errors import StoreLocked
from convmem.handing_over import PATIENCE_MS, Reply
from convmem.holding import Held
from convmem.limits import HAND_OVER_MS_MAX
from tests.support.raw_server import Asked, RawServer, raw_server
from tests.support.waiting import PATIENCE_S

LONG_MS = 60_000


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return config.load({"data_dir": str(tmp_path / "d")}, {}, tmp_path)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> Callable[[Reply, int], None]:
    """Nobody gives up by the clock unless the test says after how long."""
    monkeypatch.setattr(handing_over, "HAND_OVER_PAUSE_MS", 0)
    monkeypatch.setattr(handing_over, "HAND_OVER_MS_MAX", LONG_MS)
    for reply in set(Reply) - {Reply.REFUSED}:
        monkeypatch.setitem(PATIENCE_MS, reply, LONG_MS)
    return lambda reply, wait_ms: monkeypatch.setitem(PATIENCE_MS, reply, wait_ms)


class Holder:
    """Somebody who holds the store and says this of itself."""

    def __init__(self, settings: Settings, text: str) -> None:
        self._held: Held | None = holding.take(settings)
        self.tell(text)

    def tell(self, text: str) -> None:
        assert self._held is not None
        self._held.lock.tell(text)

    def let_go(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


@contextmanager
def held(settings: Settings, text: str = "") -> Iterator[Holder]:
    """The store, held inside the block unless it is let go before."""
    holder = Holder(settings, text)
    try:
        yield holder
    finally:
        holder.let_go()


def own_text(settings: Settings, *, is_daemon: bool = False, pid: int | None = None) -> str:
    """What a holder says: a process that lives, unless another is named."""
    url = '"url": "http://127.0.0.1:1/mcp", ' if is_daemon else ""
    return f'{{"pid": {pid or os.getpid()}, {url}"socket": "{settings.socket}"}}'


def gone() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


@asynccontextmanager
async def owner(settings: Settings, holder: Holder, status: str = "200 OK") -> AsyncIterator[RawServer]:
    """A process at the local socket that lets go if it says yes."""

    async def handle(asked: Asked) -> None:
        asked.answer(b'{"result":{}}\n', "Connection: close", status=status)
        if status == "200 OK":
            holder.let_go()

    assert settings.socket is not None
    async with raw_server(handle, unix=settings.socket) as server:
        yield server


async def take(settings: Settings) -> Held:
    async with asyncio.timeout(PATIENCE_S):
        return await handing_over.take(settings)


def test_every_reply_has_its_patience():
    assert set(PATIENCE_MS) == set(Reply)
    assert max(PATIENCE_MS.values()) >= HAND_OVER_MS_MAX


async def test_a_store_that_nobody_holds_is_there_at_once(settings: Settings):
    (await take(settings)).close()


async def test_a_process_that_serves_an_agent_program_is_asked_and_gives(settings: Settings):
    with held(settings, own_text(settings)) as holder:
        async with owner(settings, holder) as server:
            (await take(settings)).close()
    (asked,) = server.asked
    assert (asked.line, asked.body) == ("POST /admin/hand-over HTTP/1.1", b"{}")
    assert asked.headers["host"] == "localhost"


async def test_one_that_refuses_is_believed(settings: Settings):
    with held(settings, own_text(settings)) as holder:
        async with owner(settings, holder, "404 Not Found") as server:
            with pytest.raises(StoreLocked):
                await take(settings)
    assert len(server.asked) == 1


async def test_a_daemon_is_not_asked(settings: Settings):
    with held(settings, own_text(settings, is_daemon=True)) as holder:
        async with owner(settings, holder) as server:
            with pytest.raises(StoreLocked):
                await take(settings)
    assert not server.connections


@pytest.mark.parametrize("text", ["", "{", "[]", '{"socket": "/x"}', '{"pid": true}', '{"pid": -1}'])
async def test_one_that_has_not_said_who_it_is_is_waited_for(settings: Settings, text: str):
    with held(settings, text) as holder:
        taking = asyncio.create_task(take(settings))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not taking.done()
        holder.tell(own_text(settings))
        async with owner(settings, holder):
            (await taking).close()


@pytest.mark.parametrize("is_daemon", [True, False])
async def test_what_one_that_is_gone_has_left_behind_says_nothing_of_who_holds_it(settings: Settings, is_daemon: bool):
    with held(settings, own_text(settings, is_daemon=is_daemon, pid=gone())) as holder:
        taking = asyncio.create_task(take(settings))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not taking.done()
        holder.tell(own_text(settings))
        async with owner(settings, holder):
            (await taking).close()


async def test_one_that_does_not_listen_yet_is_asked_once_it_does(settings: Settings):
    with held(settings, own_text(settings)) as holder:
        taking = asyncio.create_task(take(settings))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not taking.done()
        async with owner(settings, holder):
            (await taking).close()


@pytest.mark.parametrize(("reply", "pid"), [(Reply.NAMELESS, 0), (Reply.NAMELESS, gone()), (Reply.SILENT, os.getpid())])
async def test_patience_has_an_end(settings: Settings, patience: Callable[[Reply, int], None], reply: Reply, pid: int):
    patience(reply, 0)
    with held(settings, own_text(settings, pid=pid) if pid else ""), pytest.raises(StoreLocked):
        await take(settings)


async def test_one_that_never_answers_is_not_waited_for_without_end(
    settings: Settings, patience: Callable[[Reply, int], None], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(handing_over, "HAND_OVER_MS_MAX", 50)
    patience(Reply.SILENT, 50)

    async def never(asked: Asked) -> None:
        await asyncio.Event().wait()

    assert settings.socket is not None
    with held(settings, own_text(settings)):
        async with raw_server(never, unix=settings.socket) as server:
            with pytest.raises(StoreLocked):
                await take(settings)
    assert len(server.asked) >= 1


async def test_one_that_agrees_and_keeps_it_is_asked_once(settings: Settings, patience: Callable[[Reply, int], None]):
    patience(Reply.AGREED, 20)

    async def agree(asked: Asked) -> None:
        asked.answer(b"{}", "Connection: close")

    assert settings.socket is not None
    with held(settings, own_text(settings)):
        async with raw_server(agree, unix=settings.socket) as server:
            with pytest.raises(StoreLocked):
                await take(settings)
    assert len(server.asked) == 1


async def test_one_that_comes_first_when_another_lets_go_is_asked_too(settings: Settings):
    holders = [Holder(settings, own_text(settings))]

    async def handle(asked: Asked) -> None:
        holders[-1].let_go()
        if len(holders) == 1:
            holders.append(Holder(settings, own_text(settings, pid=os.getppid())))
        asked.answer(b"{}", "Connection: close")

    assert settings.socket is not None
    async with raw_server(handle, unix=settings.socket) as server:
        (await take(settings)).close()
    assert len(server.asked) == 2
