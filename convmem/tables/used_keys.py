"""Which table an idempotency key was first used for, by the device that used it.

A key belongs to a device and a tool, not to a table. What a `create` was answered stands with the row, in the table's
own file and transaction; here stands only the name, beside the aliases of the user. It is written first: after a crash
between the two the key is bound to a table that has no such row, and the same call made again makes it.

Rejected: to look for the key in every table (as many files as tables for each new key).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apsw

from convmem.errors import Conflict
from convmem.limits import ROW_RECEIPTS_S_MAX
from convmem.targets import TableDecider, TableFile, TableStamp

CREATE = """
CREATE TABLE IF NOT EXISTS idempotency_keys (
    device TEXT NOT NULL,
    key BLOB NOT NULL,
    table_name TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    PRIMARY KEY (device, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idempotency_keys_recorded_at ON idempotency_keys (recorded_at);
"""


@dataclass(frozen=True)
class UseKey:
    """Use a key, given as its fingerprint, for a table of this scope and name."""

    target: TableFile
    key: bytes
    table: str
    size_bytes: int = 1024


def use(connection: apsw.Connection, command: UseKey, stamp: TableStamp) -> None:
    """Bind the key to the table. Conflict if this device has used it for another."""
    device, now = stamp.origin.device, stamp.at_ms // 1000
    sql = "SELECT table_name FROM idempotency_keys WHERE device = ? AND key = ?"
    found = connection.execute(sql, (device, command.key)).fetchone()
    if found is None:
        values = (device, command.key, command.table, now)
        connection.execute("INSERT INTO idempotency_keys VALUES (?, ?, ?, ?)", values)
        connection.execute("DELETE FROM idempotency_keys WHERE recorded_at < ?", (now - ROW_RECEIPTS_S_MAX,))
    elif found[0] != command.table:
        raise Conflict("this idempotency_key was used with another table", field="idempotency_key")


TABLE_DECIDERS: Mapping[type[Any], TableDecider] = {UseKey: use}
