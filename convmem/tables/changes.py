"""One row changed, with its history, in the transaction that is open: the statements that every change is made of.

What is stored has been checked against the schema before it comes here. A change that changes nothing is a change all
the same: who replaces a row by itself finds a version for it.
"""

from typing import Any, NamedTuple

import apsw

from convmem.errors import Conflict
from convmem.tables import data as row_data
from convmem.tables import history
from convmem.tables.chunks import Op
from convmem.tables.cleaning import cleaned
from convmem.tables.model import Row
from convmem.tables.queries import Stored
from convmem.tables.scanning import Mount
from convmem.targets import TableStamp


class Changed(NamedTuple):
    """A row as it is now, and its version; None if the table keeps no history."""

    row: Row
    version: int | None


def seconds(stamp: TableStamp) -> int:
    """The time of a command in Unix seconds."""
    return stamp.at_ms // 1000


def refuse_if_changed(stored: Stored, expected_sha256: str | None) -> None:
    """Conflict if the row is not the one that the caller knows."""
    if expected_sha256 is not None:
        current = row_data.sha256(stored.row.data)
        if current != expected_sha256:
            raise Conflict("the row changed since it was read", current_sha256=current)


def insert(
    connection: apsw.Connection,
    mount: Mount,
    stamp: TableStamp,
    data: dict[str, Any],
    *,
    row_id: str | None = None,
    created_at: int | None = None,
) -> Changed:
    """Add a row of checked data, under a new id unless one is given."""
    now, data = seconds(stamp), as_stored(mount, data)
    row = Row(
        id=row_id or stamp.new_id(), data=data, created_at=now if created_at is None else created_at, updated_at=now
    )
    text = row_data.stored(data).decode()
    connection.execute("INSERT INTO rows VALUES (?, ?, ?, ?)", (row.id, text, row.created_at, row.updated_at))
    op: Op = "create" if row_id is None else "update"
    return Changed(row, record(connection, mount, stamp, row.id, op, text, None))


def replace(
    connection: apsw.Connection, mount: Mount, stamp: TableStamp, stored: Stored, data: dict[str, Any]
) -> Changed:
    """Let a row hold other checked data."""
    data = as_stored(mount, data)
    row = Row(id=stored.row.id, data=data, created_at=stored.row.created_at, updated_at=seconds(stamp))
    text = row_data.stored(data).decode()
    connection.execute("UPDATE rows SET data = ?, updated_at = ? WHERE id = ?", (text, row.updated_at, row.id))
    return Changed(row, record(connection, mount, stamp, row.id, "update", text, stored.data_json))


def as_stored(mount: Mount, data: dict[str, Any]) -> dict[str, Any]:
    """What of checked data is stored."""
    return row_data.checked(mount.schema, cleaned(data)) if mount.redacts else data


def delete(connection: apsw.Connection, mount: Mount, stamp: TableStamp, stored: Stored) -> int | None:
    """Take a row away; the version that says so, None if the table keeps no history."""
    connection.execute("DELETE FROM rows WHERE id = ?", (stored.row.id,))
    return record(connection, mount, stamp, stored.row.id, "delete", None, stored.data_json)


def record(
    connection: apsw.Connection,
    mount: Mount,
    stamp: TableStamp,
    row_id: str,
    op: Op,
    data_json: str | None,
    prev_data_json: str | None,
) -> int | None:
    """Write a change of a row down, if its table keeps history; the version."""
    if mount.schema.history == "off":
        return None
    return history.append(
        connection,
        mount.table,
        row_id,
        op,
        data_json,
        prev_data_json,
        stamp.origin,
        seconds(stamp),
        keeping=mount.keeping,
    )
