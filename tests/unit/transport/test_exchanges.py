"""exchanges: whatever comes back becomes one line with the request's own id, or is said to be lost; what connection it
went over is nobody's care.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from convmem.hooks.target import Address, Misplaced
from convmem.limits import BRIDGE_QUIET_MS_MAX, BRIDGE_TRUST_MS_MAX
from convmem.transport.exchanges import Exchanges
from convmem.transport.http_client import Lost, Unreachable
from tests.support.manual_clock import ManualClock
from tests.support.raw_server import Asked, RawServer, free_port, raw_server
from tests.support.scripted import chunked, head
from tests.support.waiting import PATIENCE_S, until

LINE = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
STREAM = head("200 OK", "Content-Type: text/event-stream; charset=utf-8", "Transfer-Encoding: chunked")


@dataclass
class Way:
    """Exchanges to where `addresses` say, as the bridge uses them; `told` is what came before answers."""

    addresses: list[Address]
    token: bytes | None = None
    clock: ManualClock = field(default_factory=ManualClock)
    told: list[Any] = field(default_factory=list)
    fault: str = ""

    def __post_init__(self) -> None:
        self.exchanges = Exchanges(self._addresses, self._token, "/mcp/core", self.clock)

    def _addresses(self) -> Iterable[Address]:
        return iter(self.addresses)

    def _token(self) -> bytes | None:
        if self.fault:
            raise Misplaced(self.fault)
        return self.token

    async def ask(self, request_id: Any = 7, *, line: bytes = LINE, is_repeatable: bool = True) -> Any:
        """The answer as a value; it must be one line."""

        async def tell(text: bytes) -> None:
            assert b"\n" not in text
            self.told.append(json.loads(text))

        async with asyncio.timeout(PATIENCE_S):
            answer = await self.exchanges.ask(request_id, [(b"X-Own", b"1")], line, tell, is_repeatable=is_repeatable)
        assert b"\n" not in answer
        assert b"\r" not in answer
        return json.loads(answer)


def bodies(body: bytes, status: str = "200 OK", kind: str = "application/json") -> Any:
    async def handle(asked: Asked) -> None:
        asked.say(head(status, f"Content-Type: {kind}", f"Content-Length: {len(body)}"), body)

    return handle


async def echo(asked: Asked) -> None:
    asked.result({"seen": True})


async def answered(handle: Any, request_id: Any = 7) -> Any:
    """What becomes of one request to such a server."""
    async with raw_server(handle) as server:
        way = Way([server.address])
        try:
            return await way.ask(request_id)
        finally:
            way.exchanges.close()


async def test_an_answer_passes_as_it_is():
    text = b'{"jsonrpc":"2.0","id":7,"result":{"a":"\xc3\xa9\\n","x":1.0}}'
    assert await answered(bodies(text)) == {"jsonrpc": "2.0", "id": 7, "result": {"a": "é\n", "x": 1.0}}


async def test_what_goes_out_is_the_line_with_what_lets_it_in():
    async with raw_server(echo) as server:
        way = Way([server.address._replace(prefix="/under")], token=b"secret")
        await way.ask()
        way.exchanges.close()
    (asked,) = server.asked
    assert (asked.line, asked.body) == ("POST /under/mcp/core HTTP/1.1", LINE)
    own = {key: value for key, value in asked.headers.items() if key != "content-length"}
    assert own == {
        "host": server.address.authority,
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "x-own": "1",
        "authorization": "Bearer secret",
    }


async def test_an_answer_of_many_lines_becomes_one():
    text = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"text": "a\nb"}}, indent=2).replace("\n", "\r\n").encode()
    assert (await answered(bodies(text)))["result"] == {"text": "a\nb"}


REFUSAL = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a token is needed","data":{"code":"FORBIDDEN"}}}'
)


@pytest.mark.parametrize("request_id", [7, "seven", 2**53])
async def test_a_refusal_that_read_no_body_gets_the_id_of_the_request(request_id: Any):
    found = await answered(bodies(REFUSAL, "401 Unauthorized"), request_id)
    assert found == {**json.loads(REFUSAL), "id": request_id}


FOREIGN = {
    b"<html><body>Bad\r\nGateway \xff</body></html>": "<html><body>Bad",
    b"": "(empty)",
    b"{}": "{}",
    b"[]": "[]",
    b'{"jsonrpc":"2.0","id":8,"result":{}}': "none of convmem's",
    b'{"jsonrpc":"2.0","id":"7","result":{}}': "none of convmem's",
    b'{"jsonrpc":"2.0","id":null,"result":{}}': "none of convmem's",
    b'{"jsonrpc":"2.0","id":7}': "none of convmem's",
    b'{"jsonrpc":"2.0","id":7,"method":"ping"}': "none of convmem's",
    b'{"jsonrpc":"1.0","id":7,"result":{}}': "none of convmem's",
    b'{"error":{"code":"NOT_FOUND"}}': "NOT_FOUND",
    b"x" * 100_000: "xxx",
}


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "302 Found", "500 Internal Server Error"])
@pytest.mark.parametrize("body", FOREIGN, ids=lambda body: ascii(body[:40]))
async def test_what_is_none_of_convmem_s_is_said_to_be_so(body: bytes, status: str):
    found = await answered(bodies(body, status, "text/html"))
    assert found["id"] == 7
    assert found["error"]["data"] == {"code": "NO_ANSWER", "retryable": False}
    assert found["error"]["message"].startswith(f"NO_ANSWER: the answer {status[:3]} is none of convmem's")
    assert FOREIGN[body] in found["error"]["message"]
    assert len(found["error"]["message"]) < 1000


@pytest.mark.parametrize("status", ["502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"])
async def test_a_proxy_that_says_the_daemon_is_away_may_have_passed_it_on(status: str):
    with pytest.raises(Lost, match=f"a proxy answered {status[:3]}"):
        await answered(bodies(b"<html>", status, "text/html"))


async def test_an_answer_of_convmem_s_counts_whatever_its_status_is():
    text = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"x"}}'
    assert (await answered(bodies(text, "503 Service Unavailable")))["error"]["code"] == -32603
    assert (await answered(bodies(REFUSAL, "503 Service Unavailable")))["id"] == 7


def event(message: Any, **dumping: Any) -> bytes:
    lines = json.dumps(message, **dumping).split("\n")
    return b"event: message\r\n" + b"".join(b"data: %b\r\n" % line.encode() for line in lines) + b"\r\n"


PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
RESULT = {"jsonrpc": "2.0", "id": 7, "result": {"text": "a\nb"}}


async def test_what_comes_before_the_answer_on_a_stream_is_told():
    other = {"jsonrpc": "2.0", "id": 8, "result": {}}
    said = b": ping\r\n\r\ndata: {\r\n\r\n" + event(PROGRESS) + event(other) + event(PROGRESS) + event(RESULT, indent=1)

    async def handle(asked: Asked) -> None:
        asked.say(STREAM, chunked(*(bytes([byte]) for byte in said)))

    async with raw_server(handle) as server:
        way = Way([server.address])
        assert await way.ask() == RESULT
        assert way.told == [PROGRESS, PROGRESS]
        way.exchanges.close()


async def test_an_answer_on_a_stream_is_there_although_the_stream_goes_on():
    async def handle(asked: Asked) -> None:
        asked.say(STREAM, chunked(event(RESULT), is_ended=False))

    assert await answered(handle) == RESULT


@pytest.mark.parametrize("is_ended", [True, False])
@pytest.mark.parametrize("said", [b": nothing\r\n\r\n", event(PROGRESS), event(RESULT)[:-2]], ids=ascii)
async def test_a_stream_that_ends_without_the_answer_is_lost(said: bytes, is_ended: bool):
    async def handle(asked: Asked) -> None:
        asked.say(STREAM, chunked(said, is_ended=is_ended))
        asked.hang_up()

    with pytest.raises(Lost):
        await answered(handle)


async def test_a_connection_serves_one_request_after_the_other_and_many_are_made_at_once():
    release = asyncio.Event()

    async def handle(asked: Asked) -> None:
        if asked.message["id"] != 7:
            await release.wait()
        await echo(asked)

    async with raw_server(handle) as server:
        way = Way([server.address])
        for _ in range(3):
            await way.ask()
        assert [asked.connection for asked in server.asked] == [1, 1, 1]
        lines = [json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode() for number in range(100, 110)]
        asking = [asyncio.create_task(way.ask(100 + number, line=line)) for number, line in enumerate(lines)]
        await until(lambda: len(server.asked) == 13)
        release.set()
        assert {answer["id"] for answer in await asyncio.gather(*asking)} == set(range(100, 110))
        assert len(server.connections) == 10
        way.exchanges.close()


async def connections_used(server: RawServer, way: Way, quiet_ms: int, *, is_repeatable: bool) -> int:
    """Ask, be quiet for so long, ask again: how many connections that took."""
    before = len(server.connections)
    await way.ask(is_repeatable=is_repeatable)
    way.clock.pass_ms(quiet_ms)
    await way.ask(is_repeatable=is_repeatable)
    return len(server.connections) - before


@pytest.mark.parametrize(
    ("quiet_ms", "is_repeatable", "expected"),
    [
        (0, False, 1),
        (BRIDGE_TRUST_MS_MAX, False, 1),
        (BRIDGE_TRUST_MS_MAX + 1, False, 2),
        (BRIDGE_TRUST_MS_MAX + 1, True, 1),
        (BRIDGE_QUIET_MS_MAX, True, 1),
        (BRIDGE_QUIET_MS_MAX + 1, True, 2),
    ],
)
async def test_what_must_not_be_sent_twice_goes_over_a_connection_that_was_used_just_now(
    quiet_ms: int, is_repeatable: bool, expected: int
):
    async with raw_server(echo) as server:
        way = Way([server.address])
        assert await connections_used(server, way, quiet_ms, is_repeatable=is_repeatable) == expected
        way.exchanges.close()


async def test_connections_that_are_quiet_for_too_long_are_let_go():
    release = asyncio.Event()

    async def handle(asked: Asked) -> None:
        await release.wait()
        await echo(asked)

    async with raw_server(handle) as server:
        way = Way([server.address])
        asking = [asyncio.create_task(way.ask()) for _ in range(5)]
        await until(lambda: len(server.asked) == 5)
        release.set()
        await asyncio.gather(*asking)
        way.clock.pass_ms(BRIDGE_QUIET_MS_MAX + 1)
        await way.ask()
        assert len(way.exchanges._quiet) == 1
        await until(lambda: sum(writer.is_closing() for writer in server.connections) == 5)
        way.exchanges.close()


async def test_a_connection_that_was_hung_up_is_not_used():
    async with raw_server(echo) as server:
        way = Way([server.address])
        await way.ask()
        server.close_all()
        await until(lambda: not way.exchanges._quiet[0].connection.is_usable)
        await way.ask()
        assert [asked.connection for asked in server.asked] == [1, 2]
        way.exchanges.close()


async def test_the_token_is_read_each_time():
    async with raw_server(echo) as server:
        way = Way([server.address], token=b"first")
        await way.ask()
        way.token = b"second"
        await way.ask()
        way.token = None
        await way.ask()
        way.fault = "the token file is not there"
        with pytest.raises(Unreachable, match="the token file is not there"):
            await way.ask()
        way.fault = ""
        await way.ask()
        way.exchanges.close()
    seen = [asked.headers.get("authorization") for asked in server.asked]
    assert seen == ["Bearer first", "Bearer second", None, None]
    assert len(server.connections) == 1


async def test_the_first_address_where_somebody_listens_is_asked_and_found_again_elsewhere():
    nobody = Address(host="127.0.0.1", port=free_port(), authority="nobody")
    async with raw_server(echo) as first, raw_server(echo) as second:
        way = Way([nobody, first.address, second.address])
        await way.ask()
        assert (len(first.asked), len(second.asked)) == (1, 0)
        first.close_all()
        await until(lambda: not way.exchanges._quiet[0].connection.is_usable)
        way.addresses = [nobody, second.address]
        await way.ask()
        assert (len(first.asked), len(second.asked)) == (1, 1)
        way.exchanges.close()


async def test_nobody_is_there():
    with pytest.raises(Unreachable, match="no daemon is running"):
        await Way([]).ask()
    nobody = Address(host="127.0.0.1", port=free_port(), authority="nobody")
    with pytest.raises(Unreachable, match="no connection to http://nobody"):
        await Way([nobody]).ask()


@pytest.mark.parametrize("said", [b"", head("200 OK", "Content-Length: 9") + b"{", b"no http\r\n\r\n"], ids=ascii)
async def test_a_connection_that_broke_off_is_lost_and_let_go(said: bytes):
    async def handle(asked: Asked) -> None:
        asked.say(said)
        asked.hang_up()

    async with raw_server(handle) as server:
        way = Way([server.address])
        with pytest.raises(Lost):
            await way.ask()
        assert not way.exchanges._quiet


async def test_a_question_that_is_cancelled_lets_its_connection_go():
    async def handle(asked: Asked) -> None:
        await asyncio.Event().wait()

    async with raw_server(handle) as server:
        way = Way([server.address])
        asking = asyncio.create_task(way.ask())
        await until(lambda: server.asked)
        asking.cancel()
        await asyncio.wait([asking])
        assert not way.exchanges._quiet
        assert await server.asked[0].reader.read() == b""
