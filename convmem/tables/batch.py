"""Several operations on one table inside one command: all of them or none, its schema too.

The schema is a part of what the operations change, so each is checked by the schema that those before it have left.
Every row that changes gets its entry of history, whatever changed it. What is refused names the operation and why; the
savepoint of the command undoes the others. A dry run does it all and undoes it. Whatever its operations are, a batch
has two seconds: longer the writer waits for nobody.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import apsw

from convmem.errors import BatchAborted, CallerError, Invalid, QueryLimit, SchemaExists, TableNotFound
from convmem.limits import BATCH_MS_MAX, BATCH_ROWS_MAX
from convmem.tables import changes, matches, queries, scanning, schema, statements
from convmem.tables import data as row_data
from convmem.tables.batch_ops import (
    CreateSchema,
    DeleteData,
    DeleteSchema,
    InsertData,
    Op,
    Query,
    Replace,
    UpdateData,
    UpdateSchema,
)
from convmem.tables.changes import Changed
from convmem.tables.cleaning import cleaned
from convmem.tables.conditions import to_sql
from convmem.tables.history import Keeping
from convmem.tables.places import Root
from convmem.tables.scanning import Mount
from convmem.targets import TableFile, TableStamp


@dataclass(frozen=True)
class RunBatch:
    """Do these operations on one table. `mount` is the table as it is mounted, None if it is to be made."""

    target: TableFile
    table: str
    root: Root
    keeping: Keeping
    mount: Mount | None
    ops: tuple[Op, ...]
    size_bytes: int
    dry_run: bool = False
    redacts: bool = False


class Done(NamedTuple):
    """One result an operation, how many rows were {inserted, updated, deleted}, and whether the schema is another."""

    results: list[dict[str, Any]]
    affects: dict[str, int]
    changes_schema: bool


class Work:
    """A batch as far as it is done."""

    def __init__(self, connection: apsw.Connection, command: RunBatch, stamp: TableStamp) -> None:
        self.connection = connection
        self.command = command
        self.stamp = stamp
        self.mount = command.mount
        self.allowance = statements.Allowance(stamp)
        self.affects = {"inserted": 0, "updated": 0, "deleted": 0}
        self._end_ms = stamp.monotonic_ms() + BATCH_MS_MAX

    def mounted(self) -> Mount:
        """The table as the operations before have left it."""
        if self.mount is None:
            raise TableNotFound("the table is not there at this operation", table=self.command.table)
        return self.mount

    def refuse_if_late(self) -> None:
        """QueryLimit once the batch has taken as long as it may; asked for each row."""
        if self.stamp.monotonic_ms() > self._end_ms:
            raise QueryLimit(f"a batch takes at most {BATCH_MS_MAX} ms; make it smaller", ms_max=BATCH_MS_MAX)

    def count(self, what: str, rows: int = 1) -> None:
        """Count rows that were changed."""
        self.affects[what] += rows


def decide(connection: apsw.Connection, command: RunBatch, stamp: TableStamp) -> Done:
    """Do all of it. BatchAborted with `op_index` and `cause` for the first operation that is refused."""
    if command.mount is not None:
        command.mount.refuse_if_retired(command)
    work = Work(connection, command, stamp)
    if command.dry_run:
        connection.execute("SAVEPOINT dry_run")
    results = [_result(work, index, op) for index, op in enumerate(command.ops)]
    if command.dry_run:
        connection.execute("ROLLBACK TO dry_run")
        connection.execute("RELEASE dry_run")
    before = None if command.mount is None else command.mount.schema
    after = None if work.mount is None else work.mount.schema
    changes_schema = before != after
    if changes_schema and not command.dry_run:
        if command.mount is not None:
            command.mount.retire(by=command)
        scanning.put_pending(connection, None if after is None else schema.render(after))
    return Done(results, work.affects, changes_schema)


def _result(work: Work, index: int, op: Op) -> dict[str, Any]:
    try:
        work.refuse_if_late()
        return {"op": op.name, **OPERATIONS[type(op)](work, op)}
    except CallerError as error:
        raise BatchAborted(
            f"operation {index} ({op.name}) was refused, none was done: {error.message}",
            op_index=index,
            cause=error.facts(),
        ) from None


def _insert(work: Work, op: InsertData) -> dict[str, Any]:
    mount = work.mounted()
    changed = changes.insert(work.connection, mount, work.stamp, row_data.checked(mount.schema, op.data))
    work.count("inserted")
    return _facts(changed)


def _update(work: Work, op: UpdateData) -> dict[str, Any]:
    mount = work.mounted()
    stored = queries.read_row(work.connection, op.id)
    changes.refuse_if_changed(stored, op.expected_sha256)
    given = row_data.merged(stored.row.data, op.data) if op.mode == "merge" else op.data
    changed = changes.replace(work.connection, mount, work.stamp, stored, row_data.checked(mount.schema, given))
    work.count("updated")
    return _facts(changed)


def _delete(work: Work, op: DeleteData) -> dict[str, Any]:
    mount = work.mounted()
    stored = queries.read_row(work.connection, op.id)
    changes.refuse_if_changed(stored, op.expected_sha256)
    version = changes.delete(work.connection, mount, work.stamp, stored)
    work.count("deleted")
    return {"id": stored.row.id, **({} if version is None else {"version": version})}


def _replace(work: Work, op: Replace) -> dict[str, Any]:
    """Take away the rows that match, and add others."""
    mount = work.mounted()
    condition = to_sql(matches.parse(op.match, mount.schema))
    sql = f"SELECT id FROM rows WHERE {condition.sql} ORDER BY id LIMIT {BATCH_ROWS_MAX + 1}"
    found: list[str] = [row[0] for row in work.connection.execute(sql, condition.bindings)]
    if len(found) > BATCH_ROWS_MAX:
        raise Invalid(f"match finds more than {BATCH_ROWS_MAX} rows", field="match")
    for row_id in found:
        work.refuse_if_late()
        stored = queries.read_exactly(work.connection, row_id)
        changes.delete(work.connection, mount, work.stamp, stored)
    for data in op.items:
        work.refuse_if_late()
        changes.insert(work.connection, mount, work.stamp, row_data.checked(mount.schema, data))
    work.count("deleted", len(found))
    work.count("inserted", len(op.items))
    return {"affects": {"deleted": len(found), "inserted": len(op.items)}}


def _query(work: Work, op: Query) -> dict[str, Any]:
    """One statement of the caller's; each row that it changed is written down."""
    mount = work.mounted()
    done = {"inserted": 0, "updated": 0, "deleted": 0}
    clean = cleaned if mount.redacts else dict
    found = statements.run(
        work.connection, op.sql, op.params, mount.schema, work.stamp, allowance=work.allowance, clean=clean
    )
    for change in found:
        work.refuse_if_late()
        before, after = change.before_json, change.after_json
        if before is None and after is None:
            continue  # It came and went in one statement.
        what = "deleted" if after is None else "inserted" if before is None else "updated"
        kind = KINDS[what]
        changes.record(work.connection, mount, work.stamp, change.row_id, kind, after, before)
        done[what] += 1
    for what, rows in done.items():
        work.count(what, rows)
    return {"affects": done}


def _create_schema(work: Work, op: CreateSchema) -> dict[str, Any]:
    if work.mount is not None:
        raise SchemaExists("there is a table of this name already", table=work.command.table)
    rows = queries.count_rows(work.connection)
    if rows and not op.adopt:
        sentence = f"there are {rows} rows of an earlier table of this name; adopt takes them over"
        raise SchemaExists(sentence, table=work.command.table)
    command = work.command
    declared = schema.declared({**op.declared, "table": command.table})
    work.mount = Mount(
        command.table,
        command.root.scope,
        command.root,
        declared,
        command.root.schema(command.table),
        command.target,
        command.keeping,
        redacts=command.redacts,
    )
    return {"created": command.table}


def _update_schema(work: Work, op: UpdateSchema) -> dict[str, Any]:
    mount = work.mounted()
    new = schema.updated(mount.schema, {**op.declared, "table": mount.table})
    work.mount = replace(mount, schema=new)
    return schema.changed(mount.schema, new)


def _delete_schema(work: Work, op: DeleteSchema) -> dict[str, Any]:
    mount = work.mounted()
    work.mount = None
    return {"deleted": mount.table}


def _facts(changed: Changed) -> dict[str, Any]:
    version = {} if changed.version is None else {"version": changed.version}
    return {"id": changed.row.id, **version, "sha256": row_data.sha256(changed.row.data)}


KINDS: Mapping[str, Any] = {"inserted": "create", "updated": "update", "deleted": "delete"}
OPERATIONS: Mapping[type[Any], Callable[[Work, Any], dict[str, Any]]] = {
    InsertData: _insert,
    UpdateData: _update,
    DeleteData: _delete,
    Replace: _replace,
    Query: _query,
    CreateSchema: _create_schema,
    UpdateSchema: _update_schema,
    DeleteSchema: _delete_schema,
}
TABLE_DECIDERS: Mapping[type[Any], Any] = {RunBatch: decide}
