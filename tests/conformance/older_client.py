"""The journey of tests/support/journey.py, made by an older release of the official client.

    PYTHONPATH=. OTHER_PYTHON tests/conformance/older_client.py http://127.0.0.1:8484/mcp/messages [token]

OTHER_PYTHON is an interpreter with `mcp` 1.x and nothing of ours installed (README.md says how). Prints the versions,
and exits with 0 if the whole journey went well. Leaves two messages behind, so not for a store that matters.
"""

import asyncio
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

from tests.support.journey import TOOLS, Answer, Journey, Report


async def main(url: str, token: str | None) -> None:
    headers = {"authorization": f"Bearer {token}"} if token else None
    async with (
        streamablehttp_client(url, headers=headers) as (*streams, session_id_of),
        ClientSession(*streams) as session,
    ):
        agreed = await session.initialize()
        assert session_id_of() is None, "no session is ever issued"
        assert {tool.name for tool in (await session.list_tools()).tools} >= set(TOOLS)
        await session.send_ping()

        async def call(tool: str, arguments: Mapping[str, Any], report: Report | None = None) -> Answer:
            result = await session.call_tool(tool, dict(arguments), progress_callback=report)
            (block,) = result.content
            return Answer(result.structuredContent, block.text, bool(result.isError))

        await Journey(call, f"older client {time.time_ns()}").make()
    print(f"mcp {version('mcp')}, protocol {agreed.protocolVersion}: the whole journey went well")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
