"""store/table_vacuum: what is dead in a table's file is in no byte of it afterwards, and nothing is left beside it."""

import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from convmem.errors import Busy, Stopping, StorageFault, StorageFull
from convmem.store import table_vacuum
from convmem.store.table_sqlite import connect_to_table

NEEDLE = "needle in a haystack "


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 30 MB, more than SQLite keeps in memory, half of which is dead."""
    path = tmp_path / "its own" / "t'able.db"
    path.parent.mkdir()
    connection = connect_to_table(path)
    connection.execute("CREATE TABLE kept (text); CREATE TABLE done (at)")
    for number in range(240):
        connection.execute("INSERT INTO kept VALUES (?)", ((NEEDLE if number % 2 else "straw ") * 20_000,))
    connection.execute("DELETE FROM kept WHERE text LIKE 'needle%'")
    connection.close()
    return path


def rewrite(path: Path, begin: Callable[[apsw.Connection], Callable[[], object]], *, stops: bool = False) -> None:
    table_vacuum.rewrite(path, begin, is_stopped=lambda: stops)


def finished(connection: apsw.Connection) -> Callable[[], object]:
    return lambda: connection.execute("INSERT INTO done VALUES (1)")


def read(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def holds_needles(path: Path) -> bool:
    return any(NEEDLE.encode() in beside.read_bytes() for beside in path.parent.iterdir())


def test_what_is_dead_is_in_no_byte_and_the_rest_is_as_it_was(path: Path):
    assert holds_needles(path)
    size = path.stat().st_size
    rewrite(path, finished)
    assert not holds_needles(path)
    assert path.stat().st_size < size * 0.6
    assert read(path, "SELECT count(*), min(text) FROM kept") == [(120, "straw " * 20_000)]
    assert read(path, "SELECT at FROM done") == [(1,)]
    assert [beside.name for beside in path.parent.iterdir()] == [path.name]


def test_what_is_built_meanwhile_stands_without_a_name_beside_the_file(path: Path, monkeypatch: pytest.MonkeyPatch):
    seen: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            for descriptor in os.listdir("/proc/self/fd"):
                try:
                    seen.add(os.readlink(f"/proc/self/fd/{descriptor}"))
                except OSError:
                    continue

    monkeypatch.setenv("SQLITE_TMPDIR", "/nowhere")
    looking = threading.Thread(target=look)
    looking.start()
    try:
        # Until it was seen: who looks may be late.
        for _ in range(50):
            rewrite(path, finished)
            if any(name.endswith(" (deleted)") and name.startswith(str(path.parent)) for name in seen):
                break
        else:
            raise AssertionError(seen)
    finally:
        ended.set()
        looking.join()
    assert not any("etilqs" in name.removesuffix(" (deleted)") and str(path.parent) not in name for name in seen)
    # Nobody else's temporary files go there afterwards.
    assert read(path, "PRAGMA temp_store_directory") == []


def test_without_room_for_it_nothing_is_begun(path: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.statvfs(path.parent)
    little = os.statvfs_result((real.f_bsize, 1, 1000, 1000, 1000, *tuple(real)[5:]))
    monkeypatch.setattr(table_vacuum.os, "statvfs", lambda _: little)
    before = path.read_bytes()
    with pytest.raises(StorageFull, match=r"[0-9]+ bytes must be free"):
        rewrite(path, finished)
    assert path.read_bytes() == before
    assert read(path, "SELECT * FROM done") == []


def test_a_disk_that_takes_no_more_leaves_the_file_as_it_was(path: Path):
    kept = read(path, "SELECT count(*), sum(length(text)) FROM kept")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    try:
        with pytest.raises((StorageFull, StorageFault)):
            rewrite(path, finished)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert read(path, "SELECT count(*), sum(length(text)) FROM kept") == kept
    assert read(path, "SELECT * FROM done") == []
    rewrite(path, finished)
    assert not holds_needles(path)


def test_a_disk_that_is_full_in_the_end_gets_back_what_was_written_for_nothing(path: Path, tmp_path: Path):
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    rewrite(copy, finished)
    # As much as the temporary file takes, and less than the WAL, which holds a header for each page.
    limit = copy.stat().st_size + 64 * 1024
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    other = apsw.Connection(str(path))
    other.execute("SELECT count(*) FROM done").fetchall()
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
    try:
        with pytest.raises(StorageFull):
            rewrite(path, finished)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.with_name(f"{path.name}-wal").stat().st_size == 0
    other.close()


def test_somebody_who_reads_to_an_end_is_waited_for(path: Path):
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM kept").fetchall()
    ending = threading.Timer(0.5, reader.execute, ("COMMIT",))

    def begin(connection: apsw.Connection) -> Callable[[], object]:
        ending.start()
        return finished(connection)

    rewrite(path, begin)
    ending.join()
    reader.close()
    assert not holds_needles(path)


def test_somebody_who_reads_meanwhile_puts_it_off_and_it_is_not_said_to_be_done(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(table_vacuum, "QUERY_MS_MAX", 50)
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM kept").fetchall()
    with pytest.raises(Busy):
        rewrite(path, finished)
    reader.execute("COMMIT")
    reader.close()
    assert read(path, "SELECT * FROM done") == []
    rewrite(path, finished)
    assert not holds_needles(path)


def test_a_file_that_is_none_is_refused(tmp_path: Path):
    path = tmp_path / "t.db"
    path.write_bytes(b"no database at all, but long enough to look like one" * 100)
    with pytest.raises(StorageFault):
        rewrite(path, finished)
    assert path.read_bytes().startswith(b"no database")


def test_a_stop_is_not_held_up_and_leaves_the_file_as_it_was(path: Path):
    kept = read(path, "SELECT count(*), sum(length(text)) FROM kept")
    with pytest.raises(Stopping):
        rewrite(path, finished, stops=True)
    assert read(path, "SELECT count(*), sum(length(text)) FROM kept") == kept
    assert read(path, "SELECT * FROM done") == []
    rewrite(path, finished)
    assert not holds_needles(path)


def test_a_file_that_does_not_say_what_is_looked_for_is_refused(path: Path):
    with pytest.raises(StorageFault):
        rewrite(path, lambda connection: connection.execute("SELECT * FROM nothing").fetchall)
    rewrite(path, finished)
    assert not holds_needles(path)
