"""A key belongs to the device and the table that used it first, for as long as receipts are kept."""

from pathlib import Path

import apsw
import pytest

from convmem.domain import Origin
from convmem.errors import Conflict
from convmem.limits import ROW_RECEIPTS_S_MAX
from convmem.tables import alias_tables, used_keys
from convmem.tables.used_keys import UseKey
from convmem.targets import TableStamp


@pytest.fixture
def file(tmp_path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(tmp_path / "_global.db"))
    alias_tables.prepare(connection)
    return connection


def use(file: apsw.Connection, table: str, *, key: bytes = b"k", device: str = "local", at_s: int = 1_000) -> None:
    stamp = TableStamp(at_s * 1000, Origin(device, "test"), str)
    used_keys.use(file, UseKey(alias_tables.alias_file(Path("_global.db")), key, table), stamp)


def test_a_key_is_for_one_table_of_a_device(file: apsw.Connection):
    for _ in range(2):
        use(file, "user/notes")
    with pytest.raises(Conflict) as caught:
        use(file, "project/notes")
    assert caught.value.details["field"] == "idempotency_key"
    use(file, "project/notes", device="laptop")
    use(file, "project/notes", key=b"another")


def test_a_key_is_forgotten_once_no_receipt_is_kept_so_long(file: apsw.Connection):
    use(file, "user/notes")
    use(file, "user/notes", key=b"later", at_s=1_000 + ROW_RECEIPTS_S_MAX)
    with pytest.raises(Conflict):
        use(file, "user/second")
    use(file, "user/notes", key=b"last", at_s=1_001 + ROW_RECEIPTS_S_MAX)
    use(file, "user/second", at_s=1_001 + ROW_RECEIPTS_S_MAX)
