"""`convmem stdio`: one client's conversation, answered by whoever holds the store.

    nobody holds it          -> this process takes it and answers itself
    somebody holds it here   -> bridge to its local socket; once it has ended, take the store and go on
    a URL is named           -> bridge to that daemon, and nothing else

So nothing on one machine is ever locked out, and of many agent programs that were started without a daemon the next one
goes on where the first has ended. A store that a daemon held is left alone for TAKE_OVER_AFTER_MS: its service manager
starts it again, and a daemon that found its store taken could not serve the other machines.

To see at once that a holder has ended, one connection to it is kept on which nothing is asked: the system closes it,
whatever the end was like. Rejected: trying the lock now and then. The try itself would hold it for a moment, which is
when a daemon may start.
"""

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from convmem import files, holding, stopping
from convmem.clock import SystemClock
from convmem.config import Settings
from convmem.errors import StoreLocked
from convmem.hooks.target import Target
from convmem.limits import LOCK_TEXT_BYTES_MAX, STOP_MS_MAX, TAKE_OVER_AFTER_MS, VACANCY_PAUSE_MS
from convmem.transport.bridge import Bridge
from convmem.transport.conversation import Conversation
from convmem.transport.exchanges import Exchanges
from convmem.transport.http_client import Connection, Unreachable, connect
from convmem.transport.lines import Streams


class Held(NamedTuple):
    """The store's lock, held until `stack` is closed."""

    stack: ExitStack
    directory: files.RealFiles
    lock: files.HeldLock


def run_there(target: Target, path: str, streams: Streams) -> int:
    """Bridge to a daemon elsewhere, whose MCP endpoint is at `path`, until the input ends; the exit status."""

    async def bridge() -> int:
        await _bridged(Conversation(streams), target, path, None)
        return 0

    return asyncio.run(bridge())


def run_here(settings: Settings, target: Target, streams: Streams) -> int:
    """Answer from the store of this machine, whoever holds it, until the input ends; the exit status.

    Raises DataDirectoryUnusable if it cannot be used at all.
    """
    held = _take(settings)
    if held is None:
        return asyncio.run(_bridge_and_take_over(settings, target, streams))
    from convmem import daemon

    async def answer() -> int:
        return await daemon.stdio(settings, Conversation(streams), held.directory, held.lock)

    with held.stack:
        return daemon.run(answer())


async def _bridge_and_take_over(settings: Settings, target: Target, streams: Streams) -> int:
    conversation = Conversation(streams)
    held = await _bridged(conversation, target, f"/mcp/{settings.profile}", settings)
    if held is None:
        return 0
    from convmem import daemon

    with held.stack:
        return await daemon.stdio(settings, conversation, held.directory, held.lock)


async def _bridged(conversation: Conversation, target: Target, path: str, settings: Settings | None) -> Held | None:
    """Answer through a daemon until the input ends or a signal comes; or, of a store of this machine, until nobody
    holds it but this process: then what holds it.
    """
    bridge = Bridge(conversation, Exchanges(target.addresses, target.token, path, SystemClock()))
    stopped = asyncio.Event()

    def stop() -> None:
        bridge.stop()
        stopped.set()

    with stopping.on_loop(stop):
        serving = asyncio.create_task(bridge.serve())
        signalled = asyncio.create_task(stopped.wait())
        vacancy = None if settings is None else asyncio.create_task(_vacancy(settings, target))
        try:
            await asyncio.wait((serving, signalled, *([vacancy] if vacancy else [])), return_when="FIRST_COMPLETED")
            if vacancy is not None and vacancy.done() and not serving.done() and not stopped.is_set():
                held = vacancy.result()
                bridge.leave()
                await serving
                return held
            await asyncio.wait((serving,), timeout=STOP_MS_MAX / 1000 if stopped.is_set() else None)
        finally:
            signalled.cancel()
            if vacancy is not None:
                vacancy.cancel()
        if serving.done():
            serving.result()
    return None


async def _vacancy(settings: Settings, target: Target) -> Held:
    """Wait until nobody holds the store, then hold it."""
    absent_ms = 0 if _may_start_again(settings.data_dir) else TAKE_OVER_AFTER_MS
    while True:
        connection = await _connection(target)
        if connection is not None:
            absent_ms = 0 if _may_start_again(settings.data_dir) else TAKE_OVER_AFTER_MS
            await connection.ended()
            connection.close()
        elif absent_ms >= TAKE_OVER_AFTER_MS and (held := _take(settings)):
            return held
        await asyncio.sleep(VACANCY_PAUSE_MS / 1000)
        absent_ms += VACANCY_PAUSE_MS


async def _connection(target: Target) -> Connection | None:
    for address in target.addresses():
        try:
            return await connect(address)
        except Unreachable:
            continue
    return None


def _may_start_again(data_dir: Path) -> bool:
    """False only if another process like this one holds the store: it names no URL, and nobody starts it again."""
    text = files.read_text(data_dir / holding.LOCK, bytes_max=LOCK_TEXT_BYTES_MAX)
    try:
        said: Any = json.loads(text or b"null")
    except ValueError:
        return True
    return type(said) is not dict or "url" in said


def _take(settings: Settings) -> Held | None:
    """The store, if nobody holds it. DataDirectoryUnusable."""
    stack = ExitStack()
    try:
        directory, lock = stack.enter_context(holding.held(settings))
    except StoreLocked:
        return None
    return Held(stack, directory, lock)
