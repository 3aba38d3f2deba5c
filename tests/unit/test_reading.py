"""What the readers see: one generation's index, its tables of search if they are offered, and nothing that is stale."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.files import RealFiles
from convmem.reading import Reading
from convmem.store.sqlite import connect


def database(path: Path, value: str) -> Path:
    connection = connect(path)
    connection.execute("CREATE TABLE seen (value TEXT); CREATE TABLE store_state (end_offset INTEGER)")
    connection.execute("INSERT INTO seen VALUES (?)", (value,))
    connection.close()
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for kind in ("index", "search"):
        for generation in (1, 2):
            database(tmp_path / f"{kind}-{generation}.db", f"{kind} {generation}")
    return tmp_path


class Doubts:
    def __init__(self) -> None:
        self.told: list[tuple[int, str]] = []

    def __call__(self, generation: int, why: str) -> None:
        self.told.append((generation, why))


def seen(connection: apsw.Connection, *schemas: str) -> list[Any]:
    return [connection.execute(f"SELECT value FROM {schema}.seen").fetchone() for schema in schemas]


async def test_tables_of_search_are_seen_once_they_are_offered(directory: Path):
    reading = Reading(RealFiles(directory), 1, Doubts())
    assert await reading.readers.read(seen, "main") == [("index 1",)]
    assert await reading.search(seen, "main", "search") is None
    reading.offer(1, has_search=True)
    assert await reading.search(seen, "main", "search") == [("index 1",), ("search 1",)]
    reading.offer(1, has_search=False)
    assert await reading.search(seen, "main", "search") is None
    reading.close()


async def test_another_generation_brings_its_own_tables_and_an_offer_for_the_old_one_is_too_late(directory: Path):
    reading = Reading(RealFiles(directory), 1, Doubts())
    reading.renew(2, has_search=True)
    reading.offer(1, has_search=False)
    assert await reading.search(seen, "main", "search") == [("index 2",), ("search 2",)]
    reading.close()


@pytest.mark.parametrize("damage", ["gone", "not a database", "without its tables"])
async def test_tables_that_cannot_be_used_are_doubted_and_everything_else_is_read(directory: Path, damage: str):
    path = directory / "search-1.db"
    if damage == "gone":
        path.unlink()
    elif damage == "not a database":
        path.write_bytes(b"no" * 5_000)
    else:
        path.unlink()
        connect(path).close()
    doubts = Doubts()
    reading = Reading(RealFiles(directory), 1, doubts)
    reading.offer(1, has_search=True)
    assert await reading.search(seen, "main", "search") is None
    assert {generation for generation, _ in doubts.told} == {1}
    assert await reading.readers.read(seen, "main") == [("index 1",)]
    reading.close()


async def test_a_snapshot_is_of_the_generation_in_use(directory: Path):
    reading = Reading(RealFiles(directory), 1, Doubts())
    told = iter([1, 2, 2, 2])
    connection = reading.snapshot(lambda: next(told))
    assert seen(connection, "main") == [("index 2",)]
    connection.close()
    (directory / "index-1.db").unlink()
    with pytest.raises(apsw.CantOpenError):
        reading.snapshot(lambda: 1)
    reading.close()
