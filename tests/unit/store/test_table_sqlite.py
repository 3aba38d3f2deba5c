"""store/table_sqlite.py: how table files are opened, and what their errors mean to a caller."""

import os
import stat
from pathlib import Path

import apsw
import pytest

from convmem.errors import Busy, ConvmemError, StorageFault, StorageFull
from convmem.store.sqlite import DAMAGE
from convmem.store.table_sqlite import (
    ABSENT,
    OF_THE_FILE,
    connect_to_read_table,
    connect_to_table,
    identity,
    leave,
    refusal,
)

NOT_TEXT = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
# What a caller is told for each error that comes from the file.
TOLD: dict[type[Exception], type[ConvmemError]] = {
    apsw.BusyError: Busy,
    apsw.LockedError: Busy,
    apsw.FullError: StorageFull,
    **dict.fromkeys((apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError), StorageFault),
    **dict.fromkeys((apsw.ProtocolError, apsw.PermissionsError, *DAMAGE), StorageFault),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "words.db"


def test_every_error_of_a_file_has_one_meaning():
    assert set(TOLD) == set(OF_THE_FILE)
    for error, expected in TOLD.items():
        raised = NOT_TEXT if error is UnicodeDecodeError else error("said by SQLite")
        told = refusal(raised, None)
        assert type(told) is expected, error
        assert "SQLite" not in told.message
        assert "/" not in told.message


def test_a_file_is_made_for_its_owner_alone_and_promises_what_a_commit_says(path: Path):
    connection = connect_to_table(path)
    connection.execute("CREATE TABLE a (b)")
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert connection.pragma("synchronous") == 2
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("wal_autocheckpoint") == 0
    connection.close()


def test_a_file_of_another_program_gets_a_wal_and_keeps_its_rows(path: Path):
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE a (b); INSERT INTO a VALUES (1)")
    assert other.pragma("journal_mode") == "delete"
    other.close()
    connection = connect_to_table(path)
    assert connection.pragma("journal_mode") == "wal"
    assert connection.execute("SELECT b FROM a").fetchall() == [(1,)]
    connection.close()


def test_a_name_that_looks_like_an_address_is_a_name(tmp_path: Path):
    path = tmp_path / "a?mode=memory&x#%41.db"
    connection = connect_to_table(path)
    connection.execute("CREATE TABLE a (b)")
    assert path.exists()
    reading = connect_to_read_table(path, [path])
    assert reading.execute("SELECT count(*) FROM source_1.a").fetchall() == [(0,)]
    reading.close()
    connection.close()


def test_a_misspelt_name_in_double_quotes_is_an_error(path: Path):
    connection = connect_to_table(path)
    with pytest.raises(apsw.SQLError):
        connection.execute('SELECT "nothing of that name"')
    connection.close()


def test_what_is_left_stays_in_its_wal_and_what_is_closed_does_not(path: Path):
    connection = connect_to_table(path)
    connection.execute("CREATE TABLE a (b)")
    leave(connection)
    wal = Path(f"{path}-wal")
    assert wal.stat().st_size > 0
    connect_to_read_table(path).close()
    assert wal.stat().st_size > 0
    connect_to_table(path).close()
    assert not wal.exists()


def test_a_reader_makes_no_file_and_leaves_no_connection_where_it_fails(tmp_path: Path, path: Path):
    connect_to_table(path).close()
    for paths in ([tmp_path / "gone.db"], [path, tmp_path / "gone.db"]):
        with pytest.raises(apsw.CantOpenError):
            connect_to_read_table(paths[0], paths[1:])
    assert not (tmp_path / "gone.db").exists()


def test_an_identity_changes_with_the_file_and_with_its_wal(path: Path):
    assert identity(path) == identity(path / "below") == (ABSENT, ABSENT, (0, 0))
    connection = connect_to_table(path)
    connection.execute("CREATE TABLE a (b)")
    before = identity(path)
    assert ABSENT not in before
    os.rename(f"{path}-wal", f"{path}-gone")
    assert identity(path) == before._replace(wal=ABSENT)
    os.rename(f"{path}-gone", f"{path}-wal")
    assert identity(path) == before
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert identity(path)[:2] == before[:2]
    assert identity(path).content != before.content
    connection.close()
