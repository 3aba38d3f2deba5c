"""store/readers.py: queries on threads of their own."""

import asyncio
import threading
from pathlib import Path

import apsw
import pytest

from convmem.errors import DiskFault
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


def other(directory: Path, rows: int) -> Path:
    """The index of a later generation."""
    connection = connect(directory / "later.db")
    connection.execute("CREATE TABLE t (n INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(rows)])
    connection.close()
    return directory / "later.db"


class Opening:
    """Opens connections to one index and remembers them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.made: list[apsw.Connection] = []

    def __call__(self) -> apsw.Connection:
        self.made.append(connect_to_read(self.path))
        return self.made[-1]

    @property
    def open_count(self) -> int:
        count = 0
        for connection in self.made:
            try:
                connection.pragma("user_version")
                count += 1
            except apsw.ConnectionClosedError:
                pass
        return count


async def test_after_a_renewal_queries_see_the_later_index_and_nothing_keeps_the_old_one_open(path: Path) -> None:
    before, after = Opening(path), Opening(other(path.parent, 7))
    readers = Readers(before)
    assert await asyncio.gather(readers.read(count), readers.read(count)) == [1, 1]
    readers.renew(after)
    assert before.open_count == 0
    assert await readers.read(count) == 7
    assert after.open_count == 1
    readers.close()
    assert after.open_count == 0


async def test_a_query_that_runs_while_another_index_takes_over_ends_on_its_own(path: Path) -> None:
    before, after = Opening(path), Opening(other(path.parent, 7))
    readers = Readers(before)
    begun, go_on = threading.Event(), threading.Event()

    def twice(connection: apsw.Connection) -> tuple[int, int]:
        first = count(connection)
        begun.set()
        assert go_on.wait(10)
        return first, count(connection)

    reading = asyncio.ensure_future(readers.read(twice))
    assert await asyncio.to_thread(begun.wait, 10)
    readers.renew(after)
    path.unlink()
    assert await readers.read(count) == 7, "others do not wait for it"
    go_on.set()
    assert await reading == (1, 1)
    assert await readers.read(count) == 7
    assert before.open_count == 0
    readers.close()


async def test_an_index_that_goes_while_it_is_opened_is_not_the_one_that_is_read(path: Path) -> None:
    """Between finding out which index is in use and having opened it, another may have taken over."""
    later = other(path.parent, 7)
    taken_over: list[apsw.Connection] = []

    def opened_too_late() -> apsw.Connection:
        connection = connect_to_read(path)
        taken_over.append(connection)
        readers.renew(lambda: connect_to_read(later))
        return connection

    readers = Readers(opened_too_late)
    assert await readers.read(count) == 7
    with pytest.raises(apsw.ConnectionClosedError):
        taken_over[0].pragma("user_version")
    readers.close()


async def test_an_index_that_is_gone_when_it_is_opened_is_looked_for_again(path: Path) -> None:
    later = other(path.parent, 7)

    def gone() -> apsw.Connection:
        readers.renew(lambda: connect_to_read(later))
        return connect_to_read(path.parent / "removed.db")

    readers = Readers(gone)
    assert await readers.read(count) == 7
    readers.close()


async def test_an_index_in_use_that_cannot_be_opened_is_an_error(path: Path) -> None:
    readers = Readers(lambda: connect_to_read(path.parent / "removed.db"))
    with pytest.raises(DiskFault):
        await readers.read(count)
    readers.close()
