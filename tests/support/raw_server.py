"""A server in the test's own loop that says exactly what the test has it say, request by request."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convmem.hooks.target import Address
from tests.support.scripted import head

# So many turns of the loop are enough for a connection to be accepted, or closed.
TURNS = 10
JSON = "Content-Type: application/json"


@dataclass
class Asked:
    """One request that came in, on which connection (from 1), and how it can be answered."""

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def message(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    def say(self, *pieces: bytes) -> None:
        """Send bytes as they are."""
        for piece in pieces:
            self.writer.write(piece)

    def answer(self, body: bytes, *headers: str, status: str = "200 OK") -> None:
        """Send a whole answer."""
        self.say(head(status, JSON, f"Content-Length: {len(body)}", *headers), body)

    def result(self, value: Any) -> None:
        """Answer with the result of a JSON-RPC request."""
        self.answer(json.dumps({"jsonrpc": "2.0", "id": self.message["id"], "result": value}).encode())

    def hang_up(self) -> None:
        """Close the connection once all that was said is sent."""
        self.writer.close()

    def reset(self) -> None:
        """Break the connection off (RST)."""
        connected: socket.socket = self.writer.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Handler = Callable[[Asked], Awaitable[None]]


@dataclass
class RawServer:
    """Where it listens, and what came in."""

    address: Address
    asked: list[Asked] = field(default_factory=list)
    # Each connection that was made, as what the server writes to it with.
    connections: list[asyncio.StreamWriter] = field(default_factory=list)

    def close_all(self) -> None:
        """Hang up on everybody."""
        for writer in self.connections:
            writer.close()

    def of(self, method: str) -> list[Asked]:
        """The requests for one method of JSON-RPC."""
        return [asked for asked in self.asked if asked.message["method"] == method]


@asynccontextmanager
async def raw_server(
    handle: Handler, *, unix: Path | None = None, port: int = 0, reads_bodies: bool = True, tls: Any = None
) -> AsyncIterator[RawServer]:
    """Serve inside the block. A handler is called for each request and may say anything, or hang up."""
    handling: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handling.add(task)
        server.connections.append(writer)
        number = len(server.connections)
        try:
            while not writer.is_closing():
                text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *lines = text.removesuffix("\r\n\r\n").split("\r\n")
                headers = {name.lower(): value for name, _, value in (entry.partition(": ") for entry in lines)}
                assert len(headers) == len(lines), "a header came twice"
                length = int(headers["content-length"]) if reads_bodies else 0
                asked = Asked(line, headers, await reader.readexactly(length), number, reader, writer)
                server.asked.append(asked)
                await handle(asked)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()
        except asyncio.CancelledError:
            # The end of the test.
            return
        finally:
            handling.discard(task)

    limit = 2**25
    if unix is not None:
        listening = await asyncio.start_unix_server(serve, unix, limit=limit)
        server = RawServer(Address(socket=str(unix)))
    else:
        listening = await asyncio.start_server(serve, "127.0.0.1", port, limit=limit, ssl=tls)
        bound = listening.sockets[0].getsockname()[1]
        server = RawServer(
            Address(host="127.0.0.1", port=bound, is_tls=tls is not None, authority=f"127.0.0.1:{bound}")
        )
    try:
        yield server
    finally:
        for _ in range(TURNS):
            # What was accepted just now comes to its handler first.
            await asyncio.sleep(0)
        listening.close()
        for writer in server.connections:
            writer.transport.abort()
        for task in handling:
            task.cancel()
        for _ in range(TURNS):
            await asyncio.sleep(0)


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port
