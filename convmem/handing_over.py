"""How a daemon that starts comes to a store that an agent program's process holds: it asks, and that process gives it
and goes on as a bridge.

Such a process took the store because nobody else had it. If it kept it, a daemon that was stopped for a minute could
not start again until somebody closed that agent program, and the other machines would find nobody.

The lock says who holds the store, but for a moment it does not: whoever has just taken it names itself then, and
listens a little later. So only a holder that refuses is believed at once.
"""

import asyncio
from enum import Enum

from convmem import holding
from convmem.config import Settings
from convmem.errors import StoreLocked
from convmem.holding import Held
from convmem.hooks.target import Address
from convmem.limits import HAND_OVER_MS_MAX, HAND_OVER_PAUSE_MS, NAMELESS_HOLDER_MS_MAX
from convmem.transport.http_client import Lost, Unreachable, connect

TARGET = b"/admin/hand-over"
HEADERS = [(b"Host", b"localhost"), (b"Content-Type", b"application/json"), (b"Connection", b"close")]


class Reply(Enum):
    """What comes of asking whoever holds the store."""

    AGREED = 1
    REFUSED = 2
    SILENT = 3
    NAMELESS = 4


# How long after the start it is worth to try again, whoever has replied what. Nobody waits for one that refuses.
PATIENCE_MS = {
    Reply.AGREED: HAND_OVER_MS_MAX,
    Reply.REFUSED: 0,
    Reply.SILENT: HAND_OVER_MS_MAX,
    Reply.NAMELESS: NAMELESS_HOLDER_MS_MAX,
}


async def take(settings: Settings) -> Held:
    """The store, at once or as soon as its holder has given it. DataDirectoryUnusable; StoreLocked if it keeps it."""
    loop = asyncio.get_running_loop()
    begun, patience_ms, agreed = loop.time(), 0, set[str]()
    while True:
        try:
            return holding.take(settings)
        except StoreLocked as locked:
            waited_ms = (loop.time() - begun) * 1000
            holder = locked.details["holder"]
            # Another such process may come first when one lets go: then that one is asked.
            if holder not in agreed:
                reply = await _reply(holder, HAND_OVER_MS_MAX - waited_ms)
                patience_ms = max(patience_ms, PATIENCE_MS[reply])
                if reply is Reply.AGREED:
                    agreed.add(holder)
                if reply is Reply.REFUSED:
                    raise
            if waited_ms >= patience_ms:
                raise
        await asyncio.sleep(HAND_OVER_PAUSE_MS / 1000)


async def _reply(text: str, within_ms: float) -> Reply:
    holder = holding.holder_of(text)
    if holder is None or (holder.is_daemon and not holder.is_alive):
        return Reply.NAMELESS
    if holder.is_daemon or holder.socket is None:
        return Reply.REFUSED
    try:
        async with asyncio.timeout(max(0, within_ms) / 1000):
            connection = await connect(Address(socket=holder.socket))
            try:
                head = await connection.post(TARGET, HEADERS, b"{}")
            finally:
                connection.close()
    except (Unreachable, Lost, TimeoutError):
        return Reply.SILENT if holder.is_alive else Reply.NAMELESS
    return Reply.AGREED if head.status == 200 else Reply.REFUSED
