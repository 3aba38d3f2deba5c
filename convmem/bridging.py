"""`convmem stdio`: one client's conversation, answered by whoever holds the store.

    nobody holds it          -> this process takes it and answers itself
    somebody holds it here   -> bridge to its local socket; once it has ended, take the store and go on
    a daemon wants it        -> give it, and go on as a bridge
    a URL is named           -> bridge to that daemon, and nothing else

So nothing on one machine is ever locked out, and of many agent programs that were started without a daemon the next one
goes on where the first has ended. A store that a daemon held is left alone for TAKE_OVER_AFTER_MS: its service manager
starts it again, and a daemon that found its store taken could not serve the other machines.

To see at once that a holder has ended, one connection to it is kept on which nothing is asked: the system closes it,
whatever the end was like. Rejected: trying the lock now and then. The try itself would hold it for a moment, which is
when a daemon may start.
"""

import asyncio
import gc
import logging
from contextlib import closing
from pathlib import Path

from convmem import holding, stopping
from convmem.clock import SystemClock
from convmem.config import Settings
from convmem.errors import DataDirectoryUnusable, StoreLocked
from convmem.holding import Held
from convmem.hooks.target import Target
from convmem.limits import STOP_GRACE_S, TAKE_OVER_AFTER_MS, TAKE_OVER_SOON_MS, VACANCY_PAUSE_MS
from convmem.stopping import Phases
from convmem.transport import lines
from convmem.transport.bridge import Bridge
from convmem.transport.conversation import Conversation
from convmem.transport.exchanges import Exchanges
from convmem.transport.http_client import Connection, Unreachable, connect
from convmem.transport.lines import Streams

logger = logging.getLogger("convmem")


def run_there(target: Target, path: str) -> int:
    """Bridge to a daemon elsewhere, whose MCP endpoint is at `path`, until the input ends; the exit status."""

    async def bridge() -> int:
        phases = stopping.Phases()
        with stopping.on_loop(phases.stop):
            await _bridged(Conversation(lines.claim()), phases, target, path, None)
        return 0

    return asyncio.run(bridge())


def run_here(settings: Settings, target: Target) -> int:
    """Answer from the store of this machine, whoever holds it, until the input ends; the exit status.

    Raises DataDirectoryUnusable if it cannot be used at all.
    """
    streams, held = lines.claim(), _take(settings)
    if held is None:
        return asyncio.run(_answer_here(settings, target, streams, None))
    from convmem import daemon

    return daemon.run(_answer_here(settings, target, streams, held))


async def _answer_here(settings: Settings, target: Target, streams: Streams, held: Held | None) -> int:
    conversation, phases, status = Conversation(streams), stopping.Phases(), 0
    with stopping.on_loop(phases.stop):
        while status == 0 and not conversation.has_ended:
            if held is None:
                held = await _bridged(conversation, phases, target, f"/mcp/{settings.profile}", settings)
            if held is not None:
                with closing(held):
                    from convmem import daemon

                    status = await daemon.stdio(settings, conversation, held, phases)
                held = None
                # The daemon's part was put where the collector does not look, for as long as the process lives.
                gc.unfreeze()
                gc.collect()
    return status


async def _bridged(
    conversation: Conversation, phases: Phases, target: Target, path: str, settings: Settings | None
) -> Held | None:
    """Answer through a daemon until the input ends or a signal comes; or, of a store of this machine, until nobody
    holds it but this process: then what holds it.
    """
    bridge = Bridge(conversation, Exchanges(target.addresses, target.token, path, SystemClock()))
    loop, taken = asyncio.get_running_loop(), []

    async def watch(settings: Settings) -> None:
        taken.append(await _vacancy(settings, target))
        bridge.leave()

    def stop() -> None:
        bridge.stop()
        deadline.reschedule(loop.time() + STOP_GRACE_S)

    try:
        async with asyncio.timeout(None) as deadline, asyncio.TaskGroup() as tasks:
            with phases.phase(stop):
                watching = None if settings is None else tasks.create_task(watch(settings))
                await bridge.serve()
                if watching is not None:
                    watching.cancel()
    except TimeoutError:
        conversation.abandon()
        return None
    except ExceptionGroup as group:
        # One thing went wrong, and it is told as it is.
        raise group.exceptions[0] from None
    return taken[0] if taken else None


async def _vacancy(settings: Settings, target: Target) -> Held:
    """Wait until nobody holds the store, then hold it."""
    left_ms = _wait_ms(settings.data_dir)
    is_usable = True
    while True:
        connection = await _connection(target)
        if connection is not None:
            left_ms = _wait_ms(settings.data_dir)
            with closing(connection):
                await connection.ended()
        elif left_ms <= 0:
            try:
                if held := _take(settings):
                    return held
            except DataDirectoryUnusable as reason:
                # Whoever asks is told that nobody is there; the disk may be mended while this process waits.
                if is_usable:
                    logger.error("nobody holds the store, and this process cannot: %s", reason.message)
                is_usable = False
        await asyncio.sleep(VACANCY_PAUSE_MS / 1000)
        left_ms -= VACANCY_PAUSE_MS


async def _connection(target: Target) -> Connection | None:
    for address in target.addresses():
        try:
            return await connect(address)
        except Unreachable:
            continue
    return None


def _wait_ms(data_dir: Path) -> int:
    """How long to leave the store alone once its holder has ended: nobody starts a process like this one again."""
    holder = holding.holder_of(holding.holder_text(data_dir))
    return TAKE_OVER_AFTER_MS if holder is None or holder.is_daemon else TAKE_OVER_SOON_MS


def _take(settings: Settings) -> Held | None:
    """The store, if nobody holds it. DataDirectoryUnusable.

    Who holds it is said at once: a daemon that starts in this moment is to ask for it, and not to give up.
    """
    try:
        held = holding.take(settings)
    except StoreLocked:
        return None
    with holding.usable(settings.data_dir):
        held.lock.tell(holding.lock_text(settings, None))
    return held
