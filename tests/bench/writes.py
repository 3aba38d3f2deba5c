"""What a durable write costs: python -m tests.bench.writes [DIRECTORY]

Goals: one client's p50 at most 4 x (raw append + fdatasync of the same bytes, plus a bare HTTP call); 64 clients at
least 3 x the rate of one, with at most 0.1 flushes a write. DIRECTORY (default: a temporary one) says which disk is
measured.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.calls import _wait, free_port
from tests.bench.load import drive, table, tool_request
from tests.support.daemons import RawClient, daemon

CONTENT = "What did we decide about the cache? " * 8
FRAME_BYTES = 40 + 30 + 150 + len(CONTENT)
ROUNDS, ONE, MANY = 5, 800, 6_000


def raw_us(directory: Path) -> float:
    """Median time of one append + fdatasync of a frame's bytes."""
    descriptor = os.open(directory / "raw", os.O_RDWR | os.O_CREAT)
    times = []
    for number in range(400):
        begun = time.perf_counter()
        os.pwrite(descriptor, b"x" * FRAME_BYTES, number * FRAME_BYTES)
        os.fdatasync(descriptor)
        times.append(time.perf_counter() - begun)
    os.close(descriptor)
    return statistics.median(times) * 1e6


def main() -> None:
    directory = Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None))
    port = free_port()
    bare = subprocess.Popen([sys.executable, "-m", "tests.bench.echo", "bare", str(port)])
    figures: dict[str, list[float]] = {
        name: [] for name in ("raw", "http", "one", "one rate", "many", "flushes", "cpu")
    }
    try:
        _wait(port)
        with daemon(directory / "data") as running:
            client = RawClient(f"{running.url}/all")
            pid = running.process.pid if running.process else 0
            arguments = {"session_id": "bench", "role": "user", "content": CONTENT}
            request = tool_request(running.port, "/mcp", "write_message", arguments)
            echo = tool_request(port, "/mcp", "echo", {"text": CONTENT})
            drive(running.port, pid, request, count=300, connections=8)
            for _ in range(ROUNDS):
                figures["raw"].append(raw_us(directory))
                figures["http"].append(drive(port, bare.pid, echo, count=1_000, connections=1).p50_us)
                one = drive(running.port, pid, request, count=ONE, connections=1)
                before = client.call("get_system_health")["io"]["log"]
                many = drive(running.port, pid, request, count=MANY, connections=64)
                after = client.call("get_system_health")["io"]["log"]
                figures["one"].append(one.p50_us)
                figures["one rate"].append(one.rate)
                figures["many"].append(many.rate)
                figures["cpu"].append(many.cpu_us)
                figures["flushes"].append((after["flushes"] - before["flushes"]) / MANY)
            client.http.close()
    finally:
        bare.terminate()
        bare.wait()
        shutil.rmtree(directory)
    found = {name: statistics.median(values) for name, values in figures.items()}
    floor = found["raw"] + found["http"]
    rows = [
        ["raw append + fdatasync, p50", f"{found['raw']:.0f} us", ""],
        ["bare HTTP call, p50", f"{found['http']:.0f} us", ""],
        ["write_message, 1 client, p50", f"{found['one']:.0f} us", f"{found['one'] / floor:.2f} x both (goal 4)"],
        ["write_message, 1 client", f"{found['one rate']:.0f}/s", ""],
        [
            "write_message, 64 clients",
            f"{found['many']:.0f}/s",
            f"{found['many'] / found['one rate']:.2f} x one (goal 3)",
        ],
        ["server CPU a write, 64 clients", f"{found['cpu']:.0f} us", ""],
        ["flushes a write, 64 clients", f"{found['flushes']:.3f}", "(goal 0.1)"],
    ]
    table(f"writes of {len(CONTENT)} characters, median of {ROUNDS} rounds", ["what", "figure", "ratio"], rows)


if __name__ == "__main__":
    main()
