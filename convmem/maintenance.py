"""What an operator asks of a store in use: compaction; later parts of this page stand beside it.

Each is long work outside the writer, which only swaps a result in. One new generation is made at a time; a second
request is told Busy. A stop abandons the work at any step, and the store is closed only after that.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import apsw

from convmem.domain import Waste
from convmem.errors import Busy, DiskFault, LogCorrupt
from convmem.limits import REBUILD_RETRY_MS
from convmem.store import compaction, search_index
from convmem.store.compaction import Outcome, Records, Rewrite, Tell
from convmem.store.log import Log
from convmem.store.shelf import search_name
from convmem.store.sqlite import DAMAGE, connect_to_read, hold_moment, read_state, shape
from convmem.store.store import Store
from convmem.store.writer import Writer

if TYPE_CHECKING:
    from convmem.engine import Engine

Progress = Callable[[float, float, str], Coroutine[Any, Any, None]]


async def compact(engine: "Engine", progress: Progress) -> Mapping[str, Any]:
    """Drop what is dead from the log and make its index anew: {rebuilt, live, removed, dangling_removed,
    log_bytes_before, log_bytes_after, generation, duration_ms}; with nothing to do, nothing is written.
    """
    return await engine.apart(_compact(engine, progress))


async def _compact(engine: "Engine", progress: Progress) -> Mapping[str, Any]:
    started_ms = engine.clock.monotonic_ms()
    async with _renewal(engine) as writer:
        _, reading = await engine.ready()
        waste, live, is_sound = await reading.readers.read(_look, engine)
        facts = writer.facts
        outcome = Outcome(facts.generation, facts.log_bytes, facts.log_bytes, live)
        is_needed = any(waste) or not is_sound or _has_leftovers(engine, facts.generation)
        if not is_needed:
            # Only what is left to do with an index that nobody sees to be wrong: compare it with its log.
            log = await writer.alone(lambda store: store.log)
            is_needed = await asyncio.to_thread(_differs, engine, _rewrite(engine, log, progress), facts.generation)
        if is_needed:
            outcome = await renew(engine, writer, progress)
            live = await reading.readers.read(_live, engine)
    return {
        "rebuilt": is_needed,
        "live": live,
        "removed": waste.deleted,
        "dangling_removed": waste.dangling,
        "log_bytes_before": outcome.log_bytes_before,
        "log_bytes_after": outcome.log_bytes_after,
        "generation": str(outcome.generation),
        "duration_ms": round(engine.clock.monotonic_ms() - started_ms),
    }


@asynccontextmanager
async def _renewal(engine: "Engine") -> AsyncIterator[Writer]:
    """The right to make the next generation. Busy if somebody has it."""
    writer, _ = await engine.ready()
    if engine.renewal.locked():
        raise Busy("a new generation of the log is being made already", retry_after_ms=REBUILD_RETRY_MS)
    async with engine.renewal:
        yield writer


async def renew(engine: "Engine", writer: Writer, progress: Progress, records: Records | None = None) -> Outcome:
    """Make the next generation and go over to it; what `prepare` needs runs on a thread of its own."""

    def finish(store: Store) -> Outcome:
        outcome = rewrite.finish(store)
        engine.renewed(outcome.generation)
        return outcome

    rewrite = _rewrite(engine, await writer.alone(lambda store: store.log), progress, records)
    try:
        await asyncio.to_thread(rewrite.prepare)
    except LogCorrupt:
        # The log is damaged where it was read: the scrub finds the place, says it and marks it.
        engine.scrub.renew()
        raise
    try:
        outcome = await writer.alone(finish)
    finally:
        await asyncio.to_thread(rewrite.discard)
    engine.scrub.renew()
    engine.last_compaction_ms = engine.clock.now_ms()
    await asyncio.to_thread(rewrite.clean)
    return outcome


def _rewrite(engine: "Engine", log: Log, progress: Progress, records: Records | None = None) -> Rewrite:
    # What is brought along may be much: writes wait for it, so its tables of search are made afterwards.
    build = engine.indexer.build if records is None else None
    return Rewrite(engine.parts, log, engine.committed, teller(progress), engine.is_stopped, records, build)


def _has_leftovers(engine: "Engine", generation: int) -> bool:
    try:
        return bool(compaction.leftovers(engine.parts, generation))
    except OSError as error:
        raise DiskFault(f"the data directory cannot be read ({error.strerror})") from error


def _differs(engine: "Engine", rewrite: Rewrite, generation: int) -> bool:
    """True if the index is not the fold of its log, or its tables of search say otherwise than it does."""
    with ExitStack() as opened:
        search = _search(engine, generation)
        if search is not None:
            opened.enter_context(closing(search))
        index = opened.enter_context(closing(engine.snapshot()))
        state = read_state(index, shape(engine.parts.domains))
        assert state is not None, "the index in use has its state"
        if rewrite.differs(index, state.end):
            return True
        try:
            return search is not None and bool(
                search_index.differences(search, index, engine.parts.domains, generation)
            )
        except (apsw.SQLError, *DAMAGE):
            return True


def _search(engine: "Engine", generation: int) -> apsw.Connection | None:
    """One moment of the tables of search, if they are in use."""
    if engine.reading is None or not engine.reading.has_search:
        return None
    try:
        connection = connect_to_read(engine.files.path(search_name(generation)))
    except apsw.CantOpenError:
        return None  # Whoever searches will find out.
    hold_moment(connection)
    return connection


def teller(progress: Progress) -> Tell:
    """Carries progress from a thread to whoever waits on the loop; it is told, not waited for."""
    loop = asyncio.get_running_loop()

    def tell(done: float, total: float, sentence: str) -> None:
        asyncio.run_coroutine_threadsafe(progress(done, total, sentence), loop)

    return tell


def _look(connection: apsw.Connection, engine: "Engine") -> tuple[Waste, int, bool]:
    """What could be dropped, how many records live, and whether the index keeps its own rules. Of an index that cannot
    be read only the last is known.
    """
    domains = engine.parts.domains
    try:
        wastes = [domain.waste(connection) for domain in domains]
        waste = Waste(*(sum(column) for column in zip(*wastes, strict=True)))
        is_sound = connection.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)] and not any(
            domain.check(connection) for domain in domains
        )
        return waste, _live(connection, engine), is_sound
    except DAMAGE:
        return Waste(), 0, False


def _live(connection: apsw.Connection, engine: "Engine") -> int:
    return sum(domain.records(connection) for domain in engine.parts.domains)
