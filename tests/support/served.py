"""A real uvicorn on a free loopback port, and on a Unix socket if asked: in the test's loop, or in a thread."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import uvloop
from starlette.applications import Starlette

from convmem.transport.http import Server

VERSION_2026 = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": VERSION_2026,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "9"},
}
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def listeners(unix: Path | None = None, port: int = 0) -> list[socket.socket]:
    """A listening socket on a port of this machine (0: a free one), and one at the path."""
    found = [socket.create_server(("127.0.0.1", port))]
    if unix:
        found.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        found[-1].bind(str(unix))
        found[-1].listen()
    return found


@asynccontextmanager
async def served(application: Starlette) -> AsyncIterator[tuple[Server, int]]:
    """Serve in this loop until the block ends, then stop as the daemon does; the server and its port."""
    sockets = listeners()
    port = sockets[0].getsockname()[1]
    server = Server(application)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve(sockets=sockets))
        try:
            yield server, port
        finally:
            server.stop()
        await serving


@contextmanager
def served_in_thread(application: Starlette, unix: Path | None = None, port: int = 0) -> Iterator[int]:
    """Serve in a thread, on the loop that the daemon uses; the port."""
    sockets = listeners(unix, port)
    port = sockets[0].getsockname()[1]
    server = Server(application)

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve(sockets=sockets))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield port
    finally:
        server.stop()
        thread.join()


def call(tool: str, arguments: dict[str, Any] | None = None, request_id: Any = 1, **meta: Any) -> dict[str, Any]:
    """A tools/call; `meta` goes into its _meta."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments or {}}
    if meta:
        params["_meta"] = meta
    return request("tools/call", params, request_id)


def request(method: str, params: dict[str, Any] | None = None, request_id: Any = 1) -> dict[str, Any]:
    """A JSON-RPC request."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": params}


def modern(message: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The message as the protocol of 2026 sends it, and the headers that go with it."""
    params = message.get("params", {})
    headers = {"mcp-protocol-version": VERSION_2026, "mcp-method": message["method"]}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return {**message, "params": {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}}}, headers


def post(client: httpx.Client, message: Any, path: str = "/mcp", **headers: str | None) -> httpx.Response:
    """POST a message (bytes go as they are); a header that is None is left out, _ stands for - in names."""
    content = message if isinstance(message, bytes) else msgspec.json.encode(message)
    given = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    sent = client.build_request("POST", path, content=content)
    for name in ("accept", "content-type", "user-agent"):
        sent.headers.pop(name, None)
    sent.headers.update({name: value for name, value in given.items() if value is not None})
    return client.send(sent)


def events(response: httpx.Response) -> list[Any]:
    """The messages of a stream of events."""
    assert response.headers["content-type"] == "text/event-stream"
    frames = response.text.split("\r\n\r\n")
    assert frames.pop() == ""
    return [msgspec.json.decode(frame.removeprefix("event: message\r\ndata: ")) for frame in frames]
