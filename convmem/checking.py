"""Checking a data directory, beside whoever holds it or alone: the log from its first byte, the index, and leftovers.

The log says which index is its own, and that can change while one looks: a compaction gives the log another generation
and removes the index of the one before. So what is found is believed only if the log is still of that generation.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import apsw

from convmem.clock import Clock
from convmem.domain import Domain
from convmem.errors import Stopping
from convmem.files import RealFiles
from convmem.limits import BUSY_RETRY_MS, CHECK_ATTEMPTS_MAX
from convmem.maintenance import Progress, teller
from convmem.store import check as invariants
from convmem.store import index_copy, log, search_index, sqlite
from convmem.store.check import Found
from convmem.store.compaction import cut_tails
from convmem.store.generation import STAGING
from convmem.store.shelf import FileShelf, index_name, search_name

if TYPE_CHECKING:
    from convmem.engine import Engine

Tell = Callable[[float, float, str], None]
INDEX = re.compile(r"(?:index|search)-([0-9]+)\.db(?:-wal|-shm)?")
# Steps of SQLite between two looks whether the daemon is stopping: some milliseconds.
STEPS = 10_000


async def check(engine: "Engine", progress: Progress) -> Mapping[str, Any]:
    """Walk all invariants of a store in use, outside the writer: {violations[], leftovers[]}, in sentences."""
    return await engine.apart(_check(engine, progress))


async def _check(engine: "Engine", progress: Progress) -> Mapping[str, Any]:
    files, _, domains, clock = engine.parts
    assert isinstance(files, RealFiles), "an engine's store is a directory"
    return await asyncio.to_thread(walk, files, domains, clock, teller(progress), engine.is_stopped)


def walk(
    files: RealFiles,
    domains: Sequence[Domain],
    clock: Clock,
    tell: Tell,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Mapping[str, Any]:
    """Walk all invariants of what is in a directory, and change nothing: {violations[], leftovers[]}, in sentences.

    Raises Stopping if asked to stop, OSError or apsw.CantOpenError if something there may not be read.
    """

    def told(done: float, total: float, sentence: str) -> None:
        if is_stopped():
            raise _stopping()
        tell(done, total, sentence)

    found, generation = Found([]), 1
    for _ in range(CHECK_ATTEMPTS_MAX):
        generation = _generation(files)
        try:
            found, is_still = _looked(files, generation, domains, clock, told, is_stopped)
        except apsw.CantOpenError:
            if _generation(files) == generation:
                raise
            continue
        if is_still and _generation(files) == generation:
            break
    return {"violations": found.violations, "leftovers": leftovers(files, generation, found.torn)}


def _generation(files: RealFiles) -> int:
    """The generation of the log; where it says none, that of the oldest index: newer ones never took over."""
    if files.exists(log.NAME):
        file = files.open_to_read(log.NAME)
        try:
            if file.size():
                return invariants.generation_of(file)
        finally:
            file.close()
    return min(FileShelf(files).generations(), default=1)


def _looked(
    files: RealFiles,
    generation: int,
    domains: Sequence[Domain],
    clock: Clock,
    tell: Tell,
    is_stopped: Callable[[], bool],
) -> tuple[Found, bool]:
    """What was found, and whether it can be believed: an index read as one that cannot change must not have changed."""
    if not files.exists(log.NAME):
        return Found([f"{log.NAME} is missing"]), True
    names = index_name(generation), search_name(generation)
    file = files.open_to_read(log.NAME)
    before = [_stamps(files, name) if files.size(f"{name}-wal") == 0 else None for name in names]
    try:
        if not files.exists(names[0]):
            return invariants.look(file, None, domains, clock, tell), True
        with ExitStack() as opened:
            # The tables of search first: what is committed between the two moments lies behind their watermark.
            search = _search(opened, files, names[1], is_stopped, is_still=before[1] is not None)
            index = opened.enter_context(_moment(files, names[0], is_stopped, is_still=before[0] is not None))
            found = invariants.look(file, index, domains, clock, tell)
            if search is not None and not found.violations:
                tell(1, 1, "comparing the tables of search")
                found = Found(_search_differs(search, index, domains, generation), found.torn)
    except sqlite.DAMAGE as error:
        found = Found([f"the index is damaged: {error}"])
    except apsw.InterruptError:
        raise _stopping() from None
    finally:
        file.close()
    return found, all(one is None or one == _stamps(files, name) for one, name in zip(before, names, strict=True))


def _search(
    opened: ExitStack, files: RealFiles, name: str, is_stopped: Callable[[], bool], *, is_still: bool
) -> apsw.Connection | str | None:
    """One moment of the tables of search, None where there are none, or why they cannot be read."""
    if not files.exists(name):
        return None
    try:
        return opened.enter_context(_moment(files, name, is_stopped, is_still=is_still))
    except (apsw.CantOpenError, apsw.IOError) as error:
        return str(error) if files.exists(name) else None
    except sqlite.DAMAGE as error:
        return str(error)


def _search_differs(
    search: apsw.Connection | str, index: apsw.Connection, domains: Sequence[Domain], generation: int
) -> list[str]:
    sentence = f"{search_name(generation)} is damaged: {{}}{search_index.HEALED}"
    if isinstance(search, str):
        return [sentence.format(search)]
    try:
        return search_index.differences(search, index, domains, generation)
    except (apsw.SQLError, *sqlite.DAMAGE) as error:
        return [sentence.format(error)]


@contextmanager
def _moment(
    files: RealFiles, name: str, is_stopped: Callable[[], bool], *, is_still: bool
) -> Iterator[apsw.Connection]:
    """A connection that sees one moment of a file: what is committed meanwhile is not seen."""
    with _opened(files, name, is_still=is_still) as connection:
        connection.set_progress_handler(is_stopped, STEPS)
        sqlite.hold_moment(connection)
        yield connection


@contextmanager
def _opened(files: RealFiles, name: str, *, is_still: bool) -> Iterator[apsw.Connection]:
    """A connection to a database that makes no file beside it, and works where nothing may be written.

    SQLite wants a -shm beside a WAL: where both are there they are used, where it is missing a copy is read. Without a
    WAL the file is read as one that cannot change.
    """
    path = files.path(name)
    if is_still:
        with closing(sqlite.connect_to_still(path)) as connection:
            yield connection
    elif files.exists(f"{path.name}-shm"):
        with closing(sqlite.connect_to_read(path)) as connection:
            yield connection
    else:
        with TemporaryDirectory(prefix="convmem-check-") as directory:
            target = RealFiles(Path(directory))
            if not index_copy.copied(files, target, name):
                raise apsw.CorruptError(f"{path.name} cannot be read as a whole")
            with closing(sqlite.connect_to_build(target.path(index_copy.COPY))) as connection:
                yield connection


def _stamps(files: RealFiles, name: str) -> list[tuple[int, int, int]]:
    """What changes when a database is written or replaced."""
    found = []
    for suffix in ("", "-wal"):
        with suppress(FileNotFoundError):
            stat = files.path(name + suffix).stat()
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return found


def leftovers(files: RealFiles, generation: int, torn: str | None) -> list[str]:
    """What the store does not need, and who takes it away: none of it is a fault."""
    found = [] if torn is None else [torn]
    for name in files.names():
        index = INDEX.fullmatch(name)
        if name.startswith(STAGING) or (index and int(index[1]) != generation):
            found.append(f"{name}: of work that is under way, or was left; the next start removes it")
    found += [
        f"{name}: an end of the log that a start cut off; `convmem compact` removes it" for name in cut_tails(files)
    ]
    if not files.exists(index_name(generation)):
        found.append(f"{index_name(generation)} is missing; the next start makes it anew")
    return found


def _stopping() -> Stopping:
    return Stopping("the daemon is stopping; the check was not finished", retry_after_ms=BUSY_RETRY_MS)
