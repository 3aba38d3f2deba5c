"""store/table_store.py: one table file, its commands and everything that can be wrong with it."""

import os
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.clock import SystemClock
from convmem.errors import Busy, Conflict, NotFound, StorageFault, StorageFull
from convmem.store.store import Ticket
from convmem.store.table_store import TableStore, new_id
from convmem.targets import TableFile
from tests.support.manual_clock import ManualClock
from tests.support.stores import ORIGIN
from tests.support.toy_table import TABLES, WORD_MAX, Do, Put, Take, shelf, torn, words

Opened = tuple[TableFile, TableStore]


def open_file(path: Path) -> Opened:
    file = shelf(path)
    return file, TableStore(file, TABLES.table_deciders, ManualClock())


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    file, store = open_file(tmp_path / "words.db")
    yield file, store
    store.close()


def commit(store: TableStore, *commands: Any) -> list[Any]:
    return store.commit([Ticket(command, ORIGIN) for command in commands])


@contextmanager
def foreigner(path: Path, begin: str = "BEGIN IMMEDIATE") -> Iterator[apsw.Connection]:
    """Another program that has the file open, in a transaction."""
    connection = apsw.Connection(str(path))
    try:
        connection.execute(begin)
        yield connection
    finally:
        connection.close()


def test_what_was_answered_is_in_the_file_for_anybody(opened: Opened):
    file, store = opened
    (answer,) = commit(store, Put(file, "a", "first"))
    assert answer["version"] == 1
    assert words(file.path) == {"a": "first"}
    assert torn(file.path) == []


def test_a_command_sees_those_before_it_and_a_refusal_undoes_only_itself(opened: Opened):
    file, store = opened
    put, gone, again, too_long, last = commit(
        store,
        *(Put(file, "a", "1"), Take(file, "b"), Put(file, "a", "2"), Put(file, "c", "x" * (WORD_MAX + 1))),
        Put(file, "d", "4"),
    )
    assert (put["version"], again["version"], last["version"]) == (1, 2, 1)
    assert isinstance(gone, NotFound)
    assert isinstance(too_long, Conflict)
    assert words(file.path) == {"a": "2", "d": "4"}
    assert torn(file.path) == []


def test_a_batch_is_one_transaction_whose_commit_is_flushed(opened: Opened):
    file, store = opened
    assert store._connection.pragma("synchronous") == 2
    assert store._connection.pragma("journal_mode") == "wal"
    before = store._connection.total_changes()
    seen: list[int] = []
    store._connection.set_commit_hook(lambda: bool(seen.append(store._connection.total_changes())))
    commit(store, *(Put(file, str(number), "word") for number in range(100)))
    assert seen == [before + 200]


def test_nothing_is_seen_by_others_before_its_commit(opened: Opened):
    file, store = opened
    seen: list[dict[str, str]] = []
    commit(store, Put(file, "a", "1"), Do(file, lambda connection: seen.append(words(file.path))))
    assert seen == [{}]
    assert words(file.path) == {"a": "1"}


def test_the_lock_of_another_program_is_waited_for_and_then_busy(opened: Opened):
    file, store = opened
    with foreigner(file.path):
        outcomes = commit(store, Put(file, "a"), Put(file, "b"))
    assert [type(outcome) for outcome in outcomes] == [Busy, Busy]
    assert outcomes[0].details["retry_after_ms"] > 0
    assert not store.is_doubtful
    assert commit(store, Put(file, "a"))[0]["version"] == 1


@pytest.mark.parametrize("begin", ["BEGIN EXCLUSIVE", "BEGIN IMMEDIATE"])
def test_a_file_that_another_program_has_locked_cannot_be_opened_yet(tmp_path: Path, begin: str):
    path = tmp_path / "words.db"
    apsw.Connection(str(path)).execute("CREATE TABLE other (a)")
    with foreigner(path, begin), pytest.raises(Busy):
        open_file(path)
    open_file(path)[1].close()


def test_from_its_first_look_on_nobody_else_changes_the_file(opened: Opened):
    file, store = opened

    def look_and_change(connection: apsw.Connection) -> None:
        assert connection.execute("SELECT * FROM word").fetchall() == []
        with pytest.raises(apsw.BusyError), foreigner(file.path):
            pass
        connection.execute("INSERT INTO word VALUES ('a', '', '')")

    assert commit(store, Do(file, look_and_change)) == [None]


def test_a_reader_holds_up_no_writer(opened: Opened):
    file, store = opened
    commit(store, Put(file, "a", "1"))
    with foreigner(file.path, "BEGIN") as reader:
        assert reader.execute("SELECT word FROM word").fetchall() == [("1",)]
        assert commit(store, Put(file, "a", "2"))[0]["version"] == 2
        assert reader.execute("SELECT word FROM word").fetchall() == [("1",)]


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """A disk that takes no more: no file of this process may grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_refuses_the_batch_and_the_next_write_works_once_there_is_room(opened: Opened):
    file, store = opened
    commit(store, Put(file, "a", "1"))
    with files_no_larger_than(64 * 1024):
        outcomes = commit(store, Put(file, "b", "2"), Put(file, "c", "x" * WORD_MAX))
    assert [type(outcome) for outcome in outcomes] == [StorageFull, StorageFull]
    assert words(file.path) == {"a": "1"}
    assert not store.is_doubtful
    assert commit(store, Put(file, "b", "2"))[0]["version"] == 1
    assert torn(file.path) == []


def test_a_full_disk_is_told_from_a_broken_one(opened: Opened):
    file, store = opened
    store._connection.pragma("max_page_count", store._connection.pragma("page_count"))
    assert isinstance(commit(store, Put(file, "c", "x" * WORD_MAX))[0], StorageFull)


def damage(path: Path) -> None:
    """Overwrite every page of a closed file but the first half of the first."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(2048)
        file.write(b"\xa5" * (size - 2048))


def test_a_damaged_file_refuses_its_commands_and_stays_as_it_is(tmp_path: Path):
    file, store = open_file(tmp_path / "words.db")
    commit(store, *(Put(file, str(number), "x" * 1_000) for number in range(50)))
    store.close()
    damage(file.path)
    before = file.path.read_bytes()
    try:
        _, store = open_file(file.path)
    except StorageFault:
        pass
    else:
        assert [type(told) for told in commit(store, Put(file, "1", "y"), Put(file, "2"))] == [StorageFault] * 2
        assert store.is_doubtful
        store.close()
    assert file.path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_not_touched(tmp_path: Path):
    path = tmp_path / "words.db"
    path.write_bytes(b"these are the words of somebody" * 100)
    with pytest.raises(StorageFault):
        open_file(path)
    assert path.read_bytes() == b"these are the words of somebody" * 100
    assert [file.name for file in tmp_path.iterdir()] == ["words.db"]


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path):
    with pytest.raises(StorageFault):
        open_file(tmp_path / "gone" / "words.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_other_tables_under_these_names_is_refused(tmp_path: Path):
    path = tmp_path / "words.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE word (something)")
    connection.execute("CREATE VIEW past AS SELECT 1")
    connection.close()
    file, store = open_file(path)
    assert isinstance(commit(store, Put(file, "a"))[0], StorageFault)
    assert not store.is_doubtful
    store.close()


def test_a_refusal_to_prepare_is_told_and_leaves_nothing(tmp_path: Path):
    def refuse(connection: apsw.Connection) -> None:
        connection.execute("CREATE TABLE half (a)")
        raise Conflict("of another kind")

    file = TableFile(tmp_path / "words.db", refuse)
    with pytest.raises(Conflict):
        TableStore(file, {}, ManualClock())
    connection = apsw.Connection(str(file.path))
    assert connection.execute("SELECT * FROM sqlite_schema").fetchall() == []
    connection.close()


def user_trigger(action: str) -> Callable[[apsw.Connection], Any]:
    """What a user may have put into the file: a trigger that refuses the key `bad`."""
    return lambda connection: connection.execute(
        f"CREATE TRIGGER mine BEFORE INSERT ON past WHEN NEW.key = 'bad' BEGIN SELECT RAISE({action}, 'no'); END"
    )


@pytest.mark.parametrize("action", ["ABORT", "FAIL", "ROLLBACK"])
def test_a_trigger_of_the_users_refuses_one_command_and_takes_nobody_along(opened: Opened, action: str):
    file, store = opened
    commit(store, Do(file, user_trigger(action)))
    keys = ("a", "bad", "b", "bad", "c")
    outcomes = commit(store, *(Put(file, key, key) for key in keys), Take(file, "none"))
    assert [isinstance(told, StorageFault) for told in outcomes] == [False, True, False, True, False, False]
    assert isinstance(outcomes[-1], NotFound)
    assert "no" not in outcomes[1].message.split()
    assert words(file.path) == {"a": "a", "b": "b", "c": "c"}
    assert [outcomes[place]["version"] for place in (0, 2, 4)] == [1, 1, 1]
    assert torn(file.path) == []


def test_an_interrupted_change_takes_nobody_along(opened: Opened):
    file, store = opened

    def endless(connection: apsw.Connection) -> None:
        connection.set_progress_handler(lambda: True, 1_000)
        try:
            connection.execute(
                "INSERT INTO word SELECT value, '', '' FROM (WITH RECURSIVE n(value) AS"
                " (SELECT 1 UNION ALL SELECT value + 1 FROM n) SELECT value FROM n)"
            )
        except apsw.InterruptError as error:
            raise Conflict("it took too long") from error
        finally:
            connection.set_progress_handler(None)

    first, cut, last = commit(store, Put(file, "a"), Do(file, endless), Put(file, "b"))
    assert (first["version"], last["version"]) == (1, 1)
    assert isinstance(cut, Conflict)
    assert set(words(file.path)) == {"a", "b"}


def test_many_lost_transactions_in_one_batch_end(opened: Opened):
    file, store = opened
    commit(store, Do(file, user_trigger("ROLLBACK")))
    outcomes = commit(store, *(Put(file, "bad") for _ in range(256)))
    assert [type(told) for told in outcomes] == [StorageFault] * 256


def test_a_command_that_ends_the_transaction_is_refused(opened: Opened):
    file, store = opened
    first, told = commit(store, Put(file, "a"), Do(file, lambda connection: connection.execute("ROLLBACK")))
    assert first["version"] == 1
    assert isinstance(told, StorageFault)
    assert set(words(file.path)) == {"a"}


def test_a_fault_of_ours_undoes_the_batch_and_is_not_hidden(opened: Opened):
    file, store = opened

    def fall(connection: apsw.Connection) -> None:
        raise AssertionError("ours")

    with pytest.raises(AssertionError):
        commit(store, Put(file, "a"), Do(file, fall))
    assert words(file.path) == {}


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_what_was_written_to_a_file_without_a_name_is_not_acknowledged(opened: Opened, suffix: str):
    file, store = opened
    commit(store, Put(file, "a"))

    def take_away(connection: apsw.Connection) -> None:
        os.unlink(f"{file.path}{suffix}")

    outcomes = commit(store, Put(file, "b"), Do(file, take_away))
    assert [type(told) for told in outcomes] == [StorageFault, StorageFault]
    assert not store.is_in_place


def test_closing_leaves_one_file_and_that_of_a_replaced_one_keeps_both_whole(tmp_path: Path):
    file, store = open_file(tmp_path / "words.db")
    commit(store, Put(file, "a"))
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["words.db"]
    _, store = open_file(file.path)
    commit(store, Put(file, "b"))
    other, before = tmp_path / "other.db", tmp_path / "before.db"
    other.write_bytes(b"")
    os.link(file.path, before)
    os.replace(other, file.path)
    store.close()
    assert file.path.read_bytes() == b""
    assert words(before) == {"a": "", "b": ""}


def test_a_replaced_file_is_not_let_go_while_somebody_reads_what_it_was(tmp_path: Path):
    file, store = open_file(tmp_path / "words.db")
    commit(store, Put(file, "a"))
    other = tmp_path / "other.db"
    other.write_bytes(b"")
    with foreigner(file.path, "BEGIN") as reader:
        reader.execute("SELECT * FROM word").fetchall()
        commit(store, Put(file, "b"))
        os.replace(other, file.path)
        assert not store.part()
    assert store.part()
    assert Path(f"{file.path}-wal").stat().st_size == 0


def test_a_rest_makes_the_file_alone_whole(opened: Opened):
    file, store = opened
    commit(store, Put(file, "a", "1"))
    assert store.waiting_pages > 0
    store.rest()
    assert store.waiting_pages == 0
    copy = file.path.with_name("copy.db")
    copy.write_bytes(file.path.read_bytes())
    assert words(copy) == {"a": "1"}


def test_a_rest_waits_for_nobody_and_loses_nothing(opened: Opened):
    file, store = opened
    commit(store, Put(file, "a", "1"))
    with foreigner(file.path, "BEGIN IMMEDIATE"):
        store.rest()
    assert words(file.path) == {"a": "1"}
    assert commit(store, Put(file, "a", "2"))[0]["version"] == 2


def test_ids_of_rows_are_random_and_of_version_4():
    clock = SystemClock()
    made = {new_id(clock) for _ in range(100)}
    assert len(made) == 100
    pattern = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(pattern, text) for text in made)
