"""store/table_files.py: which files are open, and what becomes of them."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.errors import Busy, Conflict, NotFound, StorageFault
from convmem.limits import TABLE_FILES_OPEN_MAX
from convmem.store.store import Ticket
from convmem.store.table_files import TableFiles, TableReaders
from convmem.targets import TableFile
from tests.support.manual_clock import ManualClock
from tests.support.stores import ORIGIN
from tests.support.toy_table import TABLES, Do, Put, shelf, torn, words

COUNT = "SELECT count(*) FROM word"


@pytest.fixture
def tables() -> Iterator[TableFiles]:
    tables = TableFiles([TABLES], ManualClock())
    yield tables
    tables.close()


@pytest.fixture
def readers(tables: TableFiles) -> TableReaders:
    return tables.readers


def commit(tables: TableFiles, *commands: Any) -> list[Any]:
    return tables.commit(commands[0].target, [Ticket(command, ORIGIN) for command in commands])


def rows(connection: apsw.Connection, sql: str = "SELECT key, word FROM word ORDER BY key") -> list[Any]:
    return connection.execute(sql).fetchall()


def open_here(directory: Path) -> set[str]:
    """The names of the files in a directory that this process has open."""
    links = (os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
    return {os.path.basename(link) for link in links if os.path.dirname(link) == str(directory)}


def test_no_more_files_are_open_than_the_bound_and_all_are_written(tables: TableFiles, tmp_path: Path):
    files = [shelf(tmp_path / f"{number}.db") for number in range(TABLE_FILES_OPEN_MAX + 5)]
    for turn in "12":
        for file in files:
            assert commit(tables, Put(file, turn, turn))[0]["version"] == 1
    assert len({name for name in open_here(tmp_path) if name.endswith(".db")}) == TABLE_FILES_OPEN_MAX
    assert all(words(file.path) == {"1": "1", "2": "2"} for file in files)


def test_the_least_recently_used_file_is_closed_and_left_tidy(tables: TableFiles, tmp_path: Path):
    files = [shelf(tmp_path / f"{number}.db") for number in range(TABLE_FILES_OPEN_MAX)]
    for file in files:
        commit(tables, Put(file, "a"))
    commit(tables, Put(files[0], "b"))
    commit(tables, Put(shelf(tmp_path / "one more.db"), "a"))
    assert "1.db" not in open_here(tmp_path)
    assert {"0.db", "2.db", "one more.db"} <= open_here(tmp_path)
    assert [path.name for path in tmp_path.glob("1.db*")] == ["1.db"]


def test_a_file_is_prepared_once_while_it_is_open(tables: TableFiles, tmp_path: Path):
    prepared: list[str] = []
    path = tmp_path / "words.db"

    def file(name: str) -> TableFile:
        return TableFile(path, lambda connection: prepared.append(name))

    for name in "abc":
        tables.commit(
            file(name), [Ticket(Do(file(name), lambda connection: connection.pragma("user_version", 1)), ORIGIN)]
        )
        tables.rest()
    tables.release(path)
    tables.commit(file("d"), [Ticket(Do(file("d"), lambda connection: 1), ORIGIN)])
    assert prepared == ["a", "d"]


def test_a_file_that_cannot_be_opened_refuses_only_its_own_commands(tables: TableFiles, tmp_path: Path):
    (tmp_path / "bad.db").write_bytes(b"no database, but long enough to be looked at" * 50)
    bad, good = shelf(tmp_path / "bad.db"), shelf(tmp_path / "good.db")
    assert [type(told) for told in commit(tables, Put(bad, "a"), Put(bad, "b"))] == [StorageFault] * 2
    assert commit(tables, Put(good, "a"))[0]["version"] == 1
    bad.path.unlink()
    assert commit(tables, Put(bad, "a"))[0]["version"] == 1


def test_a_replaced_file_is_opened_anew_and_what_it_was_keeps_its_rows(tables: TableFiles, tmp_path: Path):
    file, other = shelf(tmp_path / "words.db"), shelf(tmp_path / "other.db")
    commit(tables, Put(other, "restored", "1"))
    tables.release(other.path)
    commit(tables, Put(file, "a", "1"))
    before = tmp_path / "before.db"
    os.link(file.path, before)
    os.replace(other.path, file.path)
    assert commit(tables, Put(file, "b", "2"))[0]["version"] == 1
    assert words(file.path) == {"restored": "1", "b": "2"}
    assert torn(file.path) == []
    assert words(before) == {"a": "1"}


def test_a_file_that_was_taken_away_under_a_batch_is_opened_anew_by_the_next(tables: TableFiles, tmp_path: Path):
    file = shelf(tmp_path / "words.db")
    (told,) = commit(tables, Do(file, lambda connection: os.unlink(file.path)))
    assert isinstance(told, StorageFault)
    assert commit(tables, Put(file, "a", "1"))[0]["version"] == 1
    assert words(file.path) == {"a": "1"}


def test_after_a_fault_of_the_disk_a_file_is_opened_anew(tables: TableFiles, tmp_path: Path):
    prepared: list[int] = []
    file = TableFile(tmp_path / "words.db", lambda connection: prepared.append(1))

    def fail(connection: apsw.Connection) -> None:
        raise apsw.IOError("the disk failed")

    (told,) = commit(tables, Do(file, fail))
    assert isinstance(told, StorageFault)
    assert commit(tables, Do(file, lambda connection: 7)) == [7]
    assert len(prepared) == 2


def test_a_fault_of_ours_leaves_files_that_can_be_closed(tables: TableFiles, tmp_path: Path):
    file = shelf(tmp_path / "words.db")

    def fall(connection: apsw.Connection) -> None:
        raise AssertionError("ours")

    with pytest.raises(AssertionError):
        commit(tables, Put(file, "a"), Do(file, fall))
    tables.close()
    assert words(file.path) == {}


def test_a_rest_leaves_every_file_whole_by_itself(tables: TableFiles, tmp_path: Path):
    files = [shelf(tmp_path / f"{number}.db") for number in range(3)]
    for file in files:
        commit(tables, Put(file, "a", "1"))
    assert tables.waiting_pages > 0
    tables.rest()
    assert tables.waiting_pages == 0
    for file in files:
        copy = shutil.copyfile(file.path, file.path.with_suffix(".copy"))
        assert words(copy) == {"a": "1"}


def test_a_reader_sees_what_is_acknowledged_and_reuses_its_connection(
    tables: TableFiles, readers: TableReaders, tmp_path: Path
):
    file = shelf(tmp_path / "words.db")
    seen: list[apsw.Connection] = []
    for number in range(3):
        commit(tables, Put(file, str(number), "word"))
        assert len(readers.read([file.path], rows)) == number + 1
        readers.read([file.path], seen.append)
    assert seen[0] is seen[1] is seen[2]


def test_a_question_sees_one_moment_while_the_writer_goes_on(tables: TableFiles, readers: TableReaders, tmp_path: Path):
    file = shelf(tmp_path / "words.db")
    commit(tables, Put(file, "a"))

    def twice(connection: apsw.Connection) -> tuple[list[Any], list[Any]]:
        before = rows(connection)
        commit(tables, Put(file, "b"))
        return before, rows(connection)

    before, after = readers.read([file.path], twice)
    assert before == after == [("a", "")]
    assert len(readers.read([file.path], rows)) == 2


def test_a_question_may_span_files(tables: TableFiles, readers: TableReaders, tmp_path: Path):
    files = [shelf(tmp_path / f"{number} ?#%.db") for number in range(10)]
    for number, file in enumerate(files):
        commit(tables, Put(file, "a", str(number)))
    sql = "SELECT word FROM word" + "".join(f" UNION ALL SELECT word FROM source_{n}.word" for n in range(1, 8))
    found = readers.read([file.path for file in files[:8]], rows, sql)
    assert [word for (word,) in found] == [str(number) for number in range(8)]


def test_a_question_cannot_write(tables: TableFiles, readers: TableReaders, tmp_path: Path):
    files = [shelf(tmp_path / f"{number}.db") for number in range(2)]
    for file in files:
        commit(tables, Put(file, "a"))
    for table in ("main.word", "source_1.word"):
        with pytest.raises(StorageFault):
            readers.read([file.path for file in files], rows, f"DELETE FROM {table}")
    assert readers.read([files[1].path], rows) == [("a", "")]


def test_a_read_writes_nothing_but_memory_for_locks(tables: TableFiles, readers: TableReaders, tmp_path: Path):
    file = shelf(tmp_path / "words.db")
    commit(tables, Put(file, "a"))
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{file.path}{suffix}", crashed / f"words.db{suffix}")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in crashed.iterdir()}
    assert readers.read([crashed / "words.db"], rows) == [("a", "")]
    readers.close()
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in crashed.iterdir() if path in before}
    assert after == before
    assert {path.name for path in crashed.iterdir()} - {path.name for path in before} <= {"words.db-shm"}


def test_a_question_goes_to_the_file_that_has_the_name_now(tables: TableFiles, readers: TableReaders, tmp_path: Path):
    file, other = shelf(tmp_path / "words.db"), shelf(tmp_path / "other.db")
    commit(tables, Put(file, "old"))
    commit(tables, Put(other, "new"))
    assert readers.read([file.path], rows) == [("old", "")]
    tables.release(other.path)
    os.replace(other.path, file.path)
    assert readers.read([file.path], rows) == [("new", "")]
    commit(tables, Put(file, "newer"))
    assert readers.read([file.path], rows) == [("new", ""), ("newer", "")]
    assert torn(file.path) == []


@pytest.mark.parametrize("before", ["as it is", "at rest", "closed"])
def test_a_replaced_file_is_busy_while_what_it_was_is_still_read(
    tables: TableFiles, readers: TableReaders, tmp_path: Path, before: str
):
    file, other = shelf(tmp_path / "words.db"), shelf(tmp_path / "other.db")
    commit(tables, Put(file, "old"))
    commit(tables, Put(other, "new"))
    tables.release(other.path)

    if before != "as it is":
        tables.rest()

    def replace(connection: apsw.Connection) -> list[Any]:
        rows(connection)
        if before == "closed":
            assert not tables.release(file.path)
        os.replace(other.path, file.path)
        with pytest.raises(Busy):
            readers.read([file.path], rows)
        assert [type(told) for told in commit(tables, Put(file, "b"))] == [Busy]
        return rows(connection)

    assert readers.read([file.path], replace) == [("old", "")]
    assert readers.read([file.path], rows) == [("new", "")]
    assert commit(tables, Put(file, "b"))[0]["version"] == 1
    assert torn(file.path) == []


def test_what_is_copied_over_a_file_that_is_only_read_is_read(
    tables: TableFiles, readers: TableReaders, tmp_path: Path
):
    file, backup = shelf(tmp_path / "words.db"), tmp_path / "backup.db"
    commit(tables, Put(file, "old"))
    tables.rest()
    shutil.copyfile(file.path, backup)
    commit(tables, Put(file, "new"))
    for number in range(TABLE_FILES_OPEN_MAX):
        assert len(readers.read([file.path], rows)) == 2
        commit(tables, Put(shelf(tmp_path / f"{number}.db"), "a"))
    assert Path(f"{file.path}-wal").stat().st_size == 0, "closed, and yet not whole by itself"
    assert len(readers.read([file.path], rows)) == 2
    shutil.copyfile(backup, file.path)
    assert readers.read([file.path], rows) == [("old", "")]


@pytest.mark.parametrize("is_read_first", [True, False])
def test_what_is_copied_over_a_file_at_rest_is_what_the_table_holds(
    tables: TableFiles, readers: TableReaders, tmp_path: Path, is_read_first: bool
):
    file, backup = shelf(tmp_path / "words.db"), tmp_path / "backup.db"
    commit(tables, *(Put(file, f"old {number}", "x" * 1_000) for number in range(50)))
    tables.rest()
    shutil.copyfile(file.path, backup)
    commit(tables, *(Put(file, f"new {number}", "y" * 1_000) for number in range(500)))
    assert len(readers.read([file.path], rows)) == 550
    tables.rest()
    shutil.copyfile(backup, file.path)
    if is_read_first:
        assert len(readers.read([file.path], rows)) == 50
    assert commit(tables, Put(file, "more"))[0]["version"] == 1
    assert torn(file.path) == []
    assert len(words(file.path)) == 51
    assert len(readers.read([file.path], rows)) == 51


def test_a_wal_that_was_removed_costs_nothing_that_was_acknowledged_before(tables: TableFiles, tmp_path: Path):
    file = shelf(tmp_path / "words.db")
    commit(tables, Put(file, "a", "1"))
    os.unlink(f"{file.path}-wal")
    assert commit(tables, Put(file, "b", "2"))[0]["version"] == 1
    assert words(file.path) == {"a": "1", "b": "2"}
    assert torn(file.path) == []


def test_questions_that_fail_say_why_and_harm_no_other(tables: TableFiles, readers: TableReaders, tmp_path: Path):
    good, gone, locked = (shelf(tmp_path / f"{name}.db") for name in ("good", "gone", "locked"))
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"\xa5" * 8192)
    commit(tables, Put(good, "a"))
    connection = apsw.Connection(str(locked.path))
    connection.execute("CREATE TABLE word (key, word)")
    connection.execute("BEGIN EXCLUSIVE")
    for path, error in ((gone.path, StorageFault), (bad, StorageFault), (locked.path, Busy)):
        with pytest.raises(error):
            readers.read([path], rows)
        with pytest.raises(error):
            readers.read([good.path, path], rows)
    assert not gone.path.exists()
    assert all(readers.release(path) for path in (gone.path, bad, locked.path)), "nobody reads these"
    connection.execute("COMMIT")
    connection.close()
    assert readers.read([locked.path], rows) == []
    assert readers.read([good.path], rows) == [("a", "")]


def test_a_question_that_is_refused_by_its_domain_leaves_no_connection_behind(
    tables: TableFiles, readers: TableReaders, tmp_path: Path
):
    file = shelf(tmp_path / "words.db")
    commit(tables, Put(file, "a"))
    tables.close()

    def refuse(connection: apsw.Connection) -> None:
        rows(connection)
        raise NotFound("no such row")

    with pytest.raises(NotFound):
        readers.read([file.path], refuse)
    assert open_here(tmp_path) == set()


def test_readers_keep_no_more_files_open_than_the_bound(tables: TableFiles, readers: TableReaders, tmp_path: Path):
    files = [shelf(tmp_path / f"{number}.db") for number in range(TABLE_FILES_OPEN_MAX + 4)]
    for file in files:
        commit(tables, Put(file, "a"))
    tables.close()
    for file in files:
        readers.read([file.path], rows)
    readers.read([file.path for file in files[:4]], rows)
    assert len({name for name in open_here(tmp_path) if name.endswith(".db")}) <= TABLE_FILES_OPEN_MAX
    readers.release(files[0].path)
    assert "0.db" not in open_here(tmp_path)
    readers.close()
    assert open_here(tmp_path) == set()


def test_a_crowd_of_readers_beside_the_writer_sees_only_whole_commands(
    tables: TableFiles, readers: TableReaders, tmp_path: Path
):
    file = shelf(tmp_path / "words.db")
    commit(tables, Put(file, "0"))
    is_over = threading.Event()
    seen: list[tuple[int, int]] = []

    def look() -> None:
        while not is_over.is_set():
            (both,) = readers.read([file.path], rows, "SELECT (SELECT count(*) FROM word), (SELECT count(*) FROM past)")
            seen.append(both)

    crowd = [threading.Thread(target=look) for _ in range(4)]
    for thread in crowd:
        thread.start()
    for number in range(1, 100):
        commit(tables, Put(file, str(number)), Put(file, "x" * 10, "y" * 100_001))
    is_over.set()
    for thread in crowd:
        thread.join(10)
    assert len(set(seen)) > 1
    assert all(word == past for word, past in seen)


def test_a_refusal_of_the_domain_to_prepare_is_the_outcome_of_all(tables: TableFiles, tmp_path: Path):
    def refuse(connection: apsw.Connection) -> None:
        raise Conflict("of another kind")

    file = TableFile(tmp_path / "words.db", refuse)
    outcomes = tables.commit(file, [Ticket(Put(file, "a"), ORIGIN)] * 2)
    assert [type(told) for told in outcomes] == [Conflict, Conflict]
    assert "words.db" not in open_here(tmp_path)


@pytest.mark.parametrize("when", ["before", "under the batch"])
@pytest.mark.parametrize("what", ["the file", "its directory"])
def test_nothing_is_followed_that_has_become_a_link(
    tables: TableFiles, readers: TableReaders, tmp_path: Path, what: str, when: str
):
    directory = tmp_path / "words"
    directory.mkdir()
    file = shelf(directory / "words.db")
    commit(tables, Put(file, "a"))
    assert readers.read([file.path], rows) == [("a", "")]

    def link(connection: apsw.Connection | None = None) -> None:
        place = file.path if what == "the file" else directory
        os.rename(place, tmp_path / "away")
        place.symlink_to(tmp_path / "away")

    if when == "before":
        link()
    else:
        assert isinstance(commit(tables, Do(file, link))[0], StorageFault)
    with pytest.raises(StorageFault, match="link"):
        readers.read([file.path], rows)
    (told,) = commit(tables, Put(file, "b"))
    assert isinstance(told, StorageFault)
    assert "link" in told.message
    tables.release(file.path)
    assert words(tmp_path / "away" if what == "the file" else tmp_path / "away" / "words.db") == {"a": ""}
