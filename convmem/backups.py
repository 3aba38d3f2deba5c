"""Backups of a store in use: made and proven when somebody asks, and on a schedule.

A backup nobody has restored is a hope. So the schedule does both each time: bring the copy up to date, then prove by
replay that a restore would come to the state that was copied. What counts is when that last succeeded. It is kept with
the backup (proven.json), so a restarted daemon still knows, and one whose proof grows old is degraded and says so.

The long work runs on threads of their own beside writer and readers, one backup or proof at a time. A stop ends it
between two steps; whatever step that is, the old backup or the new one is there.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from convmem import backup_tables, files
from convmem.backup_arguments import flag_in, path_in, refuse_others
from convmem.errors import BackupRefused, Busy, ConvmemError, DiskFault, Stopping, StoreFailed
from convmem.files import RealFiles
from convmem.limits import REBUILD_RETRY_MS
from convmem.maintenance import Progress, teller
from convmem.store import backup, manifest, restore, sqlite
from convmem.store.compaction import Tell
from convmem.store.generation import STAGING
from convmem.store.manifest import PROVEN, Manifest, Proof
from convmem.store.restore import Proven, Watch
from convmem.store.shelf import index_name
from convmem.store.sqlite import DAMAGE

if TYPE_CHECKING:
    from convmem.engine import Engine

Sleep = Callable[[float], Awaitable[object]]
JOURNAL = logging.getLogger("convmem")
SCRATCH = f"{STAGING}proof.db"
# How long the schedule sleeps at most: a machine that was suspended notices soon that a backup is due.
LOOK_S = 60
# A proof may be this many periods old before the store is degraded.
PERIODS_MAX = 2


class Plan(NamedTuple):
    """The backup that is kept up: where, and how often."""

    directory: Path
    every_ms: int


class Backups:
    """The backups of one engine. Everything is called on the event loop's thread."""

    def __init__(self, engine: "Engine", own_files: RealFiles, sleep: Sleep = asyncio.sleep) -> None:
        self._engine = engine
        self._files = own_files
        self._sleep = sleep
        self._turn = asyncio.Lock()
        self._plan: Plan | None = None
        self._planned_ms = 0
        self._failure: str | None = None
        # Directories whose backup is known to be one of this store.
        self._own: set[Path] = set()
        self.last_proven_restore_ms: int | None = None
        self.kept_back: list[str] = []  # Sentences about tables that the last backup could not copy.

    def schedule(self, directory: Path, every_ms: int) -> None:
        """Keep up a backup in this directory once the engine runs."""
        self._plan = Plan(Path(os.path.realpath(directory)), every_ms)
        self._planned_ms = self._engine.clock.now_ms()
        self._own.add(self._plan.directory)

    async def run(self) -> None:
        """Follow the schedule, if there is one, until cancelled."""
        if self._plan is None:
            return
        last_ms = await asyncio.to_thread(_known_proof, self._plan.directory)
        self.last_proven_restore_ms = last_ms
        while True:
            await self._due(last_ms)
            last_ms = self._engine.clock.now_ms()
            try:
                await self._engine.apart(self._keep_up(self._plan.directory))
            except Stopping:
                return
            except ConvmemError as error:
                self._failure = f"the last backup failed ({error.code}: {error.message})"
                JOURNAL.error("the backup in %s failed: %s: %s", self._plan.directory, error.code, error.message)

    async def _due(self, last_ms: int | None) -> None:
        """Return once a period has passed since then, or the clock was set back to before it."""
        assert self._plan is not None
        while last_ms is not None:
            passed_ms = self._engine.clock.now_ms() - last_ms
            if not 0 <= passed_ms < self._plan.every_ms:
                return
            await self._sleep(min(LOOK_S, (self._plan.every_ms - passed_ms) / 1000))

    async def _keep_up(self, directory: Path) -> None:
        async with self._turn:
            made, copied_bytes = await self._made(directory, _nobody)
            await asyncio.to_thread(self._prove, directory, _nobody)
        self._failure = None
        JOURNAL.info("backup in %s: entry %d, %d bytes copied, restore proven", directory, made.sequence, copied_bytes)

    def reasons(self) -> list[str]:
        """Why the backups are not simply well, in sentences; empty if they are or there is no schedule."""
        found = [] if self._failure is None else [self._failure]
        found += [f"the last backup could not copy a table: {sentence}" for sentence in self.kept_back]
        if self._plan is not None:
            last_ms, now_ms = self.last_proven_restore_ms, self._engine.clock.now_ms()
            if now_ms - (self._planned_ms if last_ms is None else last_ms) > PERIODS_MAX * self._plan.every_ms:
                since = "was ever proven" if last_ms is None else f"has been proven since {manifest.iso(last_ms)}"
                found.append(f"no restore of a backup {since}")
        return found

    async def back_up(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        """Bring the backup in `dest` up to date, `with_tokens` or without: {dest, generation, sequence, log_bytes,
        copied_bytes, parts, not_copied?, state_hash, created_at, duration_ms}. `not_copied`: sentences about tables.
        Busy, BackupRefused, LogCorrupt, DiskFault, Stopping.
        """
        refuse_others(arguments, "dest", "with_tokens")
        return await self._engine.apart(
            self._asked_to_back_up(path_in(arguments, "dest"), flag_in(arguments, "with_tokens"), progress)
        )

    async def verify(self, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        """Prove a restore of the backup in `src`: {src, generation, sequence, log_bytes, live, state_hash, created_at,
        duration_ms}. Busy, BackupRefused, DiskFault, Stopping.
        """
        refuse_others(arguments, "src")
        return await self._engine.apart(self._asked_to_verify(path_in(arguments, "src"), progress))

    async def _asked_to_back_up(self, directory: Path, with_tokens: bool, progress: Progress) -> Mapping[str, Any]:
        started_ms = self._engine.clock.monotonic_ms()
        async with self._only_one():
            made, copied_bytes = await self._made(directory, teller(progress), with_tokens=with_tokens)
        return {
            "dest": str(directory),
            **facts(made),
            "copied_bytes": copied_bytes,
            **({"not_copied": self.kept_back} if self.kept_back else {}),
            "duration_ms": round(self._engine.clock.monotonic_ms() - started_ms),
        }

    async def _asked_to_verify(self, directory: Path, progress: Progress) -> Mapping[str, Any]:
        started_ms = self._engine.clock.monotonic_ms()
        async with self._only_one():
            proven = await asyncio.to_thread(self._verify, directory, teller(progress))
        return {
            "src": str(directory),
            **facts(proven.manifest),
            "live": proven.live,
            "duration_ms": round(self._engine.clock.monotonic_ms() - started_ms),
        }

    @asynccontextmanager
    async def _only_one(self) -> AsyncIterator[None]:
        if self._turn.locked():
            raise Busy("a backup is being made or proven already", retry_after_ms=REBUILD_RETRY_MS)
        async with self._turn:
            yield

    async def _made(self, directory: Path, tell: Tell, *, with_tokens: bool = False) -> tuple[Manifest, int]:
        await self._engine.mount()
        try:
            return await asyncio.to_thread(self._make, directory, tell, with_tokens)
        except DAMAGE as error:
            self._engine.index_is_damaged()
            raise StoreFailed("the index is damaged; a restart makes it anew from the log") from error

    def _make(self, directory: Path, tell: Tell, with_tokens: bool) -> tuple[Manifest, int]:
        engine = self._engine
        kept_back: list[str] = []
        tables = backup_tables.parts(engine.mounting, self._files, engine.is_stopped)

        def connect(generation: int) -> apsw.Connection:
            return sqlite.connect_to_read(self._files.path(index_name(generation)))

        with (
            backup.refused_by_disk("nothing that was there is lost"),
            taken(directory, self._files.root) as target,
            backup.looked_at(self._files, connect, engine.parts.domains, tables) as source,
        ):
            made = backup.back_up(
                source,
                target,
                engine.clock,
                with_tokens=with_tokens,
                tell=tell,
                is_stopped=engine.is_stopped,
                kept_back=kept_back.append,
            )
        self.kept_back = kept_back
        for sentence in kept_back:
            JOURNAL.error("a table could not be copied, the backup keeps what it has of it: %s", sentence)
        self._own.add(Path(os.path.realpath(directory)))
        return made

    def _verify(self, directory: Path, tell: Tell) -> Proven:
        """Prove a backup that somebody named; one of this store is a proof to remember."""
        check_proof(RealFiles(directory))
        if Path(os.path.realpath(directory)) in self._own:
            return self._prove(directory, tell)
        return self._replay(directory, tell)

    def _prove(self, directory: Path, tell: Tell) -> Proven:
        proven = self._replay(directory, tell)
        self.last_proven_restore_ms = at_ms = self._engine.clock.now_ms()
        _, data = manifest.sealed(Proof(proven_at_ms=at_ms, manifest=proven.manifest.sha256))
        target = RealFiles(directory)
        with backup.refused_by_disk("the restore was proven, but that could not be written down"):
            manifest.put(target, PROVEN, data)
            target.sync_directory()
        return proven

    def _replay(self, directory: Path, tell: Tell) -> Proven:
        engine, watch = self._engine, Watch(tell, self._engine.is_stopped)
        with backup.refused_by_disk("nothing was changed"):
            self._files.remove(SCRATCH)
            try:
                with closing(sqlite.connect_to_build(self._files.path(SCRATCH))) as scratch:
                    return restore.prove(RealFiles(directory), scratch, engine.parts.domains, engine.clock, watch)
            finally:
                self._files.remove(SCRATCH)


@contextmanager
def taken(directory: Path, data_dir: Path) -> Iterator[RealFiles]:
    """A directory for a backup, made if missing, held against other processes. BackupRefused, Busy, DiskFault."""
    if Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(data_dir)):
        raise BackupRefused("a backup cannot stand in the data directory: it would be lost with it", part="")
    target = RealFiles(directory)
    with backup.refused_by_disk("nothing was changed"):
        if target.exists("."):
            # Before prepare() closes the directory to others: it may not be ours to close.
            backup.refuse_foreign(target)
        target.prepare()
        lock = files.lock(target.path(backup.LOCK))
    if lock is None:
        raise Busy("another process makes a backup there", retry_after_ms=REBUILD_RETRY_MS)
    try:
        yield target
    finally:
        lock.close()


def facts(made: Manifest) -> dict[str, Any]:
    """What a manifest says, for programs and people."""
    return {
        "generation": str(made.generation),
        "sequence": str(made.sequence),
        "log_bytes": made.log_bytes,
        "parts": [{"name": part.name, "file": part.file, "bytes": part.bytes} for part in made.parts],
        "state_hash": made.state_hash,
        "created_at": made.created_at,
    }


def check_proof(directory: RealFiles) -> Proof | None:
    """The proof that stands beside a backup; None if there is none. BackupRefused if it is not what was written."""
    with backup.refused_by_disk("nothing was changed"):
        return manifest.read(directory, PROVEN, Proof)


def _known_proof(directory: Path) -> int | None:
    """When a restore was last proven, in ms; None where nothing that can be believed says so."""
    try:
        proof = check_proof(RealFiles(directory))
    except (BackupRefused, DiskFault) as error:
        JOURNAL.warning("the proof in %s cannot be used: %s", directory, error.message)
        return None
    return None if proof is None else proof.proven_at_ms


def _nobody(done: float, total: float, sentence: str) -> None:
    """Hears how far the schedule's own work is."""
