"""An agent program at work: one official client that writes message after message and never gives up.

    python -m tests.support.worker DOOR URL SESSION      DOOR: http, bridge

It says `ack NUMBER MESSAGE_ID` for each message that was acknowledged and `failed REASON` otherwise, and then tries
that message again with the same key, on the same client: one that had to be started anew would never come back here.
It ends when its stdin does.
"""

import os
import ssl
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

PAUSE_S = 0.02


@asynccontextmanager
async def connected(door: str, url: str) -> AsyncIterator[Client]:
    """A client through one of the doors, with the token and the authority's certificate that the environment names."""
    if door == "bridge":
        arguments = ["-m", "convmem", "stdio", "--url", url]
        async with Client(
            StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        ) as client:
            yield client
        return
    headers = {"authorization": f"Bearer {os.environ['CONVMEM_TOKEN']}"}
    trusted = ssl.create_default_context()
    async with (
        httpx2.AsyncClient(headers=headers, verify=trusted, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
    ):
        yield client


async def work(client: Client, session: str, ended: threading.Event) -> None:
    """Write until told to end."""
    number = 0
    while not ended.is_set():
        arguments = {"session_id": session, "role": "user", "content": f"{session} {number}"}
        try:
            result = await client.call_tool("write_message", {**arguments, "idempotency_key": f"{session}-{number}"})
        except (MCPError, httpx2.HTTPError) as error:
            print("failed", type(error).__name__, " ".join(str(error).split()), flush=True)
        else:
            facts = result.structured_content or {}
            if result.is_error:
                print("failed", facts["error"]["code"], flush=True)
            else:
                print("ack", number, facts["message_id"], flush=True)
                number += 1
        await anyio.sleep(PAUSE_S)


async def main(door: str, url: str, session: str) -> None:
    ended = threading.Event()

    def read() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    async with connected(door, url) as client:
        await work(client, session, ended)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
