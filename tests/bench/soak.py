"""A day in small: python -m tests.bench.soak [CALLS [CLIENTS]]

CALLS (200,000) mixed calls by CLIENTS (20) on kept connections, beside callers who abandon handshakes, cut bodies, read
slowly or hang up before the answer. Memory and descriptors of the daemon are sampled all the while. Looked at: the
slope of resident memory behind the warm-up beside its own error, what is open at the end beside what was open before,
and the latency of the well-behaved with and without the others.

Bounded in count, loopback only.
"""

import asyncio
import contextlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.bench.load import post, table, tool_request
from tests.support.daemons import Daemon, daemon

CALLS, CLIENTS, SAMPLES = 200_000, 20, 40
# Between two troubles of one maker.
PAUSE_S = 0.1
WARM_SHARE, SETTLE_S = 0.5, 5
SCHEMA = {"table": "visits", "fields": [{"name": "place", "type": "string"}, {"name": "count", "type": "number"}]}
WORDS = ("harbour", "lantern", "味噌", "orchard", "แมว", "window", "railway", "copper", "Straße", "记忆")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


def sentence(dice: random.Random) -> str:
    return " ".join(dice.choices(WORDS, k=12))


def mixed(dice: random.Random, port: int) -> bytes:
    """One call as an agent makes it."""
    session = f"session {dice.randrange(200)}"
    arguments: tuple[str, dict[str, Any]] = dice.choices(
        (
            ("write_message", {"session_id": session, "role": "user", "content": sentence(dice)}),
            ("read_messages", {"view": "history", "session_id": session, "limit": 10}),
            ("search_messages", {"query": dice.choice(WORDS), "limit": 5}),
            ("recall", {"query": dice.choice(WORDS)}),
            ("get_profile", {}),
            ("create", {"table": "visits", "data": {"place": sentence(dice), "count": dice.randrange(9)}}),
            ("list", {"table": "visits", "limit": 5}),
            ("write_message", {"session_id": session, "role": "nobody"}),
        ),
        weights=(30, 20, 15, 10, 5, 10, 5, 5),
    )[0]
    if dice.random() < 0.05:
        return post(port, "/mcp/all", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    return tool_request(port, "/mcp/all", *arguments, modern=dice.random() < 0.5)


async def whole_answer(reader: asyncio.StreamReader) -> None:
    """Read one answer with a length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(length)


async def work(port: int, calls: int, seed: int, times_ms: list[float]) -> None:
    """One client: one call after the other on one connection."""
    dice = random.Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(calls):
        begun = time.perf_counter()
        writer.write(mixed(dice, port))
        await whole_answer(reader)
        times_ms.append((time.perf_counter() - begun) * 1e3)
    writer.close()


async def abandoned_handshake(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(post(port, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}))
    await asyncio.sleep(0.002)
    writer.transport.abort()


async def cut_body(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    request = tool_request(
        port, "/mcp", "write_message", {"session_id": "cut", "role": "user", "content": "x" * 40_000}
    )
    writer.write(request[: random.randrange(len(request))])
    await asyncio.sleep(0.005)
    writer.transport.abort()


async def vanished_before_the_answer(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(tool_request(port, "/mcp", "search_messages", {"query": "harbour"}))
    await writer.drain()
    writer.transport.abort()


async def slow_reader(port: int) -> None:
    """Asks for a megabyte and takes it in sips."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    request = post(port, "/mcp/all", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    writer.write(request * 30)
    for _ in range(40):
        await reader.read(512)
        await asyncio.sleep(0.05)
    writer.transport.abort()


TROUBLE: dict[Callable[[int], Awaitable[None]], int] = {
    abandoned_handshake: 3,
    cut_body: 3,
    vanished_before_the_answer: 3,
    slow_reader: 5,
}


async def troubling(port: int, kind: Callable[[int], Awaitable[None]], counts: dict[str, int]) -> None:
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await kind(port)
        counts[kind.__name__] = counts.get(kind.__name__, 0) + 1
        await asyncio.sleep(PAUSE_S)


class Meter:
    """The daemon's resident memory in MB, and its open descriptors and threads."""

    def __init__(self, running: Daemon) -> None:
        assert running.process is not None
        self._proc = Path("/proc", str(running.process.pid))
        self.samples: list[tuple[int, float]] = []

    def now(self) -> tuple[float, int, int]:
        pages = int((self._proc / "statm").read_text().split()[1])
        descriptors, threads = (len(list((self._proc / name).iterdir())) for name in ("fd", "task"))
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, descriptors, threads

    def slope(self) -> tuple[float, float]:
        """MB per 10,000 calls by least squares, and the standard error of that."""
        xs, ys = zip(*self.samples, strict=True)
        mean_x, mean_y = statistics.mean(xs), statistics.mean(ys)
        spread = sum((x - mean_x) ** 2 for x in xs)
        slope = sum((x - mean_x) * (y - mean_y) for x, y in self.samples) / spread
        rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in self.samples)
        error = (rest / (len(xs) - 2) / spread) ** 0.5
        return slope * 10_000, error * 10_000


async def stretch(port: int, calls: int, clients: int, seed: int) -> tuple[list[float], float]:
    times_ms: list[float] = []
    begun = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(clients):
            tasks.create_task(work(port, calls // clients, seed * 1000 + number, times_ms))
    return times_ms, time.perf_counter() - begun


def quantiles(times_ms: list[float]) -> tuple[float, float, float]:
    ordered = sorted(times_ms)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)], ordered[-1]


@contextlib.asynccontextmanager
async def trouble(port: int, counts: dict[str, int], *, is_loud: bool) -> AsyncIterator[None]:
    """All kinds of trouble for as long as the block runs, if it is to be loud."""
    kinds = [kind for kind, times in TROUBLE.items() for _ in range(times)] if is_loud else []
    tasks = [asyncio.create_task(troubling(port, kind, counts)) for kind in kinds]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def soak(running: Daemon, calls: int, clients: int) -> None:
    running.client("all").call("schema_create", **SCHEMA)
    meter, counts, rows = Meter(running), dict[str, int](), list[list[str]]()
    each, open_before = calls // SAMPLES, 0
    times: dict[str, list[float]] = {"alone": [], "with the others": []}
    for number in range(SAMPLES):
        # Turn by turn, so that both see the same store.
        is_loud, is_warm = bool(number % 2), number >= SAMPLES * WARM_SHARE
        async with trouble(running.port, counts, is_loud=is_loud):
            times_ms, took_s = await stretch(running.port, each, clients, number)
        rss_mb, descriptors, threads = meter.now()
        if is_warm:
            open_before = open_before or descriptors
            meter.samples.append(((number + 1) * each, rss_mb))
            times["with the others" if is_loud else "alone"] += times_ms
        if number % 5 == 4:
            p50, p99, worst = quantiles(times_ms)
            speed = [f"{(number + 1) * each:,}", f"{each / took_s:,.0f}", f"{p50:.1f}", f"{p99:.1f}", f"{worst:.0f}"]
            rows.append([*speed, f"{rss_mb:.1f}", str(descriptors), str(threads)])
    columns = ["calls", "calls/s", "p50 ms", "p99 ms", "max ms", "MB", "descriptors", "threads"]
    table(f"{clients} clients, each sample {each:,} calls", columns, rows)
    print(f"beside them: {json.dumps(counts)}")
    for name, found in times.items():
        print(f"{name}: p50 {quantiles(found)[0]:.1f} ms, p99 {quantiles(found)[1]:.1f} ms")
    slope, error = meter.slope()
    print(f"resident memory behind the warm-up: {slope:+.3f} ± {error:.3f} MB per 10,000 calls")
    await asyncio.sleep(SETTLE_S)
    print(f"open descriptors: {open_before} after the warm-up, {meter.now()[1]} at the end")


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else CALLS
    clients = int(sys.argv[2]) if len(sys.argv) > 2 else CLIENTS
    with tempfile.TemporaryDirectory() as folder, daemon(Path(folder), "--profile", "all") as running:
        asyncio.run(soak(running, calls, clients))
        status, journal = running.stop()
        print(f"exit status {status}, {journal.count('Traceback')} faults in the journal")


if __name__ == "__main__":
    main()
