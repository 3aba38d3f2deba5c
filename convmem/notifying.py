"""What a service manager is told (sd_notify(3)): that the daemon is ready, that it still works, and that it stops.

    opening  -> EXTEND_TIMEOUT_USEC, STATUS    as long as the log is read and the index is made
    working  -> READY=1, then WATCHDOG=1       each time that it was seen to work, twice as often as is asked for
    stopping -> STOPPING=1

The idea: READY and WATCHDOG are not said because a loop turns, but because a request was just answered through the
front door and the writer took its turn. A daemon that only looks healthy is restarted.

The protocol is one datagram with lines to the socket in NOTIFY_SOCKET (a path, or @ and an abstract name). Nothing of
it may disturb the daemon: a socket that is gone or full is passed over. Rejected: a library (it is ten lines), and a
reply from the manager (there is none).
"""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from convmem.limits import NOTIFY_EXTENSION_MS, NOTIFY_INTERVAL_MS_MAX, NOTIFY_OPENING_MS

logger = logging.getLogger("convmem")

ABSTRACT = "@"
LOOKS_WHILE_OPENING = 10
# Raises NotWorking, or does not come to an end in time, if the daemon does not work; else how it is, in a sentence.
Probe = Callable[[], Awaitable[str]]


class NotWorking(Exception):
    """The daemon cannot do what it is there for, at least not now."""


class ServiceManager:
    """The other end of NOTIFY_SOCKET; nobody if there is none. `watchdog_ms`: how often it wants to hear of us."""

    def __init__(self, address: str | None = None, watchdog_ms: float | None = None) -> None:
        self.address = address
        self.watchdog_ms = watchdog_ms

    def tell(self, *lines: str) -> None:
        """Send some assignments in one datagram."""
        if self.address is None:
            return
        address = "\0" + self.address[1:] if self.address.startswith(ABSTRACT) else self.address
        text = "\n".join(" ".join(line.splitlines()) for line in lines)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unix:
                unix.setblocking(False)
                unix.sendto(text.encode(errors="replace"), address)
        except OSError as error:
            logger.debug("the service manager was not told: %s", error.strerror)


def service_manager(environment: Mapping[str, str], pid: int | None = None) -> ServiceManager:
    """Who has started this process, by its environment; nobody if that is not said or cannot be meant.

    The watchdog is meant for the process that WATCHDOG_PID names, or for any if it is not set (sd_watchdog_enabled(3)).
    """
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", ABSTRACT)) or len(address) < 2:
        return ServiceManager()
    watchdog_ms = None
    is_ours = environment.get("WATCHDOG_PID", "") in ("", str(os.getpid() if pid is None else pid))
    with suppress(ValueError):
        given_us = int(environment.get("WATCHDOG_USEC", ""))
        watchdog_ms = given_us / 1000 if given_us > 0 and is_ours else None
    return ServiceManager(address, watchdog_ms)


class Telling:
    """Tells a service manager how the daemon is, for as long as it runs."""

    def __init__(self, manager: ServiceManager, opened: Probe, works: Probe) -> None:
        """`opened` comes to its end once the store can be used, `works` after each look whether the daemon works."""
        self._manager = manager
        self._opened, self._works = opened, works
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Tell until `stop`; nothing of what is found out ends the daemon."""
        if self._manager.address is not None:
            await self._open()
            while not self._stopped.is_set():
                await self._look("WATCHDOG=1")
                await self._rest(self._interval_ms)
        await self._stopped.wait()

    def stop(self) -> None:
        """Say that the daemon stops, and end."""
        self._manager.tell("STOPPING=1", "STATUS=stopping")
        self._stopped.set()

    @property
    def _interval_ms(self) -> float:
        """Twice in the time after which the manager would lose patience; without a watchdog for the status alone."""
        asked_ms = self._manager.watchdog_ms
        return NOTIFY_INTERVAL_MS_MAX if asked_ms is None else min(asked_ms / 2, NOTIFY_INTERVAL_MS_MAX)

    async def _open(self) -> None:
        is_ready = False
        while not is_ready and not self._stopped.is_set():
            is_ready = await self._seen(self._opened, NOTIFY_OPENING_MS) is not None and await self._look("READY=1")
            if not is_ready:
                extension = f"EXTEND_TIMEOUT_USEC={NOTIFY_EXTENSION_MS * 1000}"
                self._manager.tell(extension, "STATUS=opening the store")
                await self._rest(NOTIFY_OPENING_MS / LOOKS_WHILE_OPENING)

    async def _look(self, line: str) -> bool:
        """Look whether the daemon works, and say this if it does."""
        found = await self._seen(self._works, self._interval_ms)
        if found is None:
            logger.warning("the daemon does not answer itself")
            return False
        self._manager.tell(line, f"STATUS={found}")
        return True

    async def _seen(self, probe: Probe, wait_ms: float) -> str | None:
        """What a probe finds; None if that takes too long, or if it finds that nothing works."""
        try:
            async with asyncio.timeout(wait_ms / 1000):
                return await probe()
        except (TimeoutError, NotWorking):
            return None

    async def _rest(self, rest_ms: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(rest_ms / 1000):
                await self._stopped.wait()
