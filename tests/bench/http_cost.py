"""CPU of the serving process per tool call, beside a bare Starlette route that decodes and encodes the same JSON.

    python -m tests.bench.http_cost [connections] [calls]

Goal at 8 connections: at most 2.5 times the bare route for the initialize era, 3.5 times for the era of 2026.
"""

import asyncio
import multiprocessing
import os
import selectors
import socket
import statistics
import sys
from pathlib import Path

import msgspec
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from convmem.transport import http
from convmem.transport.gate import Settings
from tests.support.toy import Toy, toy_catalog

ROUNDS = 5
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "toy_read", "arguments": {}}}
MODERN_CALL = {**CALL, "params": {**CALL["params"], "_meta": META}}
MODERN_HEADERS = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: toy_read\r\n"
TOKEN_CALL = {**CALL, "params": {**CALL["params"], "_meta": {"progressToken": 7}}}
CASES = {
    "bare": ("/bare", CALL, ""),
    "initialize era": ("/mcp", CALL, "mcp-protocol-version: 2025-11-25\r\n"),
    "with progress token": ("/mcp", TOKEN_CALL, "mcp-protocol-version: 2025-11-25\r\n"),
    "2026 era": ("/mcp", MODERN_CALL, MODERN_HEADERS),
}


async def bare(request: Request) -> Response:
    message = msgspec.json.decode(await request.body())
    result = {"content": [{"type": "text", "text": "0 notes"}], "structuredContent": {"notes": []}, "isError": False}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], "result": result})
    return Response(body, media_type="application/json")


def serve(kind: str, listener: socket.socket) -> None:
    async def main() -> None:
        if kind == "bare":
            application = Starlette(routes=[Route("/bare", bare, methods=["POST"])])
        else:
            application = http.build(toy_catalog, Toy(), Settings(default_profile="messages"))
        await http.Server(application).serve(sockets=[listener])

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def request(case: str, port: int) -> bytes:
    path, message, headers = CASES[case]
    body = msgspec.json.encode(message)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nuser-agent: bench/1\r\ncontent-type: application/json\r\n"
        f"accept: application/json, text/event-stream\r\n{headers}content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def drive(port: int, data: bytes, connections: int, calls: int) -> None:
    """Keep one request in flight on each connection until all calls are answered."""
    with selectors.DefaultSelector() as selector:
        for _ in range(connections):
            client = socket.create_connection(("127.0.0.1", port))
            selector.register(client, selectors.EVENT_READ, bytearray())
            client.sendall(data)
        left = calls
        while left > 0:
            for key, _ in selector.select(5):
                key.data.extend(key.fileobj.recv(65536))
                if key.data.endswith(b"}"):
                    assert key.data.startswith(b"HTTP/1.1 200"), key.data
                    key.data.clear()
                    left -= 1
                    key.fileobj.sendall(data)
        for key in list(selector.get_map().values()):
            key.fileobj.close()


def cpu_us(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1e6


def main() -> None:
    connections = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    calls = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    measured: dict[str, list[float]] = {case: [] for case in CASES}
    ports, processes = {}, {}
    for kind in ("bare", "convmem"):
        listener = socket.create_server(("127.0.0.1", 0))
        ports[kind] = listener.getsockname()[1]
        processes[kind] = multiprocessing.get_context("fork").Process(target=serve, args=(kind, listener), daemon=True)
        processes[kind].start()
    for turn in range(ROUNDS + 1):
        for case in CASES:
            kind = "bare" if case == "bare" else "convmem"
            pid, port = processes[kind].pid, ports[kind]
            before = cpu_us(pid)
            drive(port, request(case, port), connections, calls)
            if turn:
                measured[case].append((cpu_us(pid) - before) / calls)
    for process in processes.values():
        process.terminate()
        process.join()
    base = statistics.median(measured["bare"])
    for case, values in measured.items():
        middle = statistics.median(values)
        print(f"{case:22} {middle:6.1f} us/call (least {min(values):6.1f})   {middle / base:4.2f} x bare")


if __name__ == "__main__":
    main()
