"""The toy domain on stdin and stdout, as a process of its own: python -m tests.support.toy_stdio."""

import asyncio
import logging
import sys

from convmem.transport import lines
from convmem.transport.conversation import Conversation
from convmem.transport.loading import Loading, kernel
from convmem.transport.stdio import Stdio
from tests.support.toy import Toy, toy_catalog


async def main(streams: lines.Streams) -> None:
    toy = Toy()
    loading = Loading(kernel(toy_catalog, toy))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(loading.run())
        await Stdio(loading, "messages", Conversation(streams)).serve()
    print(f"kept {len(toy.notes)}", file=sys.stderr)


if __name__ == "__main__":
    claimed = lines.claim()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    print("a stray line on stdout")
    asyncio.run(main(claimed))
