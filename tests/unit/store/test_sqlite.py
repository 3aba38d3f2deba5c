"""store/sqlite.py: the index's connection and the row that says how far it has come."""

from pathlib import Path

import apsw
import pytest

from convmem.domain import Domain
from convmem.store.log import Position
from convmem.store.made import Made
from convmem.store.sqlite import Index, connect, connect_to_build, connect_to_read, read_state, shape
from tests.support.notebook import NOTEBOOK

OTHER = Domain(name="other", create="CREATE TABLE other_thing (a INTEGER) STRICT", deciders={}, appliers={})


def index(path: Path) -> Index:
    return Index(connect(path), [NOTEBOOK], fresh_generation=1)


def test_the_shape_changes_with_every_create_statement() -> None:
    assert shape([NOTEBOOK]) != shape([OTHER])
    assert shape([NOTEBOOK, OTHER]) != shape([NOTEBOOK])
    assert shape([NOTEBOOK]) == shape([NOTEBOOK])


def test_the_state_row_moves_with_its_transaction(tmp_path: Path) -> None:
    one = index(tmp_path / "i.db")
    one.begin()
    one.move(Position(0, 1), Position(100, 4), Made("A"))
    one.rollback()
    assert one.state.end == Position(0, 1)
    with one.transaction():
        one.move(Position(0, 1), Position(100, 4), Made("B"))
    found = read_state(connect_to_read(tmp_path / "i.db"), shape([NOTEBOOK]))
    assert found == one.state
    assert found is not None
    assert (found.witness.has_seen(99), found.witness.has_seen(100), found.made.last_id) == (True, False, "B")


def test_a_transaction_that_raises_leaves_nothing(tmp_path: Path) -> None:
    one = index(tmp_path / "i.db")

    def half() -> None:
        with one.transaction():
            one.move(Position(0, 1), Position(100, 4), Made("B"))
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert not one.connection.in_transaction
    assert one.state.end == Position(0, 1)
    assert read_state(one.connection, shape([NOTEBOOK])) == one.state


def test_a_database_that_is_no_index_has_no_state() -> None:
    assert read_state(connect(":memory:"), shape([NOTEBOOK])) is None
    connection = connect(":memory:")
    connection.execute("CREATE TABLE store_state (something INTEGER)")
    assert read_state(connection, shape([NOTEBOOK])) is None


def test_making_tables_anew_drops_what_was_there() -> None:
    one = Index(connect(":memory:"), [OTHER], fresh_generation=3)
    one.connection.execute("INSERT INTO other_thing VALUES (1)")
    with one.transaction():
        one.create(4)
    assert one.connection.execute("SELECT count(*) FROM other_thing").fetchall() == [(0,)]
    assert one.state.generation == 4


def test_a_misspelt_column_in_double_quotes_is_an_error() -> None:
    with pytest.raises(apsw.SQLError):
        connect(":memory:").execute('SELECT "no such column"')


def test_pages_that_wait_are_counted_and_a_checkpoint_moves_them(tmp_path: Path) -> None:
    one = index(tmp_path / "i.db")
    for _ in range(50):
        with one.transaction():
            one.connection.execute("INSERT INTO notes_note VALUES ('a', 1, 1, 'd', ?, 0)", ("x" * 5_000,))
    one.count()
    assert one.waiting_pages >= 50
    assert one.counters.flushes == 0
    one.checkpoint()
    assert one.waiting_pages == 0
    assert one.counters.flushes == 2
    assert one.counters.bytes >= 50 * 5_000
    assert one.counters.writes == 51


def test_pages_that_a_reader_needs_wait_for_the_next_checkpoint(tmp_path: Path) -> None:
    one = index(tmp_path / "i.db")
    one.checkpoint()
    reader = connect_to_read(tmp_path / "i.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM notes_note").fetchall()
    with one.transaction():
        one.connection.execute("INSERT INTO notes_note VALUES ('a', 1, 1, 'd', ?, 0)", ("x" * 5_000,))
    one.checkpoint()
    assert one.waiting_pages > 0
    reader.execute("ROLLBACK")
    one.checkpoint()
    assert one.waiting_pages == 0


def test_a_connection_that_builds_leaves_nothing_beside_its_file(tmp_path: Path) -> None:
    connection = connect_to_build(tmp_path / "i.db")
    connection.execute("CREATE TABLE t (n)")
    with connection:
        connection.execute("INSERT INTO t VALUES (1)")
        assert [path.name for path in tmp_path.iterdir()] == ["i.db"]
    connection.close()


def test_an_index_that_is_abandoned_does_not_fold_its_wal_in(tmp_path: Path) -> None:
    one = index(tmp_path / "i.db")
    with one.transaction():
        one.connection.execute("INSERT INTO notes_note VALUES ('a', 1, 1, 'd', ?, 0)", ("x" * 5_000,))
    before = (tmp_path / "i.db").read_bytes()
    one.abandon()
    assert (tmp_path / "i.db").read_bytes() == before
