"""What an operator does to tables: lists them, and purges the past of their rows."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from convmem import folders
from convmem.access import StoreAccess
from convmem.errors import Busy, CallerError, ConvmemError, Invalid, RetryError
from convmem.limits import BUSY_RETRY_MS, PURGE_TRIES_MAX
from convmem.maintenance import Progress
from convmem.setting_values import duration_ms
from convmem.tables import purge_marks, purging, queries
from convmem.tables.mounts import Mounts, mounts_of
from convmem.tables.purge_reach import Asked
from convmem.tables.purging import START, Damaged, Place, Purged, PurgeHistory
from convmem.tables.scanning import Mount

FOR_EVER_S = 2**62
KEEP_MAX, DAMAGED_SHOWN_MAX = 1_000_000, 20


async def listed(access: StoreAccess) -> Mapping[str, Any]:
    """{tables: [{table, scope, title, rows, history, bytes}], broken}: rows are null where a file cannot be read."""
    mounts = await mounts_of(access)
    broken = mounts.facts()["broken"]
    return {"tables": [await _facts(access, mount) for mount in mounts.mounts()], "broken": broken}


async def _facts(access: StoreAccess, mount: Mount) -> dict[str, Any]:
    rows: int | None = None
    # One that cannot be read is listed all the same.
    with suppress(ConvmemError):
        rows = await access.read_files([mount.file.path], queries.count_rows)
    return {
        "table": mount.table,
        "scope": mount.scope,
        "title": mount.schema.title or "",
        "rows": rows,
        "history": mount.schema.history,
        "bytes": folders.size(mount.file.path),
    }


async def purged(access: StoreAccess, arguments: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
    """{tables: [{table, entries, damaged, damaged_versions?, bytes_before, bytes_after, unfinished?, error?}], broken,
    dry_run?}. `damaged` counts what could not be read and was left; `unfinished`: bytes of what was purged are still
    in the file.

    Arguments: `table` (none: all), `older_than` (30d), `keep`, at least one of both, `dry_run`. Invalid, TableNotFound,
    Busy. What one table refuses with stands beside it, and the others are purged all the same.
    """
    asked = dict(arguments)
    table, older_than, keep = asked.pop("table", None), asked.pop("older_than", None), asked.pop("keep", None)
    is_dry = asked.pop("dry_run", False)
    for name in asked:
        raise Invalid(f"{name[:64]} is not an argument here", field=name[:64])
    if type(is_dry) is not bool:
        raise Invalid("dry_run must be true or false", field="dry_run")
    if older_than is None and keep is None:
        raise Invalid("say which versions: older_than, keep or both", field="older_than")
    if not isinstance(keep, int | None) or isinstance(keep, bool) or (keep is not None and not 0 <= keep <= KEEP_MAX):
        raise Invalid(f"keep must be a whole number from 0 to {KEEP_MAX}", field="keep")
    before_s = _before_s(access, older_than)
    mounts = await mounts_of(access)
    done = []
    wanted = _wanted(mounts, table)
    for number, mount in enumerate(wanted):
        await progress(number, len(wanted), f"purging {mount.table}")
        done.append(await _purged(access, mount, Asked(mount.table, before_s, keep or 0), is_dry=is_dry))
    broken = mounts.facts()["broken"] if table is None else []
    return {"tables": done, "broken": broken, **({"dry_run": True} if is_dry else {})}


def _before_s(access: StoreAccess, older_than: Any) -> int:
    if older_than is None:
        return FOR_EVER_S
    try:
        return access.now_ms() // 1000 - duration_ms(str(older_than)) // 1000
    except ValueError as error:
        raise Invalid(f"older_than {error}", field="older_than") from None


def _wanted(mounts: Mounts, table: Any) -> list[Mount]:
    return mounts.mounts() if table is None else [mounts.table(str(table))]


async def _purged(access: StoreAccess, mount: Mount, asked: Asked, *, is_dry: bool) -> dict[str, Any]:
    path = mount.file.path
    facts: dict[str, Any] = {"table": mount.table, "entries": 0, "damaged": 0, "bytes_before": folders.size(path)}
    named: list[Damaged] = []
    try:
        after: Place | None = START
        while after is not None:
            if is_dry:
                found = await access.read_files([path], purging.count, asked, after)
            else:
                found = await _patiently(access, PurgeHistory(mount.file, asked, after))
            facts["entries"] += found.entries
            facts["damaged"] += len(found.damaged)
            named += found.damaged[: DAMAGED_SHOWN_MAX - len(named)]
            after = found.after
        if await access.read_files([path], purge_marks.is_unfinished):
            # Cleared again where the file is written anew; who only asks is told that it still has to be.
            facts["unfinished"] = True
            if not is_dry:
                await access.rewrite_file(path, purge_marks.begun)
                del facts["unfinished"]
    except (CallerError, RetryError) as error:
        facts["error"] = {"code": error.code, "message": error.message}
    if named:
        facts["damaged_versions"] = [{**damaged._asdict(), "row_id": str(damaged.row_id)} for damaged in named]
    return {**facts, "bytes_after": folders.size(path)}


async def _patiently(access: StoreAccess, command: PurgeHistory) -> Purged:
    """Leave a piece with the writer, again and again while that is Busy for a moment: a purge has hundreds of them."""
    for _ in range(PURGE_TRIES_MAX - 1):
        with suppress(Busy):
            return cast(Purged, await access.write(command))
        await asyncio.sleep(BUSY_RETRY_MS / 1000)
    return cast(Purged, await access.write(command))
