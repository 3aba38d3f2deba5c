"""Tests of MCP on descriptors: every line is answered, writes are finished, nothing else is on stdout."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from convmem.limits import BODY_BYTES_MAX, CONTENT_BYTES_MAX, STDIO_REQUESTS_MAX
from convmem.transport.conversation import Conversation
from convmem.transport.lines import Streams
from convmem.transport.loading import Loading, kernel
from convmem.transport.stdio import Stdio
from tests.support.served import ENVELOPE, call, request
from tests.support.source import REPOSITORY
from tests.support.toy import Toy, toy_catalog
from tests.support.waiting import PATIENCE_S, until


class Peer:
    """The other end of the two descriptors, as a client program has it."""

    def __init__(self, toy: Toy, stdio: Stdio, to: asyncio.StreamWriter, come: asyncio.StreamReader) -> None:
        self.toy = toy
        self.stdio = stdio
        self.to = to
        self.come = come

    def send(self, *messages: Any) -> None:
        for message in messages:
            self.to.write(message if isinstance(message, bytes) else msgspec.json.encode(message) + b"\n")

    async def answer(self) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return json.loads(await self.come.readuntil(b"\n"))

    async def rest(self) -> list[Any]:
        """Close the input and return what else is answered."""
        self.to.close()
        async with asyncio.timeout(PATIENCE_S):
            return [json.loads(line) for line in (await self.come.read()).split(b"\n") if line]


@asynccontextmanager
async def peer(limit: int = 2**24, *, reads: bool = True) -> AsyncIterator[Peer]:
    """A Stdio in this loop, at the other end of two pipes; it ends when its input does."""
    loop = asyncio.get_running_loop()
    incoming, to_write = os.pipe()
    to_read, outgoing = os.pipe()
    come = asyncio.StreamReader(limit)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(come), os.fdopen(to_read, "rb"))
    if not reads:
        reading.pause_reading()
    writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(to_write, "wb"))
    to = asyncio.StreamWriter(writing, protocol, None, loop)
    toy = Toy()
    loading = Loading(kernel(toy_catalog, toy))
    await loading.run()
    stdio = Stdio(loading, "messages", Conversation(Streams(incoming, outgoing)))

    async def serve() -> None:
        try:
            await stdio.serve()
        finally:
            os.close(outgoing)
            os.close(incoming)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve())
        yield Peer(toy, stdio, to, come)
        to.close()
        reading.resume_reading()
    reading.close()


PING = request("ping", request_id="next")
LINES: dict[bytes, tuple[int, Any]] = {
    b"{nope\n": (-32700, None),
    b"\x00\n": (-32700, None),
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud83d"}}\n': (-32700, None),
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\\ud800":1}}\n': (-32700, None),
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xff"}}\n': (-32700, None),
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\x00"}}\n': (-32700, None),
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}\n': (-32700, None),
    b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}\n': (-32700, None),
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * 300 + b"]" * 300 + b"}}\n": (-32700, None),
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"9" * 5000 + b"}}\n": (-32700, None),
    b'{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}\n': (-32700, None),
    b"\xff\xfe{\x00}\x00\n": (-32700, None),
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n': (-32600, None),
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n': (-32600, None),
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n': (-32600, None),
    b'"ping"\n': (-32600, None),
    b'{"id":8,"method":"ping"}\n': (-32600, 8),
    b'{"jsonrpc":"2.0","id":8,"method":"no/such"}\n': (-32601, 8),
    b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{}}\n': (-32602, 8),
    b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"toy_break"}}\n': (-32603, 8),
}


@pytest.mark.parametrize("line", LINES, ids=lambda line: ascii(line[:70]))
async def test_a_malformed_line_is_answered_and_the_next_one_served(line: bytes):
    async with peer() as client:
        client.send(line)
        answer = await client.answer()
        assert (answer["error"]["code"], answer["id"]) == LINES[line]
        client.send(PING)
        assert await client.answer() == {"jsonrpc": "2.0", "id": "next", "result": {}}


async def test_byte_order_marks_line_ends_of_windows_and_blank_lines_are_tolerated():
    plain = msgspec.json.encode(PING)
    async with peer() as client:
        client.send(
            b"\xef\xbb\xbf" + plain + b"\r\n", b"\n", b"\r\n", b"  \n", b"\xef\xbb\xbf\n", b"\t" + plain + b" \n"
        )
        client.send(plain)
        assert await client.rest() == [{"jsonrpc": "2.0", "id": "next", "result": {}}] * 3


async def test_a_line_may_come_in_any_pieces():
    line = msgspec.json.encode(call("toy_write", {"text": "é\u2028😀"})) + b"\n"
    async with peer() as client:
        for byte in line:
            client.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await client.answer())["result"]["structuredContent"]["text"] == "é\u2028😀"


async def test_what_wants_no_answer_gets_none():
    async with peer() as client:
        client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        client.send({"jsonrpc": "2.0", "method": "any/thing", "params": {}}, {"jsonrpc": "2.0", "id": 1, "result": {}})
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}, PING)
        assert [answer["id"] for answer in await client.rest()] == ["next"]


@pytest.mark.slow
async def test_the_largest_line_is_served_and_a_longer_one_is_refused_and_skipped():
    async with peer() as client:
        text = "\x01" * CONTENT_BYTES_MAX
        client.send(call("toy_write", {"text": text}, "large"))
        assert (await client.answer())["result"]["structuredContent"]["text"] == text
        padded = msgspec.json.encode(PING)
        client.send(padded + b" " * (BODY_BYTES_MAX - len(padded)) + b"\n")
        assert (await client.answer())["result"] == {}
        client.send(padded + b" " * (BODY_BYTES_MAX - len(padded) + 1) + b"\n")
        assert (await client.answer())["error"]["code"] == -32600
        client.send(b"x" * (3 * BODY_BYTES_MAX) + b"\n", PING)
        assert (await client.answer())["error"]["code"] == -32600
        assert (await client.answer())["id"] == "next"
        client.send(b"x" * (BODY_BYTES_MAX + 1))
        assert [answer["error"]["code"] for answer in await client.rest()] == [-32600]


async def test_line_separators_are_escaped_in_answers():
    async with peer() as client:
        client.send(call("toy_write", {"text": "a\u2028b\u2029c\u0085d\\\u2028"}))
        raw = await client.come.readuntil(b"\n")
        assert "\u2028" not in raw.decode()
        assert "\u2029" not in raw.decode()
        assert json.loads(raw)["result"]["structuredContent"]["text"] == "a\u2028b\u2029c\u0085d\\\u2028"


async def test_both_eras_are_spoken_without_a_handshake_and_with_one():
    info = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    async with peer() as client:
        client.send(call("toy_read", request_id=1), request("initialize", info, 2), call("toy_read", request_id=3))
        client.send(call("toy_read", request_id=4, **ENVELOPE))
        answers = {answer["id"]: answer["result"] for answer in await client.rest()}
        assert answers[2]["protocolVersion"] == "2024-11-05"
        assert "resultType" not in answers[1]
        assert "resultType" not in answers[3]
        assert answers[4]["resultType"] == "complete"
        assert {origin.transport for origin in client.toy.origins} == {"stdio"}
        assert sorted(str(origin.client) for origin in client.toy.origins) == ["None", "old/1", "tester/9"]


async def test_writes_begin_in_the_order_in_which_they_came():
    async with peer() as client:
        client.send(*(call("toy_write", {"text": str(number)}, number) for number in range(200)))
        client.send(*(call("toy_read", request_id=f"r{number}") for number in range(20)))
        answers = await client.rest()
        assert client.toy.notes == [str(number) for number in range(200)]
        assert len({answer["id"] for answer in answers}) == 220


async def test_calls_run_side_by_side():
    async with peer() as client:
        client.send(call("toy_wait", {"name": "slow"}, "slow"), PING)
        assert (await client.answer())["id"] == "next"
        client.toy.released.set()
        assert (await client.answer())["id"] == "slow"


async def test_progress_comes_before_the_answer():
    async with peer() as client:
        client.send(call("toy_steps", progressToken=0))
        *reports, answer = [await client.answer() for _ in range(4)]
        assert [report["params"]["progress"] for report in reports] == [0, 1, 2]
        assert answer["result"]["structuredContent"] == {"steps": 2}


def cancelled(request_id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


async def test_a_read_that_is_cancelled_ends_and_is_not_answered():
    async with peer() as client:
        client.send(call("toy_wait", {"name": "read"}, 1))
        await client.toy.waiting.wait()
        client.send(cancelled("1"), cancelled(2), cancelled(1), cancelled(1), PING)
        assert (await client.answer())["id"] == "next"
        assert client.toy.ended == ["read"]
        assert client.toy.notes == []
        assert await client.rest() == []


async def test_a_write_that_is_cancelled_is_finished_and_answered():
    async with peer() as client:
        client.send(call("toy_wait_write", {"name": "write"}, 1))
        await client.toy.waiting.wait()
        client.send(cancelled(1), PING)
        assert (await client.answer())["id"] == "next"
        client.toy.released.set()
        assert (await client.answer())["result"]["structuredContent"] == {"waited": "write"}
        assert client.toy.notes == ["write"]


async def test_an_answer_that_is_being_written_is_not_cut_by_a_cancellation():
    async with peer(reads=False) as client:
        client.toy.notes.append("x" * 500_000)
        client.send(call("toy_read", request_id=1))
        # The pipe is full and nobody reads: the answer is half written.
        await until(client.stdio._output._turn.locked)
        client.send(cancelled(1), PING)
        for _ in range(50):
            await asyncio.sleep(0)
        resume(client)
        assert [(await client.answer())["id"] for _ in range(2)] == [1, "next"]


async def test_the_end_of_input_ends_nothing_that_has_begun():
    async with peer() as client:
        client.send(call("toy_wait_write", {"name": "last"}, 1))
        await client.toy.waiting.wait()
        client.to.close()
        client.toy.released.set()
        assert [answer["result"]["structuredContent"] for answer in await client.rest()] == [{"waited": "last"}]
        assert client.toy.notes == ["last"]


async def test_a_stop_answers_what_was_read_and_reads_no_further():
    async with peer() as client:
        client.send(call("toy_wait_write", {"name": "last"}, 1))
        await client.toy.waiting.wait()
        client.stdio.stop()
        client.send(call("toy_write", {"text": "too late"}, 2))
        client.toy.released.set()
        assert [answer["id"] for answer in await client.rest()] == [1]
        assert client.toy.notes == ["last"]


async def test_a_client_that_does_not_read_stops_being_read_and_is_served_later():
    async with peer(2**24, reads=False) as client:
        text = "x" * 20_000
        client.send(*(call("toy_write", {"text": text}, number) for number in range(3 * STDIO_REQUESTS_MAX)))
        before = -1
        while before != len(client.toy.notes) or not before:
            before = len(client.toy.notes)
            for _ in range(50):
                await asyncio.sleep(0)
        assert STDIO_REQUESTS_MAX <= before < 2 * STDIO_REQUESTS_MAX
        resume(client)
        assert len({(await client.answer())["id"] for _ in range(3 * STDIO_REQUESTS_MAX)}) == 3 * STDIO_REQUESTS_MAX


def resume(client: Peer) -> None:
    transport: Any = client.come._transport  # type: ignore[attr-defined]
    transport.resume_reading()


async def test_progress_is_dropped_for_a_client_that_does_not_read():
    async with peer(reads=False) as client:
        client.send(call("toy_flood", progressToken=1))
        await until(lambda: client.toy.ended == ["flood"])


async def test_a_client_that_is_gone_still_gets_its_write_done():
    async with peer() as client:
        client.send(call("toy_wait_write", {"name": "kept"}, 1), call("toy_write", {"text": "too"}, 2))
        await client.toy.waiting.wait()
        transport: Any = client.come._transport  # type: ignore[attr-defined]
        transport.close()
        client.toy.released.set()
        client.to.close()
    assert sorted(client.toy.notes) == ["kept", "too"]


def run(sent: bytes, **more: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tests.support.toy_stdio"]
    environment = {**os.environ, "PYTHONASYNCIODEBUG": "1"}
    return subprocess.run(command, input=sent, cwd=REPOSITORY, env=environment, timeout=30, capture_output=True, **more)


@pytest.mark.slow
def test_a_process_has_nothing_but_the_protocol_on_stdout():
    lines = b"".join(LINES)
    ended = run(lines + msgspec.json.encode(call("toy_write", {"text": "last"}, "w")))
    answers = [json.loads(line) for line in ended.stdout.split(b"\n") if line]
    assert ended.returncode == 0
    assert len(answers) == len(LINES) + 1
    assert b"a stray line on stdout" in ended.stderr
    assert b"kept 1" in ended.stderr
    assert all(set(answer) <= {"jsonrpc", "id", "result", "error"} for answer in answers)


@pytest.mark.slow
@pytest.mark.parametrize("line", [msgspec.json.encode(PING) + b"\n", b""])
def test_input_and_output_may_be_files(tmp_path: Path, line: bytes):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(line)
    with source.open("rb") as incoming, target.open("wb") as outgoing:
        command = [sys.executable, "-m", "tests.support.toy_stdio"]
        ended = subprocess.run(command, stdin=incoming, stdout=outgoing, cwd=REPOSITORY, timeout=30)
    assert ended.returncode == 0
    assert target.read_bytes() == (b'{"jsonrpc":"2.0","id":"next","result":{}}\n' if line else b"")
