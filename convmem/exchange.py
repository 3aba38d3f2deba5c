"""Files of records and a store in use: an export is one moment of it, an import its next generation.

While an import compares and writes, writes are told Busy and reads go on. Before that, while the file is only read and
checked, nobody notices it. What comes over the wire is kept in a staging file first: it is read twice.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import apsw

from convmem.errors import Busy, DiskFault, Invalid, Stopping, StorageFull, StoreFailed
from convmem.files import NO_SPACE, File, RealFiles
from convmem.limits import BUSY_RETRY_MS, IMPORT_BYTES_MAX, REBUILD_RETRY_MS, STORAGE_FULL_RETRY_MS
from convmem.maintenance import Progress, renew, teller
from convmem.store import sqlite
from convmem.store.compaction import Tell
from convmem.store.generation import STAGING
from convmem.store.sqlite import DAMAGE
from convmem.transfer.export import export as pieces
from convmem.transfer.intake import POLICIES, Intake, Plan, Policy
from convmem.transfer.scan import Scan, scan

if TYPE_CHECKING:
    from convmem.engine import Engine

UPLOAD, RECORDS = f"{STAGING}upload.jsonl", f"{STAGING}records.db"
ARGUMENTS = {"policy", "dry_run"}


async def export(engine: "Engine") -> AsyncGenerator[bytes, None]:
    """The store as JSON Lines, in pieces, as it is when the first piece is asked for. Stopping if the daemon stops."""
    await engine.ready()
    connection = await asyncio.to_thread(engine.snapshot)
    found = pieces(connection, engine.parts.domains, engine.clock.now_ms())
    # Whoever stops asking may do so while a thread is at the next piece.
    turn = threading.Lock()

    def step() -> bytes | None:
        with turn:
            try:
                return next(found, None)
            except DAMAGE as error:
                raise damaged() from error

    def close() -> None:
        with turn:
            connection.close()

    try:
        while (piece := await _next(engine, step)) is not None:
            yield piece
            if engine.is_stopped():
                raise Stopping("the daemon is stopping; the export broke off", retry_after_ms=BUSY_RETRY_MS)
    finally:
        await asyncio.to_thread(close)


async def _next(engine: "Engine", step: Callable[[], bytes | None]) -> bytes | None:
    try:
        return await asyncio.to_thread(step)
    except StoreFailed:
        engine.index_is_damaged()
        raise


def damaged() -> StoreFailed:
    """What is said when a read finds the index damaged."""
    return StoreFailed("the index is damaged; a restart makes it anew from the log")


def asked(arguments: Mapping[str, str]) -> tuple[Policy, bool]:
    """Policy and dry run, from the arguments of a request. Invalid for anything else."""
    for name in arguments.keys() - ARGUMENTS:
        raise Invalid(f"{name} is not an argument here", field=name)
    policy = next((known for known in POLICIES if known == arguments.get("policy", POLICIES[0])), None)
    if policy is None:
        raise Invalid(f"policy must be {' or '.join(POLICIES)}", field="policy")
    if (dry_run := arguments.get("dry_run", "false")) not in ("true", "false"):
        raise Invalid("dry_run must be true or false", field="dry_run")
    return policy, dry_run == "true"


async def upload(engine: "Engine", body: AsyncIterator[bytes], arguments: Mapping[str, str]) -> Mapping[str, Any]:
    """Bring in what a request's body holds; see `bring`."""
    policy, dry_run = asked(arguments)
    await engine.ready()
    if engine.renewal.locked() or engine.receiving.locked():
        raise Busy("another import or a compaction is under way", retry_after_ms=REBUILD_RETRY_MS)
    # Not yet the right to make a generation: a slow sender keeps no compaction waiting.
    async with engine.receiving:
        files = engine.parts.files
        with _refusals():
            file = files.stage(UPLOAD)
        try:
            await _receive(file, body)
            return await bring(engine, file, policy, dry_run=dry_run, progress=_untold)
        finally:
            file.close()
            with suppress(OSError):
                files.remove(UPLOAD)


async def _receive(file: File, body: AsyncIterator[bytes]) -> None:
    size = 0
    async for part in body:
        if size + len(part) > IMPORT_BYTES_MAX:
            raise Invalid(f"the file is larger than {IMPORT_BYTES_MAX} bytes", field="file")
        with _refusals():
            await asyncio.to_thread(file.write, size, part)
        size += len(part)


async def _untold(done: float, total: float, sentence: str) -> None:
    """Nobody asked how far it is."""


async def bring(
    engine: "Engine", file: File, policy: Policy, *, dry_run: bool, progress: Progress
) -> Mapping[str, Any]:
    """Take the records of a file into the store, all or none: {records, new, unchanged, overwritten, dry_run,
    generation, sequence}.

    CallerError with `line` for a file that is refused; Busy while another generation is made.
    """
    await engine.ready()
    if engine.renewal.locked():
        raise Busy("a new generation of the log is being made already", retry_after_ms=REBUILD_RETRY_MS)
    async with engine.renewal:
        return await engine.apart(_bring(engine, file, policy, dry_run, progress))


async def _bring(engine: "Engine", file: File, policy: Policy, dry_run: bool, progress: Progress) -> Mapping[str, Any]:
    files = engine.parts.files
    assert isinstance(files, RealFiles)
    writer, _ = await engine.ready()
    tell = teller(progress)
    with _refusals():
        files.remove(RECORDS)
    try:
        with _refusals(), closing(sqlite.connect_to_build(files.path(RECORDS))) as scratch:
            found = await asyncio.to_thread(_scan, engine, file, scratch, tell)
            intake = Intake(found, engine.parts.domains, policy, _told(engine, tell, "comparing"))
            with engine.without_writes("an import takes records in; it ends by itself"):
                # What was in the mailbox before is committed behind this.
                await writer.alone(lambda store: None)
                plan = await asyncio.to_thread(_meet, engine, intake)
                if not dry_run and plan.new + plan.overwritten:
                    await renew(engine, writer, progress, intake.records)
    finally:
        # What cannot be removed now is removed by the next start.
        with suppress(OSError):
            files.remove(RECORDS)
    return {
        "records": found.records,
        **plan._asdict(),
        "dry_run": dry_run,
        "generation": str(writer.facts.generation),
        "sequence": str(writer.facts.sequence),
    }


def _scan(engine: "Engine", file: File, scratch: apsw.Connection, tell: Tell) -> Scan:
    return scan(file, engine.parts.domains, scratch, _told(engine, tell, "checking"))


def _meet(engine: "Engine", intake: Intake) -> Plan:
    with closing(engine.snapshot()) as connection:
        try:
            return intake.meet(connection)
        except DAMAGE as error:
            raise damaged() from error


def _told(engine: "Engine", tell: Tell, sentence: str) -> Any:
    """Tells how far it is, and is the place where a stop is noticed."""

    def told(done: int, total: int) -> None:
        if engine.is_stopped():
            raise Stopping("the daemon is stopping; nothing was imported", retry_after_ms=BUSY_RETRY_MS)
        tell(done, total, sentence)

    return told


@contextmanager
def _refusals() -> Iterator[None]:
    """What the disk refuses inside the block, in the store's own words."""
    try:
        yield
    except (OSError, apsw.FullError, apsw.IOError) as error:
        if isinstance(error, apsw.FullError) or getattr(error, "errno", None) in NO_SPACE:
            raise StorageFull(
                "the disk took no more; nothing was imported", retry_after_ms=STORAGE_FULL_RETRY_MS
            ) from error
        raise DiskFault(f"the disk refused a file of the import ({error}); nothing was imported") from error
