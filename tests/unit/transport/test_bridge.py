"""bridge: what is sent again and what is not; every request is answered once, whatever becomes of the daemon."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from convmem import __version__
from convmem.hooks.target import Address
from convmem.limits import BRIDGE_PATIENCE_MS, BRIDGE_PAUSE_MS_MAX, STDIO_REQUESTS_MAX
from convmem.transport import bridge as bridge_module
from convmem.transport.bridge import Bridge, pauses_ms
from convmem.transport.conversation import Handshake
from convmem.transport.exchanges import Exchanges
from convmem.transport.jsonrpc import Request
from tests.support.manual_clock import ManualClock
from tests.support.piped import Piped, piped
from tests.support.raw_server import Asked, RawServer, raw_server
from tests.support.scripted import chunked, head
from tests.support.served import ENVELOPE, VERSION_2026, call, request
from tests.support.waiting import PATIENCE_S, until

LIST = {
    "tools": [
        {"name": "look", "inputSchema": {}, "annotations": {"readOnlyHint": True}},
        {"name": "change", "inputSchema": {}, "annotations": {"readOnlyHint": False}},
        {"name": "silent", "inputSchema": {}},
    ]
}
STOPPING = {"isError": True, "content": [], "structuredContent": {"error": {"code": "STOPPING", "message": "x"}}}
Handler = Callable[[Asked], Awaitable[None]]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long; the patience is that of production unless a test says otherwise."""
    monkeypatch.setattr(bridge_module, "BRIDGE_PAUSE_MS_MIN", 1)
    monkeypatch.setattr(bridge_module, "BRIDGE_PAUSE_MS_MAX", 1)


def impatient(monkeypatch: pytest.MonkeyPatch, attempts: int = 4) -> None:
    monkeypatch.setattr(bridge_module, "BRIDGE_PATIENCE_MS", attempts - 1)


async def healthy(asked: Asked) -> None:
    """What a daemon answers."""
    asked.result(LIST if asked.message["method"] == "tools/list" else {"done": True})


async def without_list(asked: Asked) -> None:
    """A daemon that does not say which tools it has."""
    asked.result({"done": True})


async def breaks_off(asked: Asked) -> None:
    asked.hang_up()


async def breaks_off_in_the_middle(asked: Asked) -> None:
    asked.say(head("200 OK", "Content-Type: application/json", "Content-Length: 100"), b'{"jsonrpc":')
    asked.hang_up()


async def breaks_off_a_stream(asked: Asked) -> None:
    asked.say(head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked"), chunked(b": ping\n\n"))
    asked.hang_up()


async def is_away_behind_a_proxy(asked: Asked) -> None:
    asked.answer(b"<html>", status="502 Bad Gateway")


async def is_going_down(asked: Asked) -> None:
    asked.result(STOPPING)


@dataclass
class Failing:
    """Handlers: at first this fault for what is not the bridge's own question, then `then`."""

    fault: Handler
    then: Handler = healthy
    times: int = 1

    async def __call__(self, asked: Asked) -> None:
        if asked.message["id"] == "convmem" or self.times == 0:
            await self.then(asked)
            return
        self.times -= 1
        await self.fault(asked)


@dataclass
class Bridged:
    """A client, and the bridge it speaks through."""

    client: Piped
    bridge: Bridge
    serving: asyncio.Task[None]

    async def served(self) -> None:
        """Wait until the bridge has nothing more to do."""
        await asyncio.wait_for(self.serving, PATIENCE_S)

    async def end(self) -> None:
        """End the input, and wait until all is answered."""
        self.client.end()
        await self.served()


@asynccontextmanager
async def bridged(*places: Address | None) -> AsyncIterator[Bridged]:
    """A bridge at work. It asks at the first place, the next time at the second, and so on; the last one stays."""
    left = list(places)

    def addresses() -> Iterator[Address]:
        place = left.pop(0) if len(left) > 1 else left[0]
        return iter([] if place is None else [place])

    async with piped() as client:
        bridge = Bridge(client.conversation, Exchanges(addresses, lambda: None, "/mcp", ManualClock()))
        serving = asyncio.create_task(bridge.serve())
        try:
            yield Bridged(client, bridge, serving)
        finally:
            serving.cancel()
            await asyncio.wait([serving])


def nobody() -> Address:
    """Where nobody listens. No port: a connection to a free one may come to be with itself."""
    return Address(socket="/nowhere/convmem.sock")


REQUESTS = {
    "ping": request("ping"),
    "list": request("tools/list"),
    "read": call("look"),
    "write": call("change"),
    "unsaid": call("silent"),
    "unheard of": call("other"),
    "with a key": call("change", {"idempotency_key": "k"}),
    "with a key that is none": call("change", {"idempotency_key": 7}),
    "without a name": request("tools/call", {"arguments": []}),
}
HARMLESS = {"ping", "list", "read", "with a key"}
FAULTS: dict[str, Handler] = {
    "breaks off": breaks_off,
    "in the middle": breaks_off_in_the_middle,
    "in a stream": breaks_off_a_stream,
    "a proxy": is_away_behind_a_proxy,
}


def code_of(answer: Any) -> str:
    """The code of a refusal of the bridge's own; blank for an answer of the daemon."""
    return str(answer["error"]["data"]["code"]) if "error" in answer else ""


def seen(server: RawServer) -> list[Any]:
    """The client's own requests that came in."""
    return [asked for asked in server.asked if asked.message["id"] != "convmem"]


@pytest.mark.parametrize("kind", REQUESTS)
async def test_what_reached_nobody_is_asked_again(kind: str):
    async with raw_server(healthy) as server, bridged(nobody(), None, server.address) as found:
        found.client.send(REQUESTS[kind])
        assert "result" in await found.client.answer()
        assert len(seen(server)) == 1


@pytest.mark.parametrize("is_listed", [True, False], ids=["listed", "not listed"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", REQUESTS)
async def test_what_was_lost_is_asked_again_only_where_that_does_no_harm(kind: str, fault: str, is_listed: bool):
    failing = Failing(FAULTS[fault])
    async with raw_server(failing) as server, bridged(server.address) as found:
        if is_listed:
            failing.times = 0
            found.client.send(request("tools/list", request_id="list"))
            await found.client.answer()
            failing.times = 1
        before = len(seen(server))
        found.client.send(REQUESTS[kind])
        answer = await found.client.answer()
        assert code_of(answer) == ("" if kind in HARMLESS else "OUTCOME_UNKNOWN")
        assert answer["id"] == 1
        assert len(seen(server)) - before == (2 if kind in HARMLESS else 1)
        await found.end()


@pytest.mark.parametrize("fault", FAULTS)
async def test_where_the_tools_are_not_known_no_call_is_asked_again_without_a_key(fault: str):
    async with raw_server(Failing(FAULTS[fault], without_list)) as server, bridged(server.address) as found:
        found.client.send(REQUESTS["read"])
        assert code_of(await found.client.answer()) == "OUTCOME_UNKNOWN"
        assert len(seen(server)) == 1
    async with raw_server(Failing(FAULTS[fault], without_list)) as server, bridged(server.address) as found:
        found.client.send(REQUESTS["with a key"])
        assert "result" in await found.client.answer()


@pytest.mark.parametrize("kind", REQUESTS)
async def test_what_a_daemon_refused_because_it_goes_down_is_asked_of_its_successor(kind: str):
    async with raw_server(Failing(is_going_down, times=3)) as server, bridged(server.address) as found:
        found.client.send(REQUESTS[kind])
        answer = await found.client.answer()
        assert answer["result"] in ({"done": True}, LIST)
        assert len(seen(server)) == 4


async def test_patience_has_an_end_and_says_what_is_known(monkeypatch: pytest.MonkeyPatch):
    impatient(monkeypatch)
    async with bridged(None) as found:
        found.client.send(REQUESTS["write"])
        error = (await found.client.answer())["error"]
        assert error["data"] == {"code": "UNREACHABLE", "retryable": True}
        assert error["message"].endswith("nothing was done")
    async with raw_server(Failing(breaks_off, times=9)) as server, bridged(server.address) as found:
        found.client.send(REQUESTS["with a key"])
        error = (await found.client.answer())["error"]
        assert error["data"] == {"code": "UNREACHABLE", "retryable": True}
        assert "nothing was done" not in error["message"]
        assert len(seen(server)) == 4
    async with raw_server(Failing(is_going_down, times=9)) as server, bridged(server.address) as found:
        found.client.send(REQUESTS["write"])
        assert (await found.client.answer())["result"] == STOPPING


async def test_what_was_lost_and_then_met_nobody_is_not_said_to_be_undone(monkeypatch: pytest.MonkeyPatch):
    impatient(monkeypatch)
    async with raw_server(Failing(breaks_off)) as server, bridged(server.address, nobody()) as found:
        found.client.send(REQUESTS["with a key"])
        error = (await found.client.answer())["error"]
        assert error["data"]["code"] == "UNREACHABLE"
        assert "nothing was done" not in error["message"]
        assert "does no harm" in error["message"]


def test_the_pauses_together_are_the_patience(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    pauses = list(pauses_ms())
    assert sum(pauses) == BRIDGE_PATIENCE_MS
    assert max(pauses) == BRIDGE_PAUSE_MS_MAX
    assert pauses[:-1] == sorted(pauses[:-1])


def cancelled(request_id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


async def test_what_is_cancelled_is_not_answered_and_runs_to_its_end():
    release = asyncio.Event()

    async def slowly(asked: Asked) -> None:
        if asked.message["method"] == "tools/call":
            await release.wait()
        await healthy(asked)

    async with raw_server(slowly) as server, bridged(server.address) as found:
        found.client.send(call("look", request_id="a"), call("look", request_id="b"))
        await until(lambda: len(seen(server)) == 2)
        found.client.send(cancelled("a"), cancelled("z"), cancelled([]), {**cancelled(1), "params": None})
        found.client.send(request("ping", request_id="next"))
        assert (await found.client.answer())["id"] == "next"
        release.set()
        assert (await found.client.answer())["id"] == "b"
        await found.end()
    # Nothing is sent on of notifications.
    assert {asked.message["method"] for asked in server.asked} == {"tools/call", "tools/list", "ping"}


async def test_what_waits_for_a_daemon_and_is_cancelled_waits_no_longer():
    async with bridged(None) as found:
        found.client.send(call("look", request_id="a"))
        await until(lambda: found.bridge._in_hand)
        found.client.send(cancelled("a"))
        await until(lambda: not found.bridge._in_hand)
        await found.end()


async def test_a_number_for_one_who_was_cancelled_may_be_used_again():
    async with raw_server(healthy) as server, bridged(None, server.address) as found:
        found.client.send(call("look", request_id=1), cancelled(1))
        await until(lambda: not found.bridge._in_hand)
        found.client.send(call("look", request_id=1))
        assert (await found.client.answer())["id"] == 1


async def test_a_stop_answers_what_is_in_hand_and_refuses_what_waits():
    release = asyncio.Event()

    async def slowly(asked: Asked) -> None:
        await release.wait()
        await healthy(asked)

    async with raw_server(slowly) as server, bridged(server.address, nobody()) as found:
        found.client.send(request("ping", request_id="in hand"))
        await until(lambda: server.asked)
        found.client.send(request("ping", request_id="waits"))
        await until(lambda: len(found.bridge._in_hand) == 2)
        found.bridge.stop()
        refused = await found.client.answer()
        assert (refused["id"], code_of(refused)) == ("waits", "UNREACHABLE")
        found.client.send(request("ping", request_id="too late"))
        release.set()
        assert (await found.client.answer())["id"] == "in hand"
        await found.served()
    assert found.client.conversation.has_ended


async def test_one_who_leaves_answers_what_is_in_hand_and_puts_back_what_waits_in_order():
    release = asyncio.Event()

    async def slowly(asked: Asked) -> None:
        await release.wait()
        await healthy(asked)

    async with raw_server(slowly) as server, bridged(server.address, nobody()) as found:
        found.client.send(request("ping", request_id="in hand"))
        await until(lambda: server.asked)
        found.client.send(*(request("ping", request_id=number) for number in range(20)))
        await until(lambda: len(found.bridge._in_hand) == 21)
        found.bridge.leave()
        release.set()
        assert (await found.client.answer())["id"] == "in hand"
        await found.served()
        found.client.send(request("ping", request_id=20))
        ids = []
        async for _, message in found.client.conversation.messages():
            assert isinstance(message, Request)
            ids.append(message.id)
            found.client.conversation.room.release()
            if message.id == 20:
                break
        assert ids == list(range(21))


async def test_a_handshake_that_waits_is_left_to_the_next_reader():
    async with bridged(None) as found:
        found.client.send(request("initialize", {"protocolVersion": "2025-06-18"}), request("ping", request_id=2))
        await until(lambda: found.bridge._in_hand)
        found.bridge.leave()
        await found.served()
        messages = found.client.conversation.messages()
        assert [(await anext(messages))[1].method for _ in range(2)] == ["initialize", "ping"]  # type: ignore[union-attr]
        await messages.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("kind", "is_put_back"), [("read", True), ("with a key", True), ("write", False)])
async def test_what_is_lost_to_one_who_leaves_is_put_back_only_where_that_does_no_harm(kind: str, is_put_back: bool):
    release = asyncio.Event()

    async def slowly(asked: Asked) -> None:
        if asked.message["method"] == "tools/list":
            await healthy(asked)
            return
        await release.wait()
        asked.hang_up()

    async with raw_server(slowly) as server, bridged(server.address) as found:
        found.client.send(request("tools/list", request_id="list"), REQUESTS[kind])
        assert (await found.client.answer())["id"] == "list"
        await until(lambda: server.of("tools/call"))
        found.bridge.leave()
        release.set()
        if not is_put_back:
            assert code_of(await found.client.answer()) == "OUTCOME_UNKNOWN"
        await found.served()
        assert [taken.number for taken in found.client.conversation._again] == [2] * is_put_back


async def test_what_is_cancelled_is_not_put_back():
    async with bridged(None) as found:
        found.client.send(call("look", request_id="a"))
        await until(lambda: found.bridge._in_hand)
        found.bridge._in_hand["a"] = True
        found.bridge.leave()
        await found.served()
        assert not found.client.conversation._again


async def test_a_fault_of_ours_is_an_internal_error_and_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with raw_server(healthy) as server, bridged(server.address) as found:
        ask = found.bridge._exchanges.ask

        async def broken(request_id: Any, *arguments: Any, **more: Any) -> bytes:
            if request_id == "bad":
                raise ZeroDivisionError("a secret of the inside")
            return await ask(request_id, *arguments, **more)

        monkeypatch.setattr(found.bridge._exchanges, "ask", broken)
        found.client.send(request("ping", request_id="bad"), request("ping", request_id="good"))
        answers = await found.client.answers(2)
        assert answers["bad"]["error"] == {"code": -32603, "message": "Internal error"}
        assert answers["good"]["result"] == {"done": True}
        assert "ping ended by a fault" in caplog.text
        await found.end()


async def initialized(asked: Asked) -> None:
    """A daemon that agrees on an older version than it is asked for."""
    if asked.message["method"] == "initialize":
        asked.result({"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {}})
    else:
        await healthy(asked)


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "editor é", "version": "3"}}


async def test_the_handshake_is_carried_to_every_daemon_behind_it():
    async with raw_server(initialized) as server, bridged(server.address) as found:
        found.client.send(request("ping", request_id=0))
        await found.client.answer()
        found.client.send(request("initialize", HELLO), request("ping", request_id=2))
        assert [(await found.client.answer())["id"] for _ in range(2)] == [1, 2]
        server.close_all()
        found.client.send(request("ping", request_id=3), call("look", request_id=4, **ENVELOPE))
        await found.client.answers(2)
        headers = {asked.message["id"]: asked.headers for asked in server.asked}
    versions = {number: headers[number].get("mcp-protocol-version") for number in range(5)}
    assert versions == {0: None, 1: None, 2: "2025-03-26", 3: "2025-03-26", 4: VERSION_2026}
    agents = [headers[number]["user-agent"].encode("latin-1").decode() for number in range(5)]
    assert agents == [f"convmem-stdio/{__version__}", *["editor é/3"] * 4]
    assert (headers[4]["mcp-method"], headers[4]["mcp-name"]) == ("tools/call", "look")
    assert found.client.conversation.handshake == Handshake("2025-03-26", "editor é/3")


async def test_a_handshake_that_was_refused_agrees_on_nothing():
    async with raw_server(without_list) as server, bridged(server.address) as found:
        found.client.send(request("initialize", HELLO))
        await found.client.answer()
        assert found.client.conversation.handshake == Handshake()


async def test_which_tools_only_read_is_asked_once_and_only_if_the_client_has_not():
    async with raw_server(healthy) as server, bridged(server.address) as found:
        found.client.send(*(call("look", request_id=number) for number in range(5)))
        await found.client.answers(5)
        await until(lambda: found.client.conversation.read_only_tools is not None)
        await found.end()
        assert [asked.message["id"] for asked in server.of("tools/list")] == ["convmem"]
        assert found.client.conversation.read_only_tools == {"look"}
    async with raw_server(healthy) as server, bridged(server.address) as found:
        found.client.send(request("tools/list"))
        await found.client.answer()
        found.client.send(call("look", request_id=2))
        await found.client.answer()
        await found.end()
        assert [asked.message["id"] for asked in server.of("tools/list")] == [1]


async def test_requests_are_in_flight_side_by_side_and_no_more_than_there_is_room_for():
    release = asyncio.Event()

    async def slowly(asked: Asked) -> None:
        await release.wait()
        await healthy(asked)

    count = 2 * STDIO_REQUESTS_MAX
    async with raw_server(slowly) as server, bridged(server.address) as found:
        found.client.send(*(request("ping", request_id=number) for number in range(count)))
        await until(lambda: len(server.asked) == STDIO_REQUESTS_MAX)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(server.asked) == STDIO_REQUESTS_MAX
        release.set()
        assert set(await found.client.answers(count)) == set(range(count))
        await found.end()
        assert len(server.connections) <= STDIO_REQUESTS_MAX


async def test_what_a_daemon_tells_by_the_way_comes_before_its_answer():
    told = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}

    async def telling(asked: Asked) -> None:
        answer = {"jsonrpc": "2.0", "id": asked.message["id"], "result": {}}
        events = [b"data: %b\n\n" % json.dumps(message).encode() for message in (told, answer)]
        asked.say(head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked"), chunked(*events))

    async with raw_server(telling) as server, bridged(server.address) as found:
        found.client.send(request("ping"))
        assert [await found.client.answer() for _ in range(2)] == [told, {"jsonrpc": "2.0", "id": 1, "result": {}}]
        await found.end()


async def test_malformed_lines_are_answered_while_nobody_is_there():
    async with bridged(None) as found:
        found.client.send(request("ping"), b"{nope\n", b"[]\n")
        assert [(await found.client.answer())["error"]["code"] for _ in range(2)] == [-32700, -32600]


async def test_the_end_of_input_ends_nothing_that_has_begun():
    release = asyncio.Event()

    async def slowly(asked: Asked) -> None:
        await release.wait()
        await healthy(asked)

    async with raw_server(slowly) as server, bridged(server.address) as found:
        found.client.send(call("change"))
        await until(lambda: seen(server))
        found.client.end()
        await until(lambda: found.client.conversation.has_ended)
        release.set()
        assert (await found.client.answer())["result"] == {"done": True}
        await found.served()
