"""A real uvicorn on a free loopback port and on a Unix socket, in the test's own event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from starlette.applications import Starlette

from convmem.transport.http import Server


@dataclass
class Served:
    """Where the server listens. `client` speaks to TCP, `local` to the Unix socket, `server` can be stopped."""

    server: Server
    port: int
    client: httpx.AsyncClient
    local: httpx.AsyncClient | None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def served(application: Starlette, unix: Path | None = None) -> AsyncIterator[Served]:
    """Serve until the block ends, then stop as the daemon does."""
    tcp = socket.create_server(("127.0.0.1", 0))
    sockets = [tcp]
    if unix:
        local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        local.bind(str(unix))
        local.listen()
        sockets.append(local)
    port = tcp.getsockname()[1]
    server = Server(application)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve(sockets=sockets))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            if unix:
                transport = httpx.AsyncHTTPTransport(uds=str(unix))
                async with httpx.AsyncClient(base_url="http://convmem", transport=transport) as over_unix:
                    yield Served(server, port, client, over_unix)
            else:
                yield Served(server, port, client, None)
        server.stop()
        await serving
