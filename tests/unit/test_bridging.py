"""bridging: who answers a conversation, and when the store is taken, left alone and given away."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from convmem import bridging, config, handing_over, holding
from convmem.config import Settings
from convmem.hooks.target import Target
from convmem.limits import TAKE_OVER_AFTER_MS, TAKE_OVER_SOON_MS
from convmem.stopping import Phases
from convmem.transport.http_client import Connection
from tests.support.piped import Piped, piped
from tests.support.raw_server import Asked, RawServer, raw_server
from tests.support.served import request
from tests.support.stdio_client import END_S, stdio, strictly, writing
from tests.support.waiting import PATIENCE_S, until


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridging, "VACANCY_PAUSE_MS", 1)
    monkeypatch.setattr(bridging, "TAKE_OVER_AFTER_MS", 2)
    monkeypatch.setattr(bridging, "TAKE_OVER_SOON_MS", 0)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return config.load({"data_dir": str(tmp_path / "d")}, {}, tmp_path)


def target_of(settings: Settings) -> Target:
    return Target(None, str(settings.data_dir), {}, "")


async def answering(asked: Asked) -> None:
    asked.result({"from": "there"})


@asynccontextmanager
async def holder(settings: Settings, handle: Callable[[Asked], object] = answering) -> AsyncIterator[RawServer]:
    """Whoever holds the store and listens at its local socket, inside the block."""
    assert settings.socket is not None
    with closing(holding.take(settings)):
        async with raw_server(handle, unix=settings.socket) as server:  # type: ignore[arg-type]
            yield server
        settings.socket.unlink()


def bridged(client: Piped, phases: Phases, settings: Settings) -> asyncio.Task[holding.Held | None]:
    return asyncio.create_task(
        bridging._bridged(client.conversation, phases, target_of(settings), "/mcp/core", settings)
    )


async def test_a_daemon_elsewhere_answers_until_the_input_ends():
    async with raw_server(answering) as server, piped() as client:
        target = Target(server.address, "", {"CONVMEM_TOKEN": "t"}, "")
        bridge = asyncio.create_task(bridging._bridged(client.conversation, Phases(), target, "/mcp/all", None))
        client.send(request("ping"))
        assert (await client.answer())["result"] == {"from": "there"}
        client.end()
        assert await asyncio.wait_for(bridge, PATIENCE_S) is None
    (asked,) = server.asked
    assert asked.line == "POST /mcp/all HTTP/1.1"
    assert asked.headers["authorization"] == "Bearer t"


async def test_the_store_is_taken_once_its_holder_has_ended(settings: Settings):
    async with piped() as client:
        async with holder(settings) as server:
            bridge = bridged(client, Phases(), settings)
            client.send(request("ping"))
            assert (await client.answer())["result"] == {"from": "there"}
            # The other connection is the one whose end tells of the holder's.
            await until(lambda: len(server.connections) == 2)
            for _ in range(50):
                await asyncio.sleep(0)
            assert not bridge.done()
        held = await asyncio.wait_for(bridge, PATIENCE_S)
        assert held is not None
        said = holding.holder_of(holding.holder_text(settings.data_dir))
        assert said == holding.Holder(os.getpid(), is_daemon=False, socket=str(settings.socket))
        held.close()
        assert not client.conversation.has_ended


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often it was looked for a holder."""
    looked: list[int] = []
    connection = bridging._connection

    async def look(target: Target) -> Connection | None:
        looked.append(1)
        return await connection(target)

    monkeypatch.setattr(bridging, "_connection", look)
    return looked


async def test_a_store_that_somebody_holds_without_listening_is_left_to_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    looked = counted(monkeypatch)
    with closing(holding.take(settings)):
        vacancy = asyncio.create_task(bridging._vacancy(settings, target_of(settings)))
        await until(lambda: len(looked) > 8)
        assert not vacancy.done()
    (await asyncio.wait_for(vacancy, PATIENCE_S)).close()


HOLDERS = {
    '{"pid": 1, "url": "http://127.0.0.1:8484/mcp", "socket": "/s"}': TAKE_OVER_AFTER_MS,
    '{"pid": 1, "socket": "/s"}': TAKE_OVER_SOON_MS,
    '{"pid": 1}': TAKE_OVER_SOON_MS,
    "": TAKE_OVER_AFTER_MS,
    "{": TAKE_OVER_AFTER_MS,
}


@pytest.mark.parametrize("text", HOLDERS, ids=str)
def test_what_a_daemon_held_is_left_alone_for_longer(settings: Settings, text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    with closing(holding.take(settings)) as held:
        held.lock.tell(text)
        assert bridging._wait_ms(settings.data_dir) == HOLDERS[text]


async def test_a_directory_that_cannot_be_used_is_told_of_once_and_tried_again(
    settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    settings.data_dir.write_text("in the way")
    looked = counted(monkeypatch)
    vacancy = asyncio.create_task(bridging._vacancy(settings, target_of(settings)))
    await until(lambda: len(looked) > 8)
    settings.data_dir.unlink()
    (await asyncio.wait_for(vacancy, PATIENCE_S)).close()
    assert caplog.text.count("nobody holds the store, and this process cannot") == 1


async def test_a_stop_ends_it_without_taking_the_store(settings: Settings):
    release = asyncio.Event()

    async def slowly(asked: Asked) -> None:
        await release.wait()
        await answering(asked)

    phases = Phases()
    async with piped() as client, holder(settings, slowly) as server:
        bridge = bridged(client, phases, settings)
        client.send(request("ping"))
        await until(lambda: server.asked)
        phases.stop()
        release.set()
        assert (await client.answer())["result"] == {"from": "there"}
        assert await asyncio.wait_for(bridge, PATIENCE_S) is None
        assert client.conversation.has_ended


async def test_a_stop_waits_no_longer_than_it_may(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bridging, "STOP_GRACE_S", 0)

    async def never(asked: Asked) -> None:
        await asyncio.Event().wait()

    phases = Phases()
    async with piped() as client, holder(settings, never) as server:
        bridge = bridged(client, phases, settings)
        client.send(request("ping"))
        await until(lambda: server.asked)
        phases.stop()
        assert await asyncio.wait_for(bridge, PATIENCE_S) is None
        assert client.conversation.has_ended


async def test_a_stop_between_two_phases_reaches_the_next(settings: Settings):
    phases = Phases()
    phases.stop()
    async with piped() as client, holder(settings):
        client.send(request("ping"))
        assert await asyncio.wait_for(bridged(client, phases, settings), PATIENCE_S) is None
        assert client.conversation.has_ended


async def test_a_fault_in_the_watch_is_told_as_it_is(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    async def broken(target: Target) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(bridging, "_connection", broken)
    async with piped() as client:
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(bridged(client, Phases(), settings), PATIENCE_S)


async def asked_for_the_store(data_dir: Path) -> holding.Held:
    """The store, as a daemon that starts gets it."""
    return await handing_over.take(config.load({"data_dir": str(data_dir)}, {}, data_dir))


@pytest.mark.slow
def test_the_store_is_given_and_taken_again_and_the_conversation_goes_on(tmp_path: Path):
    with stdio(tmp_path) as client:
        info = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
        client.request("initialize", END_S, **info)
        assert client.write("own store")["sequence"] == "1"
        for number in (2, 3):
            held = asyncio.run(asked_for_the_store(tmp_path))
            client.send(writing(number, "waits"))
            held.close()
            assert client.answer(END_S)["result"]["structuredContent"]["sequence"] == str(number)
        history = client.call("read_messages", view="history", session_id="s")["messages"]
        assert [message["origin"]["client"] for message in history] == ["old/1"] * 3
        assert client.stop() == 0
        assert b"Traceback" not in client.journal
        assert len(client.lines) == 5


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_nobody_answers_refuses_what_waits_and_ends_in_order(tmp_path: Path, number: signal.Signals):
    with stdio(tmp_path) as client:
        client.write("own store")
        held = asyncio.run(asked_for_the_store(tmp_path))
        client.send(writing("waits", "x"), b"{nope\n")
        assert client.answer(END_S)["error"]["code"] == -32700
        client.send_signal(number)
        assert client.finish() == 0
        assert b"Traceback" not in client.journal
        (answer,) = (strictly(line) for line in client.lines[2:])
        assert (answer["id"], answer["error"]["data"]["code"]) == ("waits", "UNREACHABLE")
        held.close()


@pytest.mark.slow
def test_a_signal_in_the_middle_of_giving_the_store_away_is_heard(tmp_path: Path):
    with stdio(tmp_path) as client:
        client.write("own store")
        path = str(tmp_path / "convmem.sock")
        body = b"{}"
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(path)
            asking.sendall(
                b"POST /admin/hand-over HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            assert asking.recv(100).startswith(b"HTTP/1.1 200")
            client.send_signal(signal.SIGTERM)
        assert client.finish() == 0
        assert b"Traceback" not in client.journal
