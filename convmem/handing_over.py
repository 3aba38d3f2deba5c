"""How a daemon that starts comes to a store that an agent program's process holds: it asks, and that process gives it
and goes on as a bridge.

Such a process took the store because nobody else had it. If it kept it, a daemon that was stopped for a minute could
not start again until somebody closed that agent program, and the other machines would find nobody.
"""

import asyncio

from convmem import holding
from convmem.config import Settings
from convmem.errors import StoreLocked
from convmem.holding import Held
from convmem.hooks.target import Address
from convmem.limits import HAND_OVER_MS_MAX, HAND_OVER_PAUSE_MS
from convmem.transport.http_client import Lost, Unreachable, connect

TARGET = b"/admin/hand-over"
HEADERS = [(b"Host", b"localhost"), (b"Content-Type", b"application/json"), (b"Connection", b"close")]


async def take(settings: Settings) -> Held:
    """The store, at once or as soon as its holder has given it. DataDirectoryUnusable; StoreLocked if it keeps it."""
    has_agreed: set[str] = set()
    for _ in range(HAND_OVER_MS_MAX // HAND_OVER_PAUSE_MS):
        try:
            return holding.take(settings)
        except StoreLocked as locked:
            # Another such process may come first when one lets go: then that one is asked.
            holder = locked.details["holder"]
            socket = holding.socket_of_stdio(holder)
            if socket is not None and holder not in has_agreed and await _asked(socket):
                has_agreed.add(holder)
            if not has_agreed:
                raise
        await asyncio.sleep(HAND_OVER_PAUSE_MS / 1000)
    return holding.take(settings)


async def _asked(socket: str) -> bool:
    """True if whoever listens there has agreed to let go of the store."""
    try:
        connection = await connect(Address(socket=socket))
        try:
            return (await connection.post(TARGET, HEADERS, b"{}")).status == 200
        finally:
            connection.close()
    except (Unreachable, Lost):
        return False
