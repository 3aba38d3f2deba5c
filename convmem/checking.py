"""Checking a data directory, beside whoever holds it or alone: the log from its first byte, the index, and leftovers.

The log says which index is its own, and that can change while one looks: a compaction gives the log another generation
and removes the index of the one before. So what is found is believed only if the log is still of that generation.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import apsw

from convmem.clock import Clock
from convmem.domain import Domain
from convmem.errors import Stopping
from convmem.files import RealFiles
from convmem.limits import BUSY_RETRY_MS, CHECK_ATTEMPTS_MAX
from convmem.maintenance import Progress, teller
from convmem.store import check as invariants
from convmem.store import log, sqlite
from convmem.store.compaction import cut_tails
from convmem.store.generation import STAGING
from convmem.store.shelf import FileShelf, index_name

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

    violations: list[str] = []
    generation = 1
    for _ in range(CHECK_ATTEMPTS_MAX):
        generation = _generation(files)
        try:
            violations, has_index = _violations(files, generation, domains, clock, told, is_stopped)
        except apsw.CantOpenError:
            if _generation(files) == generation:
                raise
            continue
        if (has_index and not violations) or _generation(files) == generation:
            break
    return {"violations": violations, "leftovers": leftovers(files, generation)}


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


def _violations(
    files: RealFiles,
    generation: int,
    domains: Sequence[Domain],
    clock: Clock,
    tell: Tell,
    is_stopped: Callable[[], bool],
) -> tuple[list[str], bool]:
    """What is wrong, and whether there was an index of this generation to look at."""
    has_index = files.exists(index_name(generation))
    if not files.exists(log.NAME):
        return [f"{log.NAME} is missing"], has_index
    file = files.open_to_read(log.NAME)
    try:
        if not has_index:
            return invariants.check(file, None, domains, clock, tell), False
        with closing(sqlite.connect_to_read(files.path(index_name(generation)))) as index:
            index.set_progress_handler(is_stopped, STEPS)
            # One look: what is committed meanwhile is not seen.
            index.execute("BEGIN")
            return invariants.check(file, index, domains, clock, tell), True
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return [f"the index is damaged: {error}"], has_index
    except apsw.InterruptError:
        raise _stopping() from None
    finally:
        file.close()


def leftovers(files: RealFiles, generation: int) -> list[str]:
    """Files that the store does not need, and who takes them away: none of them is a fault."""
    found = []
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
