"""The composition root: the one module that knows every part, builds them, starts them and stops them in reverse.

    lock -> sockets -> server -> (engine opens the store | the MCP SDK is imported) -> … -> stop: engine, server, lock

Bind first: `/healthz` answers while the log is recovered, a missing index is folded and the SDK is imported.
"""

import asyncio
import functools
import gc
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from convmem import checking, files, handing_over, holding, liveness, maintenance, stopping, table_places
from convmem.access import StoreAccess
from convmem.clock import SystemClock
from convmem.config import Settings
from convmem.domain import Domain, Origin
from convmem.engine import Engine
from convmem.errors import EXIT_STATUS, Busy, OperatorError
from convmem.files import RealFiles
from convmem.gateway import Gateway
from convmem.holding import Held
from convmem.limits import STOP_MS_MAX
from convmem.notifying import ServiceManager, Telling
from convmem.tokens import TokenBook
from convmem.transport import http, loading
from convmem.transport import stdio as stdio_transport
from convmem.transport.conversation import Conversation
from convmem.transport.gate import Settings as HTTPSettings

if TYPE_CHECKING:
    from convmem.catalog import Catalog
    from convmem.maintenance import Progress
    from convmem.transport.protocol import Kernel

Result = TypeVar("Result")
Hearing = Callable[[Callable[[], object]], AbstractContextManager[None]]
JOURNAL = logging.getLogger("convmem")
SWITCH_INTERVAL_S = 0.0005


def domains() -> tuple[Domain, ...]:
    """The parts of convmem, in the order of their tables. Imported here, since pydantic is slow to import."""
    from convmem import memory, messages, tables

    return (messages.DOMAIN, memory.DOMAIN, tables.DOMAIN)


def catalog() -> "Catalog":
    """All tools of all domains."""
    from convmem.catalog import Catalog

    return Catalog(domains())


def run(main: Coroutine[Any, Any, int]) -> int:
    """Run serve() or stdio() to its exit status, on uvloop where it exists."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


async def serve(settings: Settings, announce: Callable[[str], None], manager: ServiceManager) -> int:
    """Serve HTTP until a signal; return the exit status. `announce` is given the one line that says what runs, and the
    service `manager` is told how the daemon is.

    Raises the OperatorError that refuses the start.
    """
    book = TokenBook(settings.data_dir, SystemClock())
    settings.refuse_unsafe_bind(has_tokens=book.is_needed)
    with closing(await handing_over.take(settings)) as held, holding.listening(settings) as (tcp, unix):
        engine, load_catalog = _engine(held.directory, settings), functools.cache(catalog)
        if settings.backup_to is not None:
            engine.backups.schedule(settings.backup_to, settings.backup_every_ms)
        gateway = Gateway(engine, settings.retention_days)
        if settings.distill == "daily":
            engine.beside.append(gateway.distilling)
        server = http.Server(
            http.build(load_catalog, gateway, _http_settings(settings, book), _load_kernel(load_catalog, gateway))
        )
        held.lock.tell(holding.lock_text(settings, tcp))
        url = holding.url_of(tcp)

        async def tell() -> None:
            announce(_line(settings, url, await asyncio.to_thread(load_catalog), has_tokens=book.is_needed))

        socket = str(settings.socket) if unix else None
        telling = Telling(
            manager, functools.partial(liveness.opened, engine), functools.partial(liveness.works, engine, socket)
        )

        def stop() -> None:
            telling.stop()
            server.stop()

        return await _until_stopped(engine, [server.serve([tcp, *unix]), telling.run()], stop, stopping.on_loop, tell)


async def stdio(settings: Settings, conversation: Conversation, held: Held, phases: stopping.Phases) -> int:
    """Answer a conversation from the store, which is held, and serve the local socket beside it, until EOF, a stop of
    the phase, or a daemon that wants the store; return the exit status.
    """
    with holding.local_socket(settings) as unix:
        engine, load_catalog = _engine(held.directory, settings), functools.cache(catalog)
        gateway = Gateway(engine, settings.retention_days, conversation.hand_over)
        held.lock.tell(holding.lock_text(settings, None))
        waiting = loading.Loading(_load_kernel(load_catalog, gateway))
        speaker = stdio_transport.Stdio(waiting, settings.profile, conversation)
        server = http.Server(
            http.build(load_catalog, gateway, _http_settings(settings), _load_kernel(load_catalog, gateway))
        )

        has_spoken = False

        async def speak() -> None:
            nonlocal has_spoken
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(waiting.run())
                await speaker.serve()
            has_spoken = True

        def stop() -> None:
            if not has_spoken:
                # Else the conversation has ended, or somebody else goes on with it.
                speaker.stop()
            server.stop()

        @contextmanager
        def hearing(on_stop: Callable[[], object]) -> Iterator[None]:
            def end() -> None:
                # Also when the store is just being given away: nobody goes on with it then.
                conversation.stop()
                on_stop()

            with phases.phase(end):
                yield

        parts = [speak(), *([server.serve(unix)] if unix else [])]
        return await _until_stopped(engine, parts, stop, hearing)


def _engine(directory: RealFiles, settings: Settings) -> Engine:
    engine = Engine(directory, domains, SystemClock(), functools.partial(table_places.load, settings))
    engine.redacts_everything = settings.redact == "all"
    return engine


async def _until_stopped(
    engine: Engine,
    parts: list[Coroutine[Any, Any, None]],
    stop: Callable[[], None],
    hearing: Hearing,
    when_open: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """Run the engine and the ways in until a signal, the end of a way in, or a failure; then stop all in order.

    `hearing(on_stop)` calls `on_stop` if there is a signal inside its block. `when_open` is called once the store has
    accepted its log; not if it refuses it.
    """
    # A thread that computes (the indexer) holds up the loop and the writer for as long as this: 5 ms would be usual.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    ended = asyncio.Event()
    failures: list[OperatorError] = []

    async def watched(part: Coroutine[Any, Any, None]) -> None:
        try:
            await part
        except OperatorError as failure:
            failures.append(failure)
        finally:
            ended.set()

    async def tell() -> None:
        if await engine.opened() and when_open is not None:
            await when_open()

    with hearing(ended.set):
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(watched(part)) for part in (engine.run(), *parts)]
            tasks.create_task(tell())
            await ended.wait()
            engine.stop()
            stop()
            _, late = await asyncio.wait(running, timeout=STOP_MS_MAX / 1000)
            for task in late:
                task.cancel()
    if failures:
        JOURNAL.error("%s: %s", failures[0].code, failures[0].message)
        return EXIT_STATUS[type(failures[0])]
    return 0


@asynccontextmanager
async def alone(settings: Settings) -> AsyncIterator[Engine]:
    """An engine for one command of the command line, when nobody holds the store; raises what refuses it."""
    with closing(holding.take(settings)) as held:
        engine = _engine(held.directory, settings)
        # Most commands have nothing to do with tables, and shall not touch their files.
        engine.mounts_at_once = False
        try:
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(engine.run())
                try:
                    yield engine
                finally:
                    engine.stop()
                    await asyncio.wait([running])
        except ExceptionGroup as group:
            # One thing went wrong, in the command or in the engine: it is told as it is.
            raise group.exceptions[0] from None


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[tuple["Catalog", StoreAccess]]:
    """The tools and the store for one command of the command line, likewise."""
    async with alone(settings) as engine:
        yield catalog(), engine.access(Origin("local", "cli"))


def check(settings: Settings, tell: checking.Tell = lambda done, total, sentence: None) -> Mapping[str, Any]:
    """Walk all invariants of the store, beside a running daemon or without one: {violations[], leftovers[]}.

    Raises DataDirectoryUnusable if it may not be read.
    """
    with holding.usable(settings.data_dir):
        return checking.walk(files.RealFiles(settings.data_dir), domains(), SystemClock(), tell)


def compact(settings: Settings, tell: checking.Tell) -> Mapping[str, Any]:
    """Compact a store that nobody holds; what maintenance.compact answers. Raises StoreLocked if somebody does."""
    return operated(settings, maintenance.compact, tell)


def operated(
    settings: Settings,
    work: "Callable[[Engine, Progress], Coroutine[Any, Any, Result]]",
    tell: checking.Tell,
) -> Result:
    """Open a store that nobody holds, do one piece of an operator's work with it, and close it."""

    async def told(done: float, total: float, sentence: str) -> None:
        tell(done, total, sentence)

    async def run() -> Result:
        async with alone(settings) as engine:
            while True:
                try:
                    await engine.ready()
                    break
                except Busy as busy:  # the index is being made, which ends
                    tell(busy.details["done"], busy.details["total"], busy.message)
            return await work(engine, told)

    return stopping.run(run())


def _http_settings(settings: Settings, book: TokenBook | None = None) -> HTTPSettings:
    """What the HTTP side needs to know of the settings."""
    return HTTPSettings(
        default_profile=settings.profile,
        token=settings.http_token,
        tokens=book,
        allowed_hosts=settings.allowed_hosts,
        trusted_proxies=settings.trusted_proxies,
        loopback_bind=settings.bind.is_loopback,
    )


def _load_kernel(load_catalog: "Callable[[], Catalog]", gateway: Gateway) -> "Callable[[], Kernel]":
    """The kernel's own load, with the garbage collector at rest: what it makes lives as long as the process.

    Walking it again and again while it grows costs a tenth of the start; walking it later paused calls for 100 ms.
    """
    load = loading.kernel(load_catalog, gateway)

    def load_at_rest() -> "Kernel":
        gc.disable()
        try:
            return load()
        finally:
            gc.freeze()
            gc.set_threshold(10_000, 10, 10)
            gc.enable()

    return load_at_rest


def _line(settings: Settings, url: str, catalog: "Catalog", *, has_tokens: bool) -> str:
    guard = "bearer token required" if settings.http_token or has_tokens else "no token, loopback only"
    hosts = ", ".join(
        ["loopback names", *settings.allowed_hosts] if settings.bind.is_loopback else settings.allowed_hosts
    )
    tools = f"{len(catalog.profiles[settings.profile])} tools ({settings.profile})"
    return f"convmem: {url}; {guard}; Host: {hosts or 'any'}; data in {settings.data_dir}; {tools}"
