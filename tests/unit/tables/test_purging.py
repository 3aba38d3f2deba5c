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
from convmem.tables.purging import PURGED, START, Asked, Damaged, PurgeHistory, count, finish, is_unfinished, purge
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


def test_that_bytes_are_left_in_the_file_stands_in_the_file_until_it_is_written_anew(file: apsw.Connection):
    assert not is_unfinished(file)
    purge_all(file, 0, 0)
    assert not is_unfinished(file)
    purge_all(file, 100, 1)
    assert is_unfinished(file)
    finish(file)
    assert not is_unfinished(file)
    file.execute("DROP TABLE _purge_unfinished")
    assert not is_unfinished(file)
