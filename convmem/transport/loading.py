"""The wait for the MCP SDK: it takes longest of all to import, so the daemon listens first and imports beside it.

Whoever needs the kernel waits here; whoever does not (health above all) is answered meanwhile.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from convmem.transport.gate import Gate

if TYPE_CHECKING:
    from convmem.catalog import Catalog
    from convmem.transport.protocol import Kernel


class Loading:
    """Imports the SDK in a thread, once, and holds the kernel that comes of it."""

    def __init__(self, load: "Callable[[], Kernel]") -> None:
        self._load = load
        self._is_done = asyncio.Event()
        self.kernel: Kernel | None = None

    async def run(self) -> None:
        """Import. An ImportError is nobody's to catch, but those who wait are told of it by an internal error."""
        try:
            self.kernel = await asyncio.to_thread(self._load)
        finally:
            self._is_done.set()

    async def wait(self) -> "Kernel":
        """Return the kernel, now or as soon as it is there."""
        await self._is_done.wait()
        assert self.kernel is not None, "the SDK could not be imported"
        return self.kernel


def kernel(load_catalog: "Callable[[], Catalog]", gate: Gate) -> "Callable[[], Kernel]":
    """Return a function that makes the catalog, imports the SDK and makes the kernel; it takes about half a second."""

    def load() -> "Kernel":
        from convmem.transport.protocol import Kernel

        return Kernel(load_catalog(), gate)

    return load
