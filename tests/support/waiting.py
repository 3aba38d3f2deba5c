"""Waiting for a fact instead of for time: the loop runs on until it is there, or the test fails."""

import asyncio
from collections.abc import Callable

PATIENCE_S = 20


async def until(is_so: Callable[[], object]) -> None:
    """Let other tasks run until the condition holds; TimeoutError if it never does."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0)
