"""store/readers.py: queries on threads of their own."""

import asyncio
import threading
from pathlib import Path

import apsw
import pytest

from convmem.store.readers import Readers
from convmem.store.sqlite import connect, connect_to_read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    connection = connect(tmp_path / "i.db")
    connection.execute("CREATE TABLE t (n INTEGER)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    return tmp_path / "i.db"


def count(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM t").fetchall()[0][0])


async def test_a_query_sees_what_was_committed_before_it_began(path: Path) -> None:
    readers = Readers(lambda: connect_to_read(path))
    writer = connect(path)
    assert await readers.read(count) == 1
    writer.execute("INSERT INTO t VALUES (2)")
    assert await readers.read(count) == 2
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO t VALUES (3)")
    assert await readers.read(count) == 2, "an open transaction is not visible"
    writer.execute("COMMIT")
    assert await readers.read(count) == 3
    readers.close()


async def test_a_query_sees_one_state_from_its_first_row_to_its_last(path: Path) -> None:
    readers, writer = Readers(lambda: connect_to_read(path)), connect(path)
    begun, go_on = threading.Event(), threading.Event()

    def twice(connection: apsw.Connection) -> tuple[int, int]:
        first = count(connection)
        begun.set()
        assert go_on.wait(10)
        return first, count(connection)

    reading = asyncio.ensure_future(readers.read(twice))
    assert await asyncio.to_thread(begun.wait, 10)
    writer.execute("INSERT INTO t VALUES (2)")
    go_on.set()
    assert await reading == (1, 1)
    assert await readers.read(count) == 2
    readers.close()


async def test_a_query_that_raises_leaves_its_connection_usable(path: Path) -> None:
    readers = Readers(lambda: connect_to_read(path))

    def broken(connection: apsw.Connection) -> int:
        raise KeyError("ours")

    for _ in range(4):
        with pytest.raises(KeyError):
            await readers.read(broken)
    assert await readers.read(count) == 1
    readers.close()


async def test_nobody_can_write_through_a_reader(path: Path) -> None:
    readers = Readers(lambda: connect_to_read(path))
    with pytest.raises(apsw.ReadOnlyError):
        await readers.read(lambda connection: connection.execute("DELETE FROM t").fetchall())
    readers.close()
