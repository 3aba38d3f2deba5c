"""A load generator and the meters of the benchmarks: raw HTTP on keep-alive connections, one request outstanding on
each.

Bounded in count and time, loopback only. CPU is the server process's own (utime + stime), which other work on the
machine disturbs least; latencies are what the generator saw.
"""

import asyncio
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


@dataclass(frozen=True)
class Measured:
    """One run: calls a second, latencies and server CPU in microseconds per call."""

    rate: float
    p50_us: float
    p99_us: float
    cpu_us: float


def tool_request(port: int, path: str, name: str, arguments: dict[str, Any], *, modern: bool = False) -> bytes:
    """The bytes of one tools/call."""
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    headers = {"MCP-Protocol-Version": "2025-11-25"}
    if modern:
        params["_meta"] = ENVELOPE
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
    return post(port, path, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers)


def post(port: int, path: str, body: Any, headers: dict[str, str] | None = None) -> bytes:
    """The bytes of one POST of JSON."""
    data = json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(data)}",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class Connection(asyncio.Protocol):
    """Sends a request, reads the whole answer, sends the next."""

    def __init__(self, requests: Callable[[], bytes | None], done: asyncio.Future[None], times: list[float]) -> None:
        self._requests, self._done, self._times = requests, done, times
        self._buffer = b""
        self._begun = 0.0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = self._requests()
        if request is None:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)
            return
        self._begun = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, body = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        lowered = head.lower()
        assert lowered.startswith(b"http/1.1 200"), self._buffer
        start = lowered.index(b"content-length:") + 15
        if len(body) < int(lowered[start:].split(b"\r\n", 1)[0]):
            return
        assert b'"isError":true' not in body, body
        assert b'"error"' not in body[:40], body
        self._times.append(time.perf_counter() - self._begun)
        self._buffer = b""
        self._send()


async def _drive(port: int, requests: Callable[[], bytes | None], connections: int) -> list[float]:
    loop = asyncio.get_running_loop()
    times: list[float] = []
    ends = [loop.create_future() for _ in range(connections)]
    for end in ends:
        await loop.create_connection(lambda end=end: Connection(requests, end, times), "127.0.0.1", port)
    await asyncio.wait_for(asyncio.gather(*ends), 120)
    return times


def drive(port: int, pid: int, requests: Sequence[bytes] | bytes, *, count: int, connections: int) -> Measured:
    """Send `count` requests over `connections`; the same one each time, or the given ones in order."""
    import uvloop

    left = iter(range(count))

    def take() -> bytes | None:
        number = next(left, None)
        if number is None:
            return None
        return requests if isinstance(requests, bytes) else requests[number]

    before, begun = cpu_s(pid), time.perf_counter()
    times = sorted(uvloop.run(_drive(port, take, connections)))
    elapsed, spent = time.perf_counter() - begun, cpu_s(pid) - before
    assert len(times) == count
    return Measured(
        rate=count / elapsed,
        p50_us=times[count // 2] * 1e6,
        p99_us=times[count * 99 // 100] * 1e6,
        cpu_us=spent / count * 1e6,
    )


def cpu_s(pid: int) -> float:
    """User and system time of a process, in seconds (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def median(runs: Sequence[Measured]) -> Measured:
    """The median of each figure."""
    return Measured(*(statistics.median(getattr(run, name) for run in runs) for name in Measured.__dataclass_fields__))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    widths = [max(len(row[number]) for row in [columns, *rows]) for number in range(len(columns))]
    print(f"\n{title}   (load average {os.getloadavg()[0]:.1f})")
    for row in [columns, ["-" * width for width in widths], *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
