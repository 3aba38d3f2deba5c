"""What the tables of search cost a write: python -m tests.bench.indexing DIR MESSAGES [ROUNDS] [SECONDS]

Two daemons over HTTP on copies of one store, side by side: in one the indexer follows, in the other it is halted. They
are written to by turns, so that whatever else the machine does meets both: first at an even pace, PACE_HZ writes a
second for SECONDS; then as fast as can be. Goal: with the indexer, p99 at the pace at most 1.25 x without it.

A daemon of its own, not an engine in this process: what waits for the interpreter's lock there is answered late, and
the generator here, on the other core, sees it from its first to its last byte. A latency begins when a request is
handed to the socket; requests do not wait for each other. Half of the turns without the indexer are held against the
other half as well: what that ratio is off from 1 is noise.
"""

import asyncio
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import uvloop

from convmem.messages.events import MessageKept
from tests.bench.calls import _wait, free_port
from tests.bench.corpus import Author
from tests.bench.load import cpu_s, drive, table, tool_request
from tests.bench.search_speed import follow, made
from tests.support.daemons import RawClient

PACE_HZ, CONNECTIONS = 200, 16
ROUNDS, SECONDS = 4, 30
SATURATED, SATURATED_CONNECTIONS = 6_000, 64
P99_RATIO_MAX = 1.25
WITH, WITHOUT = "with the indexer", "without"


class Connection(asyncio.Protocol):
    """One keep-alive connection with one request outstanding at most."""

    def __init__(self) -> None:
        self._buffer = b""
        self._sent = 0.0
        self._answered: asyncio.Future[float] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    async def ask(self, request: bytes) -> float:
        """Send a request; seconds until its answer was there."""
        self._answered = asyncio.get_running_loop().create_future()
        self._sent = time.perf_counter()
        self.transport.write(request)
        return await self._answered

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, body = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        head = head.lower()
        assert head.startswith(b"http/1.1 200"), self._buffer
        start = head.index(b"content-length:") + 15
        if len(body) < int(head[start:].split(b"\r\n", 1)[0]):
            return
        assert b'"isError":true' not in body, body
        assert self._answered is not None
        self._answered.set_result(time.perf_counter() - self._sent)
        self._buffer = b""


async def paced(port: int, requests: Iterator[bytes], seconds: float) -> list[float]:
    """Write at an even pace, a little unevenly; seconds of each write."""
    loop, source = asyncio.get_running_loop(), random.Random(port)
    idle: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
        idle.put_nowait(connection)
    times_s: list[float] = []

    async def write(connection: Connection, request: bytes) -> None:
        times_s.append(await connection.ask(request))
        idle.put_nowait(connection)

    due = loop.time()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(int(seconds * PACE_HZ)):
            due += source.uniform(0.5, 1.5) / PACE_HZ
            await asyncio.sleep(max(0, due - loop.time()))
            tasks.create_task(write(await idle.get(), next(requests)))
    while not idle.empty():
        idle.get_nowait().transport.close()
    return times_s


def serve(is_halted: str, data_dir: str, port: str) -> None:
    """A daemon, in a process of its own."""
    from convmem import __main__, indexer

    if is_halted == WITHOUT:
        indexer.Indexer._follow = lambda *_: 0  # type: ignore[method-assign]
    sys.argv = ["convmem", "serve", "--data-dir", data_dir, "--bind", f"127.0.0.1:{port}"]
    __main__.main()


class Side:
    """One of the two daemons, and what was measured of it."""

    def __init__(self, name: str, data_dir: Path) -> None:
        self.name, self.port = name, free_port()
        command = [sys.executable, "-m", "tests.bench.indexing", "serve", name, str(data_dir), str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.paced_ms: list[list[float]] = []
        self.cpu_us: list[float] = []
        self.rates: list[float] = []
        self.lags: list[int] = []
        self.caught_up_s: list[float] = []

    def lag(self) -> int:
        """How many changes the tables are behind."""
        client = RawClient(f"http://127.0.0.1:{self.port}/mcp/all")
        facts: Any = client.call("get_system_health")
        client.http.close()
        return int(facts["search"]["lag"])

    def settle(self) -> float:
        """Wait until the indexer has followed, if it does; seconds."""
        begun = time.perf_counter()
        while self.name == WITH and self.lag():
            time.sleep(0.05)
        return time.perf_counter() - begun

    def pace(self, requests: Iterator[bytes], seconds: float) -> None:
        """A turn at the pace."""
        before = cpu_s(self.process.pid)
        times_s = uvloop.run(paced(self.port, requests, seconds))
        self.lags.append(self.lag())
        self.settle()
        self.paced_ms.append(sorted(one * 1000 for one in times_s))
        self.cpu_us.append((cpu_s(self.process.pid) - before) / len(times_s) * 1e6)

    def saturate(self, requests: Iterator[bytes]) -> None:
        """A turn as fast as can be."""
        some = list(islice(requests, SATURATED))
        count, connections = SATURATED, SATURATED_CONNECTIONS
        self.rates.append(drive(self.port, self.process.pid, some, count=count, connections=connections).rate)
        self.caught_up_s.append(self.settle())


@contextmanager
def sides(store: Path, directory: Path) -> Iterator[list[Side]]:
    """Both daemons on copies of a store, ended and removed afterwards."""
    begun: list[Side] = []
    copies = directory / "indexing"
    shutil.rmtree(copies, ignore_errors=True)
    try:
        for number, name in enumerate((WITH, WITHOUT)):
            shutil.copytree(store, copies / str(number))
            begun.append(Side(name, copies / str(number)))
            _wait(begun[-1].port)
            RawClient(f"http://127.0.0.1:{begun[-1].port}/mcp/all").call("get_system_health")
        yield begun
    finally:
        for side in begun:
            side.process.terminate()
            side.process.wait()
        shutil.rmtree(copies, ignore_errors=True)


def written(port: int) -> Iterator[bytes]:
    """Requests that write messages, the same for every port."""
    for message in Author().messages():
        event = message.event
        assert isinstance(event, MessageKept)
        arguments = {"session_id": event.session_id, "role": event.role, "content": event.content}
        yield tool_request(port, "/mcp", "write_message", arguments)


def share(times_ms: list[float], part: float) -> float:
    """A percentile of rising times."""
    return times_ms[min(len(times_ms) - 1, int(len(times_ms) * part))]


def rows_of(with_it: Side, without: Side) -> list[list[str]]:
    """All figures, as rows of a table."""
    found = []
    halves = [sorted(chain.from_iterable(without.paced_ms[start::2])) for start in (0, 1)]
    for name, part in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)):
        ours, theirs = (share(sorted(chain.from_iterable(side.paced_ms)), part) for side in (with_it, without))
        turns = [
            share(one, part) / share(other, part) for one, other in zip(with_it.paced_ms, without.paced_ms, strict=True)
        ]
        noise = share(halves[1], part) / share(halves[0], part) if halves[1] else 1
        ratio = f"{ours / theirs:.2f} (turns {min(turns):.2f} … {max(turns):.2f})"
        goal = f"{P99_RATIO_MAX}" if name == "p99" else ""
        found.append(
            [f"write at {PACE_HZ}/s, {name}", f"{ours:.2f} ms", f"{theirs:.2f} ms", ratio, f"{noise:.2f}", goal]
        )
    cpu = [statistics.median(side.cpu_us) for side in (with_it, without)]
    rate = [statistics.median(side.rates) for side in (with_it, without)]
    return [
        *found,
        ["CPU a write at the pace", f"{cpu[0]:.0f} us", f"{cpu[1]:.0f} us", f"{cpu[0] / cpu[1]:.2f}", "", ""],
        ["behind after a turn, most", f"{max(with_it.lags)}", "", "", "", ""],
        ["writes, 64 connections", f"{rate[0]:,.0f}/s", f"{rate[1]:,.0f}/s", f"{rate[0] / rate[1]:.2f}", "", ""],
        [f"to follow {SATURATED:,} of them", f"{statistics.median(with_it.caught_up_s):.1f} s", "", "", "", ""],
    ]


def main() -> None:
    directory, count = Path(sys.argv[1]), int(sys.argv[2])
    rounds, seconds = (int(sys.argv[at]) if len(sys.argv) > at else value for at, value in ((3, ROUNDS), (4, SECONDS)))
    store, _ = made(directory, count)
    with get_context("spawn").Pool(1) as own:
        own.apply(follow, (store,))
    with sides(store, directory) as both:
        requests = {side.name: written(side.port) for side in both}
        for side in both:
            drive(side.port, side.process.pid, list(islice(requests[side.name], 200)), count=200, connections=8)
            side.settle()
        for number in range(rounds):
            for side in both if number % 2 else both[::-1]:
                side.pace(requests[side.name], seconds)
        for number in range(rounds):
            for side in both if number % 2 else both[::-1]:
                side.saturate(requests[side.name])
        rows = rows_of(*both)
    title = f"write_message beside {count:,} messages, {rounds} turns of {seconds} s each"
    table(title, ["what", WITH, WITHOUT, "ratio", "noise", "goal"], rows)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        main()
