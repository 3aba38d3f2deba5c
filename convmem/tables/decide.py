"""The rules of tables: what a command does to the rows that are there, in the file's open transaction, or a refusal.

Deciding knows neither clock nor dice: the stamp brings time, origin and fresh ids. What is returned becomes the answer
once the transaction is on the disk. A refusal half-way undoes what the command has done (targets.py).
"""

from collections.abc import Mapping
from typing import Any

import apsw

from convmem.errors import Conflict, NotFound, SchemaExists
from convmem.fingerprints import fingerprint
from convmem.limits import ROW_RECEIPTS_S_MAX
from convmem.tables import alias_tables, batch, changes, edits, history, purging, queries, scanning, used_keys
from convmem.tables import data as row_data
from convmem.tables.changes import Changed
from convmem.tables.chunks import Entry
from convmem.tables.cleaning import cleaned
from convmem.tables.commands import CreateRow, DeclareSchema, DeleteRow, InsertText, ReplaceText, RestoreRow, UpdateRow
from convmem.tables.inputs import RowRestore
from convmem.tables.model import Row
from convmem.tables.purge_rules import PURGED
from convmem.tables.scanning import Mount
from convmem.targets import TableDecider, TableStamp


def create(connection: apsw.Connection, command: CreateRow, stamp: TableStamp) -> dict[str, Any]:
    """A new row {changed}; or, for an idempotency key this device used before, what it was answered then."""
    command.refuse_if_retired()
    ask, mount = command.ask, command.mount
    key = arguments = None
    if ask.idempotency_key is not None:
        key, arguments = fingerprint(ask.idempotency_key.encode()), _said(ask.data)
        known = queries.read_receipt(connection, stamp.origin.device, key)
        if known is not None:
            return _replayed(known, arguments, ask.data, mount)
    # As it is stored, so that what is answered again is what was answered first.
    data = changes.as_stored(mount, row_data.checked(mount.schema, ask.data))
    changed = changes.insert(connection, mount, stamp, data)
    if key is not None:
        connection.execute(
            "INSERT INTO _receipts VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                *(stamp.origin.device, key, arguments, changed.row.id, changed.version),
                *(changed.row.created_at, bytes.fromhex(row_data.sha256(data))),
            ),
        )
        forgotten_at = changes.seconds(stamp) - ROW_RECEIPTS_S_MAX
        connection.execute("DELETE FROM _receipts WHERE recorded_at < ?", (forgotten_at,))
    return {"changed": changed}


def _said(data: Mapping[str, Any]) -> bytes | None:
    """What a caller says, whatever schema it will be held against; None if no row of any could hold it.

    An absent field and a null one are one request.
    """
    try:
        return fingerprint(row_data.canonical({name: value for name, value in data.items() if value is not None}))
    except (TypeError, ValueError, RecursionError):
        return None


def _replayed(known: queries.Receipt, arguments: bytes | None, said: Mapping[str, Any], mount: Mount) -> dict[str, Any]:
    """The receipt again. The schema may be another by now: what was stored then is not held against it."""
    if known.arguments != arguments:
        raise Conflict("this idempotency_key was used with other arguments", field="idempotency_key")
    data = {name: value for name, value in said.items() if value is not None}
    if mount.redacts:
        data = cleaned(data)
    row = Row(id=known.row_id, data=data, created_at=known.recorded_at, updated_at=known.recorded_at)
    return {"changed": Changed(row, known.version), "replayed": True, "sha256": known.sha256.hex()}


def update(connection: apsw.Connection, command: UpdateRow, stamp: TableStamp) -> Changed:
    """The row with other data: a patch laid over it, or replaced whole."""
    command.refuse_if_retired()
    ask, mount = command.ask, command.mount
    stored = queries.read_row(connection, ask.id)
    changes.refuse_if_changed(stored, ask.expected_sha256)
    given = row_data.merged(stored.row.data, ask.data) if ask.mode == "merge" else ask.data
    return changes.replace(connection, mount, stamp, stored, row_data.checked(mount.schema, given))


def delete(connection: apsw.Connection, command: DeleteRow, stamp: TableStamp) -> dict[str, Any]:
    """{deleted, version?} of a row that was there."""
    command.refuse_if_retired()
    stored = queries.read_row(connection, command.ask.id)
    changes.refuse_if_changed(stored, command.ask.expected_sha256)
    version = changes.delete(connection, command.mount, stamp, stored)
    return {"deleted": stored.row.id, **({} if version is None else {"version": version})}


def replace_text(connection: apsw.Connection, command: ReplaceText, stamp: TableStamp) -> tuple[Changed, int]:
    """The row with passages of one of its texts replaced, and how many were."""
    command.refuse_if_retired()
    ask = command.ask
    stored = queries.read_row(connection, ask.id)
    changes.refuse_if_changed(stored, ask.expected_sha256)
    text = edits.text_of(stored.row.data, ask.field)
    done = edits.replace(text, ask.old_str, ask.new_str, ask.view_range, replace_all=ask.replace_all)
    return _with_text(connection, command, stamp, stored, done.text), done.matches


def insert_text(connection: apsw.Connection, command: InsertText, stamp: TableStamp) -> tuple[Changed, edits.Inserted]:
    """The row with lines inserted into one of its texts, and where."""
    command.refuse_if_retired()
    ask = command.ask
    stored = queries.read_row(connection, ask.id)
    changes.refuse_if_changed(stored, ask.expected_sha256)
    done = edits.insert(edits.text_of(stored.row.data, ask.field), ask.line, ask.content)
    return _with_text(connection, command, stamp, stored, done.text), done


def _with_text(
    connection: apsw.Connection,
    command: ReplaceText | InsertText,
    stamp: TableStamp,
    stored: queries.Stored,
    text: str,
) -> Changed:
    data = row_data.checked(command.mount.schema, {**stored.row.data, command.ask.field: text})
    return changes.replace(connection, command.mount, stamp, stored, data)


def restore(connection: apsw.Connection, command: RestoreRow, stamp: TableStamp) -> dict[str, Any]:
    """{changed, restored_from} with the row as one of its versions was; added again if it is gone."""
    command.refuse_if_retired()
    ask, mount = command.ask, command.mount
    if mount.schema.history == "off":
        raise NotFound("this table keeps no history", field="id")
    row_id = queries.full_id_of_history(connection, mount.table, ask.id)
    entry = _entry(connection, mount.table, row_id, ask)
    text = entry.prev_data_json if entry.op == "delete" else entry.data_json
    if text in (None, PURGED):
        raise NotFound("what this version said was purged", field="id")
    data = row_data.checked(mount.schema, queries.read_data(text))
    stored = queries.read_if_there(connection, row_id)
    if stored is not None:
        changed = changes.replace(connection, mount, stamp, stored, data)
    else:
        created_at = history.first_recorded_at(connection, mount.table, row_id)
        changed = changes.insert(connection, mount, stamp, data, row_id=row_id, created_at=created_at)
    source = {"version": entry.version, "op": entry.op, "time": entry.recorded_at}
    return {"changed": changed, "restored_from": source}


def _entry(connection: apsw.Connection, table: str, row_id: str, ask: RowRestore) -> Entry:
    if ask.version is not None:
        found = history.at_version(connection, table, row_id, ask.version)
    else:
        assert ask.at_unix_secs is not None
        found = history.at_time(connection, table, row_id, ask.at_unix_secs)
    if found is None:
        raise NotFound("there is no such version of this row, or none as old", field="id")
    return found


def declare_schema(connection: apsw.Connection, command: DeclareSchema, stamp: TableStamp) -> None:
    """The schema that counts from now on. Whoever comes with the old one is refused."""
    if command.mount is not None:
        command.mount.retire(by=command)
    elif not command.adopts and queries.count_rows(connection):
        raise SchemaExists("there are rows of an earlier table of this name; adopt takes them over", table="")
    scanning.put_pending(connection, command.yaml)


TABLE_DECIDERS: Mapping[type[Any], TableDecider] = {
    CreateRow: create,
    DeclareSchema: declare_schema,
    UpdateRow: update,
    DeleteRow: delete,
    ReplaceText: replace_text,
    InsertText: insert_text,
    RestoreRow: restore,
    **alias_tables.TABLE_DECIDERS,
    **batch.TABLE_DECIDERS,
    **purging.TABLE_DECIDERS,
    **scanning.TABLE_DECIDERS,
    **used_keys.TABLE_DECIDERS,
}
