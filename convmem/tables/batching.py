"""Running a batch: which table it is for, what is copied before it, and what its caller is told.

A batch that changes a schema is a change of schemas: it has its turn behind others, a backup is made first, and the
table is mounted anew behind it (schema_changes.py). One that changes rows alone is a command like any other.
"""

import asyncio
from typing import Any

from convmem.domain import Access
from convmem.errors import Busy, Invalid, TableNotFound
from convmem.limits import REPLY_BYTES_DEFAULT, REPLY_ENVELOPE_BYTES
from convmem.reply_bytes import reply_bytes
from convmem.tables import backing_up, batch_ops, making, scanning, schema_changes
from convmem.tables.batch import Done, RunBatch
from convmem.tables.batch_ops import Batch
from convmem.tables.disk import refused_by_disk
from convmem.tables.mounts import Mounts
from convmem.tables.names import table_name_fault
from convmem.tables.scanning import Mount
from convmem.tables.schema_inputs import SchemaBatch


async def done(access: Access, mounts: Mounts, ask: SchemaBatch) -> dict[str, Any]:
    """{committed, ops_executed, results, affects, truncated?, dry_run?}."""
    batch = batch_ops.parse(ask.ops)
    if None not in (ask.table, batch.table) and ask.table != batch.table:
        raise Invalid("table and the operations name different tables", field="table")
    table = ask.table or batch.table
    if not batch.changes_schema:
        return _facts(await _changing_rows(access, mounts, ask, table, batch), ask)
    async with mounts.changing:
        return _facts(await _changing_schema(access, mounts, ask, table, batch), ask)


async def _changing_rows(access: Access, mounts: Mounts, ask: SchemaBatch, table: str | None, batch: Batch) -> Done:
    while True:
        mount = await mounts.mounted(table)
        try:
            outcome: Done = await access.write(_for(mount, batch, ask))
        except Busy:
            if not mount.is_retired:
                raise
        else:
            return outcome


def _for(mount: Mount, batch: Batch, ask: SchemaBatch) -> RunBatch:
    return RunBatch(mount.file, mount.table, mount.root, mount.keeping, mount, batch.ops, ask.size_bytes, ask.dry_run)


async def _changing_schema(access: Access, mounts: Mounts, ask: SchemaBatch, table: str | None, batch: Batch) -> Done:
    try:
        command = _for(mounts.table(table), batch, ask)
    except TableNotFound:
        if not batch.creates_schema:
            raise
        assert table is not None
        command = await _making(mounts, ask, table, batch)
        async with making.place(access, mounts, command.root, table, is_dry=ask.dry_run):
            made: Done = await access.write(command)
        return made
    if not ask.dry_run:
        assert command.mount is not None
        await schema_changes.refuse_if_edited(command.mount)
        await backing_up.back_up(access, mounts.places, command.mount)
    try:
        outcome: Done = await access.write(command)
    finally:
        await mounts.refresh(access, command.table)
    return outcome


async def _making(mounts: Mounts, ask: SchemaBatch, table: str, batch: Batch) -> RunBatch:
    """The batch as a command for the file of a table that one of its operations makes."""
    if fault := table_name_fault(table):
        raise Invalid(f"table {fault}", field="table")
    root = schema_changes.root_of(mounts, ask.scope or "user")
    with refused_by_disk(table):
        await asyncio.to_thread(schema_changes.refuse_taken, root, table)
    file = scanning.table_file(root.rows(table))
    places = mounts.places
    return RunBatch(
        file, table, root, places.keeping, None, batch.ops, ask.size_bytes, ask.dry_run, redacts=places.redacts
    )


def _facts(outcome: Done, ask: SchemaBatch) -> dict[str, Any]:
    """What the caller is told; as many results as a reply holds."""
    facts: dict[str, Any] = {
        "committed": not ask.dry_run,
        "ops_executed": len(outcome.results),
        "affects": outcome.affects,
    }
    left = REPLY_BYTES_DEFAULT - REPLY_ENVELOPE_BYTES - reply_bytes(facts)
    shown: list[dict[str, Any]] = []
    for result in outcome.results:
        left -= reply_bytes(result) + 2
        if left < 0:
            break
        shown.append(result)
    cut = {"truncated": True} if len(shown) < len(outcome.results) else {}
    return {**facts, "results": shown, **cut, **({"dry_run": True} if ask.dry_run else {})}
