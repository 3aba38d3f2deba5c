"""Long work beside the writer, as a task of whoever owns the store: it goes on though whoever asked has gone away."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from convmem.errors import ConvmemError, DiskFault, StoreFailed

Result = TypeVar("Result")


async def run(tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work in a group of tasks, which ends only behind it. A fault of ours ends the group."""
    reply: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    async def answered() -> None:
        try:
            result = await work
            if not reply.done():
                reply.set_result(result)
        except ConvmemError as error:
            if not reply.done():
                reply.set_exception(error)
        except OSError as error:
            # What the disk refuses to work beside the writer is no fault of the store.
            reason = error.strerror or "without a reason"
            if not reply.done():
                reply.set_exception(DiskFault(f"the disk refused it ({reason}); the store is as it was"))
        finally:
            # Nobody shall wait for an answer that cannot come.
            if not reply.done():
                reply.set_exception(StoreFailed("the work was ended by a fault; a restart will recover"))

    tasks.create_task(answered())
    return await reply
