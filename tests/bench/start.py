"""How soon a daemon with a history answers, and what it holds: python -m tests.bench.start [MESSAGES] [DIRECTORY]

Goals at 100,000 messages: /healthz within 0.5 s and a first tool call within 1.5 s of process start, at most 150 MB
resident, p99 of a history page at most 10 ms.
"""

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from convmem import config, daemon
from convmem.messages.inputs import WriteMessage
from tests.bench.calls import free_port
from tests.bench.load import drive, resident_mb, table, tool_request

SESSIONS, ROUNDS, PAGES = 500, 7, 1_000
TEXT = "the cache keeps what was decided about indexes and 索引 を 作り直す ประวัติ of every agent on each device"


async def fill(data_dir: Path, count: int) -> float:
    """Write `count` messages of about 300 characters; messages a second."""
    settings = config.load({"data_dir": str(data_dir)}, {}, None)
    begun = time.perf_counter()
    async with daemon.opened(settings) as (_, access):
        for start in range(0, count, 512):
            await asyncio.gather(*(access.write(_message(number)) for number in range(start, min(start + 512, count))))
    return count / (time.perf_counter() - begun)


def _message(number: int) -> WriteMessage:
    words = TEXT.split()
    words = [words[(number * 7 + place * place) % len(words)] for place in range(50)]
    content = f"message {number} " + " ".join(words)
    return WriteMessage(
        session_id=f"session-{number % SESSIONS}", role="user" if number % 2 else "assistant", content=content
    )


def begin(data_dir: Path) -> tuple[subprocess.Popen[bytes], int, float, float]:
    """Start a daemon; process, port, seconds until /healthz and until a first tool call answered."""
    port = free_port()
    call = {"name": "read_messages", "arguments": {"view": "history", "session_id": "session-1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "convmem", "serve", "--data-dir", str(data_dir), "--bind", f"127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL,
    )
    while True:
        try:
            assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code == 200
            break
        except httpx.TransportError:
            time.sleep(0.002)
    healthy_s = time.perf_counter() - begun
    answer = httpx.post(f"http://127.0.0.1:{port}/mcp", json=body, timeout=10).json()
    first_s = time.perf_counter() - begun
    if not answer["result"]["structuredContent"]["messages"]:
        process.kill()
        raise SystemExit(f"nothing came back: {answer}")
    return process, port, healthy_s, first_s


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    directory = Path(tempfile.mkdtemp(dir=sys.argv[2] if len(sys.argv) > 2 else None))
    try:
        written = asyncio.run(fill(directory, count))
        healthy, first, resident, paged = [], [], [], []
        for _ in range(ROUNDS):
            process, port, healthy_s, first_s = begin(directory)
            requests = [
                tool_request(
                    port, "/mcp", "read_messages", {"view": "history", "session_id": f"session-{number % SESSIONS}"}
                )
                for number in range(PAGES)
            ]
            pages = drive(port, process.pid, requests, count=PAGES, connections=1)
            healthy.append(healthy_s)
            first.append(first_s)
            resident.append(resident_mb(process.pid))
            paged.append(pages.p99_us / 1000)
            process.terminate()
            process.wait()
        size = sum(os.stat(path).st_size for path in directory.iterdir()) / 1e6
    finally:
        shutil.rmtree(directory)
    rows = [
        ["/healthz after process start", f"{statistics.median(healthy):.2f} s", "0.5 s"],
        ["first tool call after process start", f"{statistics.median(first):.2f} s", "1.5 s"],
        ["resident after 1,000 history pages", f"{max(resident):.0f} MB", "150 MB"],
        ["history page of 50, p99", f"{statistics.median(paged):.1f} ms", "10 ms"],
        ["filled, 512 writers in one process", f"{written:.0f} messages/s", ""],
        ["data directory", f"{size:.0f} MB", ""],
    ]
    table(f"a store of {count} messages, median of {ROUNDS} starts", ["what", "figure", "goal"], rows)


if __name__ == "__main__":
    main()
