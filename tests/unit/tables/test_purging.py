"""Purging: what goes is gone from both tiers, what stays says what it said, and no version is given twice."""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.clock import SystemClock
from convmem.domain import Origin
from convmem.tables import chunks, create, history
from convmem.tables.chunks import Entry
from convmem.tables.history import Keeping
from convmem.tables.purge_marks import is_unfinished
from convmem.tables.purge_reach import Asked
from convmem.tables.purge_rules import PURGED
from convmem.tables.purging import START, Damaged, Place, PurgeHistory, count, purge
from convmem.targets import TableFile, TableStamp

ORIGIN = Origin("local", "test")
STAMP = TableStamp(0, ORIGIN, lambda: "x", SystemClock().monotonic_ms)
KEEPING = Keeping(4, 6)
FILE = TableFile(Path("/t.db"), create.prepare)


@pytest.fixture
def file(tmp_path: Path) -> apsw.Connection:
    """A file with a row of 40 versions (most of them packed), one a second, and a deleted one of three."""
    connection = apsw.Connection(str(tmp_path / "t.db"))
    create.prepare(connection)
    connection.execute("INSERT INTO rows VALUES ('a', '{\"n\":40}', 1, 1)")
    for number in range(1, 41):
        op: Any = "create" if number == 1 else "update"
        before = None if number == 1 else json.dumps({"n": number - 1})
        history.append(connection, "t", "a", op, json.dumps({"n": number}), before, ORIGIN, number, keeping=KEEPING)
    for number, op in enumerate(("create", "update", "delete"), 1):
        text = None if op == "delete" else json.dumps({"gone": number})
        before = None if number == 1 else json.dumps({"gone": number - 1})
        history.append(connection, "t", "b", op, text, before, ORIGIN, number, keeping=KEEPING)  # type: ignore[arg-type]
    return connection


def asked(before_s: int, keep: int) -> Asked:
    return Asked("t", before_s, keep)


def purge_all(file: apsw.Connection, before_s: int, keep: int) -> tuple[int, list[Damaged], int]:
    """Purge piece by piece: entries, damage, and how many commands it took."""
    entries, damaged, after, commands = 0, list[Damaged](), START, 0
    while True:
        done = purge(file, PurgeHistory(FILE, asked(before_s, keep), after), STAMP)
        entries, damaged, commands = entries + done.entries, damaged + done.damaged, commands + 1
        if done.after is None:
            return entries, damaged, commands
        assert done.after > after
        after = done.after


def versions(file: apsw.Connection, row_id: str) -> list[int]:
    page = history.read(file, "t", row_id, 1_000)
    return [version.version for version in page.versions][::-1]


def said(file: apsw.Connection, row_id: str, version: int) -> tuple[Any, Any]:
    """What an entry says that the row was after and before it."""
    found = history.at_version(file, "t", row_id, version)
    assert found is not None
    return tuple(text and json.loads(text) for text in (found.data_json, found.prev_data_json))  # type: ignore[return-value]


CASES = [(100, 10, 10), (100, 1, 1), (100, 0, 1), (21, 0, 20), (21, 30, 30), (0, 0, 40), (2**62, 1_000, 40)]


@pytest.mark.parametrize(("before_s", "keep", "left"), CASES)
def test_what_is_old_and_not_among_the_newest_goes(file: apsw.Connection, before_s: int, keep: int, left: int):
    foreseen = count(file, asked(before_s, keep))
    assert len(versions(file, "a")) == 40
    entries, damaged, _ = purge_all(file, before_s, keep)
    assert (entries, damaged) == (foreseen.entries, [])
    assert versions(file, "a") == list(range(41 - left, 41))
    for version in versions(file, "a"):
        assert said(file, "a", version)[0] == {"n": version}
    assert history.append(file, "t", "a", "update", "{}", None, ORIGIN, 99, keeping=KEEPING) == 41


def test_counting_needs_no_right_to_write(file: apsw.Connection):
    file.execute("PRAGMA query_only = ON")
    assert count(file, asked(100, 0)).entries == 39 + 3
    with pytest.raises(apsw.ReadOnlyError):
        purge(file, PurgeHistory(FILE, asked(100, 0)), STAMP)


def test_of_a_row_that_is_gone_the_newest_version_stays_without_its_texts(file: apsw.Connection):
    assert purge_all(file, 100, 0)[0] == 39 + 3
    assert versions(file, "b") == [3]
    assert said(file, "b", 3) == (None, None)
    found = history.at_version(file, "t", "b", 3)
    assert found is not None
    assert found.prev_data_json == PURGED
    # Nothing is left to be purged, and no version is given twice.
    assert purge_all(file, 100, 0)[0] == 0
    assert history.append(file, "t", "b", "create", "{}", None, ORIGIN, 99, keeping=KEEPING) == 4


def test_what_stays_of_a_row_that_is_gone_can_be_restored(file: apsw.Connection):
    purge_all(file, 100, 1)
    assert versions(file, "b") == [3]
    assert said(file, "b", 3)[1] == {"gone": 2}


@pytest.mark.parametrize("tier", ["recent", "archive"])
def test_a_deletion_takes_along_what_only_the_entry_before_said(file: apsw.Connection, tier: str):
    """In a file of others a deletion may not hold what it deleted; here it is the first that stays."""
    gone = [Entry(1, 1, "create", '{"n":1}'), Entry(2, 2, "update", '{"n":2}'), Entry(3, 3, "delete")]
    back = [Entry(4, 4, "create", '{"n":4}'), Entry(5, 5, "update", '{"n":5}')]
    if tier == "archive":
        assert chunks.file(file, "t", "c", gone, chunk_min=2) == 3
    for entry in back if tier == "archive" else (*gone, *back):
        values = ("t", "c", entry.version, entry.recorded_at, entry.op, entry.data_json, entry.prev_data_json)
        sql = "INSERT INTO _row_history (table_name, row_id, version, recorded_at, op, data_json, prev_data_json)"
        file.execute(f"{sql} VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    purge_all(file, 3, 0)
    assert versions(file, "c") == [3, 4, 5]
    assert said(file, "c", 3) == (None, {"n": 2})


def test_a_deletion_at_the_start_of_the_next_piece_takes_it_along_too(file: apsw.Connection):
    """The first piece goes as a whole; the deletion stands in the next one, which stays."""
    first = [Entry(number, number, "update", json.dumps({"n": number})) for number in range(1, 4)]
    assert chunks.file(file, "t", "c", first, chunk_min=0) == 3
    second = [Entry(4, 4, "delete"), Entry(5, 50, "create", '{"n":5}')]
    assert chunks.file(file, "t", "c", second, chunk_min=0) == 2
    file.execute("INSERT INTO _row_history VALUES (NULL, 't', 'c', 6, 60, 'update', '{}', NULL, NULL)")
    purge_all(file, 4, 0)
    assert versions(file, "c") == [4, 5, 6]
    assert said(file, "c", 4) == (None, {"n": 3})


def test_gaps_between_versions_are_not_counted_as_versions(file: apsw.Connection):
    file.execute("DELETE FROM _row_history WHERE row_id = 'a' AND version IN (36, 38, 39)")
    before = versions(file, "a")
    purge_all(file, 100, 5)
    assert versions(file, "a") == before[-5:]


def test_the_boundary_may_lie_in_the_middle_of_a_chunk(file: apsw.Connection):
    for keep in range(39, 0, -1):
        purge_all(file, 100, keep)
        assert versions(file, "a") == list(range(41 - keep, 41))


def test_where_a_clock_stepped_back_each_entry_is_judged_by_its_own_time(file: apsw.Connection):
    for number, at in enumerate((10, 90, 20, 80, 30, 70), 1):
        history.append(file, "t", "c", "update", json.dumps({"n": number}), None, ORIGIN, at, keeping=KEEPING)
    purge_all(file, 50, 0)
    assert versions(file, "c") == [2, 4, 6]


def test_a_damaged_chunk_is_named_and_left_and_the_others_go(file: apsw.Connection):
    (chunk,) = file.execute("SELECT min(id) FROM _row_history_archive").fetchone() or (None,)
    first, last = file.execute(
        "SELECT version_start, version_end FROM _row_history_archive WHERE id = ?", (chunk,)
    ).fetchone() or (0, 0)
    file.execute("UPDATE _row_history_archive SET blob = x'00' WHERE id = ?", (chunk,))
    entries, damaged, _ = purge_all(file, 100, 1)
    assert damaged == [Damaged("a", first, last)]
    assert entries == 39 - (last - first + 1) + 2
    page = history.read(file, "t", "a", 1_000)
    assert [tuple(each) for each in page.damaged] == [(first, last)]
    assert versions(file, "a") == [40]


def test_an_entry_that_stands_in_both_tiers_goes_from_both(file: apsw.Connection):
    file.execute("INSERT INTO _row_history VALUES (NULL, 't', 'a', 2, 2, 'update', '{\"needle\":1}', NULL, NULL)")
    purge_all(file, 100, 1)
    assert file.execute("SELECT count(*) FROM _row_history WHERE data_json LIKE '%needle%'").fetchone() == (0,)


@pytest.mark.parametrize(("rows", "entries"), [(1, 1_000), (200, 1), (1, 1), (2, 7)])
def test_a_purge_goes_piece_by_piece_also_inside_a_row(
    file: apsw.Connection, monkeypatch: pytest.MonkeyPatch, rows: int, entries: int
):
    monkeypatch.setattr("convmem.tables.purging.PURGE_ROWS_AT_ONCE", rows)
    monkeypatch.setattr("convmem.tables.purging.PURGE_ENTRIES_AT_ONCE", entries)
    done, _, commands = purge_all(file, 100, 1)
    assert done == 39 + 2
    assert commands >= 2
    assert (versions(file, "a"), versions(file, "b")) == ([40], [3])


def test_what_was_purged_is_marked_in_the_same_transaction(file: apsw.Connection):
    purge_all(file, 0, 0)
    assert not is_unfinished(file)
    purge_all(file, 100, 1)
    assert is_unfinished(file)


def of_others(file: apsw.Connection, row_id: str, *entries: Entry) -> None:
    """Entries as another program writes them: each holds both sides of the change."""
    values = [("t", row_id, it.version, it.recorded_at, it.op, it.data_json, it.prev_data_json) for it in entries]
    columns = "table_name, row_id, version, recorded_at, op, data_json, prev_data_json"
    file.executemany(f"INSERT INTO _row_history ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def texts(file: apsw.Connection) -> str:
    """All that is said in both tiers."""
    recent: list[Any] = file.execute("SELECT data_json, prev_data_json FROM _row_history").fetchall()
    blobs: list[Any] = file.execute("SELECT blob FROM _row_history_archive").fetchall()
    return str(recent) + str([chunks.unpacked(blob) for (blob,) in blobs])


BOTH_SIDES = (
    Entry(1, 1, "create", '"needle 1"'),
    Entry(2, 2, "update", '"needle 2"', '"needle 1"'),
    Entry(3, 3, "update", '"needle 3"', '"needle 2"'),
    Entry(4, 4, "update", '"kept 4"', '"needle 3"'),
    Entry(5, 5, "update", '"kept 5"', '"kept 4"'),
)


@pytest.mark.parametrize("archived", [0, 2, 3, 4, 5])
@pytest.mark.parametrize("entries", [1, 1_000])
def test_what_went_is_not_said_by_the_entry_behind_it_either(
    file: apsw.Connection, monkeypatch: pytest.MonkeyPatch, archived: int, entries: int
):
    monkeypatch.setattr("convmem.tables.purging.PURGE_ENTRIES_AT_ONCE", entries)
    file.execute("INSERT INTO rows VALUES ('c', '\"kept 5\"', 1, 1)")
    if archived:
        assert chunks.file(file, "t", "c", BOTH_SIDES[:archived], chunk_min=0) == archived
    of_others(file, "c", *BOTH_SIDES[archived:])
    purge_all(file, 4, 1)
    assert versions(file, "c") == [4, 5]
    assert "needle" not in texts(file)
    assert said(file, "c", 4) == ("kept 4", None)
    # What an entry that stays says of one that stays too is no secret.
    assert said(file, "c", 5)[0] == "kept 5"
    assert '"kept 4"' in said_raw(file)


def said_raw(file: apsw.Connection) -> str:
    return texts(file).replace('\\\\"', '"').replace('\\"', '"')


@pytest.mark.parametrize("is_archived", [True, False])
def test_a_state_that_was_never_recorded_goes_as_if_it_had_been(file: apsw.Connection, is_archived: bool):
    file.execute("INSERT INTO rows VALUES ('c', '\"kept\"', 1, 1)")
    only = Entry(1, 10, "update", '"kept"', '"needle"')
    if is_archived:
        chunks.file(file, "t", "c", [only], chunk_min=0)
    else:
        of_others(file, "c", only)
    for before_s, keep in ((10, 0), (10, 1), (100, 2)):
        purge_all(file, before_s, keep)
        assert "needle" in texts(file), "it is not old, or among those to be kept"
    foreseen = count(file, asked(100, 1)).entries
    assert purge_all(file, 100, 1)[0] == foreseen
    assert "needle" not in texts(file)
    assert said(file, "c", 1) == ("kept", None)
    assert purge_all(file, 100, 1)[0] == 0


def test_an_older_row_is_never_taken_for_the_one_that_a_deletion_took(file: apsw.Connection):
    entries = (
        Entry(1, 90, "create", '"older"'),
        Entry(2, 1, "delete"),
        Entry(3, 90, "delete"),
        Entry(4, 90, "create", '"x"'),
    )
    of_others(file, "c", *entries)
    assert said(file, "c", 3) == (None, None)
    purge_all(file, 50, 0)
    assert versions(file, "c") == [1, 3, 4]
    assert said(file, "c", 3) == (None, None)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE _row_history SET recorded_at = 'once' WHERE row_id = 'b' AND version = 2",
        "UPDATE _row_history SET recorded_at = x'00' WHERE row_id = 'b' AND version = 2",
        "UPDATE _row_history SET version = 2.5 WHERE row_id = 'b' AND version = 2",
        "UPDATE _row_history SET version = 'two' WHERE row_id = 'b' AND version = 2",
        "UPDATE _row_history SET version = 9223372036854775807 WHERE row_id = 'b' AND version = 3",
        "INSERT INTO _row_history_archive VALUES (NULL, 't', 'b', 'a', 'b', 'c', 'd', 'e', 'jsonl-zstd', x'00')",
        "INSERT INTO _row_history_archive VALUES (NULL, 't', 'b', 1, 2, 1, 'x', 2, 'jsonl-zstd', x'00')",
        "INSERT INTO _row_history_archive VALUES (NULL, 't', 'b', 1, 2, 1, 2, 'x', 'jsonl-zstd', x'00')",
    ],
)
def test_what_another_program_put_in_the_place_of_numbers_is_named_and_left(file: apsw.Connection, sql: str):
    file.execute(sql)
    foreseen = count(file, asked(100, 1))
    entries, damaged, _ = purge_all(file, 100, 1)
    assert versions(file, "a") == [40]
    assert [found.row_id for found in damaged] == ["b"]
    assert (entries, damaged) == (foreseen.entries, foreseen.damaged)


@pytest.mark.parametrize("text", ["x'00ff'", "CAST(x'22ff22' AS TEXT)", "CAST(x'220022' AS TEXT)"])
@pytest.mark.parametrize("version", [1, 2])
def test_texts_that_are_none_go_all_the_same(file: apsw.Connection, text: str, version: int):
    file.execute(f"UPDATE _row_history SET data_json = {text} WHERE row_id = 'b' AND version = {version}")
    assert count(file, asked(100, 1)).entries == 39 + 2
    assert purge_all(file, 100, 1)[:2] == (39 + 2, [])
    assert versions(file, "b") == [3]
    assert said(file, "b", 3)[1] == {"gone": 2}


def test_how_much_text_one_transaction_takes_is_bounded(file: apsw.Connection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("convmem.tables.purging.PURGE_BYTES_AT_ONCE", 3_000)
    large = [Entry(number, 1, "update", json.dumps("x" * 1_000)) for number in range(1, 31)]
    of_others(file, "c", *large)
    after, most = Place("b", chunks.BEHIND_ALL), 0
    while True:
        done = purge(file, PurgeHistory(FILE, asked(100, 1), after), STAMP)
        most = max(most, done.entries)
        if done.after is None:
            break
        after = done.after
    assert versions(file, "c") == [30]
    assert most == 3


def test_rows_are_found_in_either_tier_and_each_once(file: apsw.Connection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("convmem.tables.purging.PURGE_ROWS_AT_ONCE", 2)
    for number in range(7):
        two = [Entry(1, 1, "create", '"old"'), Entry(2, 2, "update", '"new"', '"old"')]
        if number % 2:
            chunks.file(file, "t", f"r{number}", two, chunk_min=0)
        else:
            of_others(file, f"r{number}", *two)
    entries, damaged, commands = purge_all(file, 100, 1)
    assert (entries, damaged, commands) == (39 + 2 + 7, [], 5)
    assert all(versions(file, f"r{number}") == [2] for number in range(7))
