"""What a trivial tool call over HTTP costs, beside a bare route and the SDK's own application: python -m
tests.bench.calls

Goals at 8 connections, CPU per call: at most 2.5 x (initialize era) and 3.5 x (2026 era) the bare route, at most 0.35
x the SDK's stateless JSON application.
"""

import socket
import subprocess
import sys
import time

from tests.bench.load import Measured, drive, median, table, tool_request

ROUNDS, CALLS = 5, 3_000
SERVERS = {"bare": "bare Starlette + msgspec", "ours": "convmem", "sdk": "SDK, stateless JSON"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def main() -> None:
    ports = {kind: free_port() for kind in SERVERS}
    processes = {
        kind: subprocess.Popen([sys.executable, "-m", "tests.bench.echo", kind, str(port)])
        for kind, port in ports.items()
    }
    try:
        runs: dict[tuple[str, str], list[Measured]] = {}
        for kind, port in ports.items():
            _wait(port)
            _round(kind, port, processes[kind].pid, {}, 500)
        for _ in range(ROUNDS):
            for kind, port in ports.items():
                _round(kind, port, processes[kind].pid, runs, CALLS)
    finally:
        for process in processes.values():
            process.terminate()
            process.wait()
    found = {key: median(measured) for key, measured in runs.items()}
    floor, sdk = found["bare", "-"].cpu_us, found["sdk", "2025-11-25"].cpu_us
    rows = [
        [
            SERVERS[kind], era, f"{one.cpu_us:.0f}", f"{one.cpu_us / floor:.2f}", f"{one.cpu_us / sdk:.2f}",
            f"{one.rate:.0f}", f"{one.p50_us:.0f}", f"{one.p99_us:.0f}",
        ]
        for (kind, era), one in found.items()
    ]  # fmt: skip
    columns = ["server", "era", "CPU us", "x bare", "x SDK", "calls/s", "p50 us", "p99 us"]
    table(f"tools/call `echo` at 8 connections, median of {ROUNDS} rounds of {CALLS}", columns, rows)


def _round(kind: str, port: int, pid: int, runs: dict[tuple[str, str], list[Measured]], count: int) -> None:
    eras = {"bare": {"-": False}, "sdk": {"2025-11-25": False}, "ours": {"2025-11-25": False, "2026-07-28": True}}
    for era, modern in eras[kind].items():
        request = tool_request(port, "/mcp", "echo", {"text": "hello"}, modern=modern)
        runs.setdefault((kind, era), []).append(drive(port, pid, request, count=count, connections=8))


def _wait(port: int) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("a server did not start")


if __name__ == "__main__":
    main()
