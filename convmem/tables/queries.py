"""What a table's file knows, one question a function: rows by id or by its beginning, receipts, totals.

An id of 36 characters is exact, a shorter one is the beginning of one. Ids are made in lower case, so a beginning is
looked for so; files of others may hold other ids, which are found whole.
"""

from typing import NamedTuple

import apsw

from convmem import strict_json
from convmem.errors import AmbiguousId, NotFound, StorageFault
from convmem.limits import ID_CANDIDATES_MAX
from convmem.tables.model import Row

ID_LENGTH = 36
COLUMNS = "id, data, created_at, updated_at"
# Behind all characters that ids consist of.
_BEHIND = "g"
HISTORY_TIERS = ("_row_history", "_row_history_archive")


class Stored(NamedTuple):
    """A row, and its data as the file holds it."""

    row: Row
    data_json: str


class Receipt(NamedTuple):
    """What a `create` under a key was answered."""

    arguments: bytes
    row_id: str
    version: int | None
    recorded_at: int
    sha256: bytes


def read_row(connection: apsw.Connection, given: str) -> Stored:
    """The row that an id or the beginning of one means. NotFound, AmbiguousId; StorageFault if it holds no JSON."""
    return read_exactly(connection, full_id(connection, given))


def read_exactly(connection: apsw.Connection, row_id: str) -> Stored:
    """The row of a whole id, likewise."""
    found = read_if_there(connection, row_id)
    if found is None:
        raise _not_found()
    return found


def read_if_there(connection: apsw.Connection, row_id: str) -> Stored | None:
    """The row of a whole id, None if it is gone. StorageFault if it holds no JSON."""
    try:
        found = connection.execute(f"SELECT {COLUMNS} FROM rows WHERE id = ?", (row_id,)).fetchone()
    except UnicodeDecodeError:
        raise StorageFault("a row of the table holds a text that is no UTF-8") from None
    return None if found is None else _stored(found)


def read_raw(connection: apsw.Connection, row_id: str) -> str | None:
    """The data of a row as the file holds it, whatever that is; None if the row is gone."""
    found = connection.execute("SELECT data FROM rows WHERE id = ?", (row_id,)).fetchone()
    return None if found is None else str(found[0])


def full_id(connection: apsw.Connection, given: str) -> str:
    """The whole id of the row that is meant. NotFound, AmbiguousId."""
    return _one(connection, "SELECT id FROM rows", (), given)


def full_id_of_history(connection: apsw.Connection, table: str, given: str) -> str:
    """The same among all rows that are there or of which history is kept."""
    of_history = (f"SELECT row_id AS id FROM {tier} WHERE table_name = ?" for tier in HISTORY_TIERS)
    return _one(connection, " UNION ".join(("SELECT id FROM rows", *of_history)), (table,) * len(HISTORY_TIERS), given)


def _one(connection: apsw.Connection, ids: str, bindings: tuple[str, ...], given: str) -> str:
    if len(given) == ID_LENGTH:
        for exact in (given, given.lower()):
            if connection.execute(f"SELECT 1 FROM ({ids}) WHERE id = ?", (*bindings, exact)).fetchone():
                return exact
        raise _not_found()
    start = given.lower()
    # As bytes: an id that is no UTF-8, which only another program can have put there, is nobody's to name.
    sql = f"SELECT CAST(id AS BLOB) FROM ({ids}) WHERE id >= ? AND id < ? ORDER BY id"
    found = (row[0] for row in connection.execute(sql, (*bindings, start, start + _BEHIND)))
    candidates: list[str] = [text for data in found if (text := _text(data)) is not None]
    if not candidates:
        raise _not_found()
    if len(candidates) > 1:
        raise AmbiguousId(
            "several rows have an id that begins so; give more of it",
            matches=len(candidates),
            candidates=candidates[:ID_CANDIDATES_MAX],
        )
    return candidates[0]


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def count_rows(connection: apsw.Connection) -> int:
    """How many rows there are."""
    row = connection.execute("SELECT count(*) FROM rows").fetchone()
    assert row is not None
    return int(row[0])


def read_receipt(connection: apsw.Connection, device: str, key: bytes) -> Receipt | None:
    """What a device was answered under a key."""
    row = connection.execute(
        "SELECT arguments, row_id, version, recorded_at, sha256 FROM _receipts WHERE device = ? AND key = ?",
        (device, key),
    ).fetchone()
    return None if row is None else Receipt(*row)


def _stored(found: tuple[str, str, int, int]) -> Stored:
    row_id, text, created_at, updated_at = found
    return Stored(Row(id=row_id, data=read_data(text), created_at=created_at, updated_at=updated_at), text)


def read_data(text: object) -> dict[str, object]:
    """The data of a row as the file holds it. StorageFault if another program put something else there."""
    try:
        value = strict_json.parse(text.encode()) if isinstance(text, str) else None
    except (strict_json.MalformedJSON, UnicodeEncodeError):
        value = None
    if not isinstance(value, dict):
        raise StorageFault("a row of the table holds something else than a JSON object")
    return value


def _not_found() -> NotFound:
    return NotFound("there is no row of this id", field="id")
