"""The composition root: the one module that knows every part, builds them, starts them and stops them in reverse.

    lock -> sockets -> server -> (engine opens the store | the MCP SDK is imported) -> … -> stop: engine, server, lock

Bind first: `/healthz` answers while the log is recovered, a missing index is folded and the SDK is imported.
"""

import asyncio
import gc
import json
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import apsw

from convmem import files, messages
from convmem.access import StoreAccess
from convmem.catalog import Catalog
from convmem.clock import SystemClock
from convmem.config import Settings
from convmem.domain import Domain, Origin
from convmem.engine import Engine
from convmem.errors import EXIT_STATUS, AddressUnusable, DataDirectoryUnusable, OperatorError, StoreLocked
from convmem.limits import LOCK_TEXT_BYTES_MAX, STOP_MS_MAX
from convmem.store import check as store_check
from convmem.store import log
from convmem.store.sqlite import FileShelf, connect_to_read, name
from convmem.transport import http, loading
from convmem.transport import stdio as stdio_transport
from convmem.transport.gate import Settings as HTTPSettings

JOURNAL = logging.getLogger("convmem")
DOMAINS: tuple[Domain, ...] = (messages.DOMAIN,)
LOCK = "store.lock"
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(main: Coroutine[Any, Any, int]) -> int:
    """Run serve() or stdio() to its exit status, on uvloop where it exists."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


async def serve(settings: Settings, announce: Callable[[str], None]) -> int:
    """Serve HTTP until a signal; return the exit status. `announce` is given the one line that says what runs.

    Raises the OperatorError that refuses the start.
    """
    settings.refuse_unsafe_bind()
    with held(settings) as (directory, holder), listening(settings) as (tcp, unix):
        engine, catalog = Engine(directory, DOMAINS, SystemClock()), Catalog(DOMAINS)
        server = http.Server(http.build(catalog, engine, _http_settings(settings)))
        holder.tell(_lock_text(settings, tcp))
        line = _line(settings, tcp, catalog)
        return await _until_stopped(engine, [server.serve([tcp, *unix])], server.stop, lambda: announce(line))


async def stdio(settings: Settings) -> int:
    """Serve MCP on stdin and stdout, and the local socket beside it, until EOF or a signal; return the exit status."""
    streams = stdio_transport.claim()
    with held(settings) as (directory, holder), local_socket(settings) as unix:
        engine, catalog = Engine(directory, DOMAINS, SystemClock()), Catalog(DOMAINS)
        holder.tell(_lock_text(settings, None))
        waiting = loading.Loading(loading.kernel(catalog, engine))
        speaker = stdio_transport.Stdio(waiting, settings.profile, streams)
        server = http.Server(http.build(catalog, engine, _http_settings(settings)))

        async def speak() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(waiting.run())
                await speaker.serve()

        def stop() -> None:
            speaker.stop()
            server.stop()

        return await _until_stopped(engine, [speak(), *([server.serve(unix)] if unix else [])], stop, lambda: None)


async def _until_stopped(
    engine: Engine, parts: list[Coroutine[Any, Any, None]], stop: Callable[[], None], when_open: Callable[[], None]
) -> int:
    """Run the engine and the ways in until a signal, the end of a way in, or a failure; then stop all in order.

    `when_open` is called once the store has accepted its log; not if it refuses it.
    """
    stopping = asyncio.Event()
    failures: list[OperatorError] = []

    async def watched(part: Coroutine[Any, Any, None]) -> None:
        try:
            await part
        except OperatorError as failure:
            failures.append(failure)
        finally:
            stopping.set()

    async def tell() -> None:
        if await engine.opened():
            when_open()
            _freeze_garbage()

    with _signals(stopping):
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(watched(part)) for part in (engine.run(), *parts)]
            tasks.create_task(tell())
            await stopping.wait()
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
async def opened(settings: Settings) -> AsyncIterator[tuple[Catalog, StoreAccess]]:
    """The store for one command of the command line, when nobody holds it. Raises the OperatorError that refuses it."""
    with held(settings) as (directory, _):
        engine = Engine(directory, DOMAINS, SystemClock())
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(engine.run())
            try:
                yield Catalog(DOMAINS), engine.access(Origin("local", "cli"))
            finally:
                engine.stop()
                await asyncio.wait([running])


def check(settings: Settings) -> list[str]:
    """Walk all invariants of the store, beside a running daemon or without one; what is wrong, one sentence each.

    Raises DataDirectoryUnusable if there is no store.
    """
    directory = files.RealFiles(settings.data_dir)
    shelf = FileShelf(directory)
    if not directory.exists(log.NAME) or not shelf.generations():
        raise DataDirectoryUnusable(
            f"there is no store in {settings.data_dir}", path=str(settings.data_dir), uid=os.getuid()
        )
    file = directory.open_to_read(log.NAME)
    connection = connect_to_read(directory.path(name(shelf.generations()[-1])))
    try:
        # One look: what the daemon commits meanwhile is not seen.
        connection.execute("BEGIN")
        return store_check.check(file, connection, DOMAINS, SystemClock())
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return [f"the index is damaged: {error}"]
    finally:
        connection.close()
        file.close()


@contextmanager
def held(settings: Settings) -> Iterator[tuple[files.RealFiles, files.HeldLock]]:
    """The data directory, made if missing, and its lock. DataDirectoryUnusable, StoreLocked."""
    directory = files.RealFiles(settings.data_dir)
    try:
        directory.prepare()
        lock = files.lock(directory.path(LOCK))
    except OSError as error:
        raise DataDirectoryUnusable(
            f"uid {os.getuid()} cannot use {error.filename or settings.data_dir} ({error.strerror}): "
            f"give it to this user (chown -R {os.getuid()} {settings.data_dir}) or choose another --data-dir",
            path=str(settings.data_dir),
            uid=os.getuid(),
        ) from None
    if lock is None:
        text = files.read_text(directory.path(LOCK), bytes_max=LOCK_TEXT_BYTES_MAX) or b""
        holder = text.decode(errors="replace").strip() or "a process that did not name itself"
        raise StoreLocked(f"{settings.data_dir} is held by {holder}", holder=holder)
    try:
        yield directory, lock
    finally:
        lock.close()


def _lock_text(settings: Settings, tcp: socket.socket | None) -> str:
    """What store.lock says of its holder: pid, URL, local socket."""
    text: dict[str, Any] = {"pid": os.getpid()}
    if tcp is not None:
        text["url"] = _url(tcp)
    if settings.socket is not None:
        text["socket"] = str(settings.socket)
    return json.dumps(text)


@contextmanager
def listening(settings: Settings) -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    """The TCP socket and, where Unix sockets are to be had, the local one. AddressUnusable."""
    host, port = settings.bind.host, settings.bind.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        tcp = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise AddressUnusable(
            f"cannot listen on {settings.bind} ({error.strerror}): choose another with --bind",
            address=str(settings.bind),
        ) from None
    with tcp, local_socket(settings) as unix:
        yield tcp, unix


@contextmanager
def local_socket(settings: Settings) -> Iterator[list[socket.socket]]:
    """convmem.sock (0600), listening; a leftover is removed first, since the lock is held. Empty without a path for
    it.
    """
    if settings.socket is None:
        yield []
        return
    files.remove(settings.socket)
    with socket.socket(socket.AF_UNIX) as unix:
        try:
            with files.private_files():
                unix.bind(str(settings.socket))
            files.make_private(settings.socket)
        except OSError as error:
            raise DataDirectoryUnusable(
                f"cannot make the local socket {settings.socket} ({error.strerror})",
                path=str(settings.socket),
                uid=os.getuid(),
            ) from None
        unix.listen(1024)
        try:
            yield [unix]
        finally:
            files.remove(settings.socket)


def _http_settings(settings: Settings) -> HTTPSettings:
    """What the HTTP side needs to know of the settings."""
    return HTTPSettings(
        default_profile=settings.profile,
        token=settings.http_token,
        allowed_hosts=settings.allowed_hosts,
        trusted_proxies=settings.trusted_proxies,
        loopback_bind=settings.bind.is_loopback,
    )


@contextmanager
def _signals(stopping: asyncio.Event) -> Iterator[None]:
    """The first signal stops in order, a second one at once. Handlers are removed at the end."""
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        stopping.set()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


def _freeze_garbage() -> None:
    """What start-up made lives as long as the process: the collector need not walk it again (it paused for 100 ms)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _url(tcp: socket.socket) -> str:
    host, port = tcp.getsockname()[:2]
    return f"http://[{host}]:{port}/mcp" if ":" in host else f"http://{host}:{port}/mcp"


def _line(settings: Settings, tcp: socket.socket, catalog: Catalog) -> str:
    guard = "bearer token required" if settings.http_token else "no token, loopback only"
    hosts = ", ".join(
        ["loopback names", *settings.allowed_hosts] if settings.bind.is_loopback else settings.allowed_hosts
    )
    tools = f"{len(catalog.profiles[settings.profile])} tools ({settings.profile})"
    return f"convmem: {_url(tcp)}; {guard}; Host: {hosts or 'any'}; data in {settings.data_dir}; {tools}"
