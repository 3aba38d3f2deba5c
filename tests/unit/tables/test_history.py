"""Every state that a row was in can be had again, however old, and what cannot is named."""

import apsw
import msgspec
import pytest

from convmem.domain import Origin
from convmem.errors import StorageFault
from convmem.store import sqlite
from convmem.tables import history
from convmem.tables.chunks import Entry
from convmem.tables.history import Damage, Keeping

SOMEBODY = Origin("laptop", "http", "agent/1")
FEW = Keeping(keep_recent=2, chunk_min=3)
# Files of mini-app-mcp, as it makes them.
THEIRS = """
CREATE TABLE _row_history (
    id INTEGER PRIMARY KEY AUTOINCREMENT, table_name TEXT NOT NULL, row_id TEXT NOT NULL, version INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL, op TEXT NOT NULL CHECK (op IN ('create','update','delete')), data_json TEXT,
    prev_data_json TEXT
);
"""


@pytest.fixture
def connection() -> apsw.Connection:
    connection = sqlite.connect(":memory:")
    history.prepare(connection)
    return connection


def updated(connection: apsw.Connection, times: int, row_id: str = "r", keeping: Keeping = FEW) -> None:
    """A row that is made and then changed: version 1 is {"n":1} of second 1001, and so on."""
    for number in range(1, times + 1):
        before = f'{{"n":{number - 1}}}' if number > 1 else None
        op: history.Op = "update" if before else "create"
        after = f'{{"n":{number}}}'
        history.append(connection, "t", row_id, op, after, before, SOMEBODY, 1000 + number, keeping=keeping)


def count(connection: apsw.Connection, table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert row is not None
    return int(row[0])


def test_versions_count_from_one_for_each_row_of_each_table(connection: apsw.Connection):
    for table, row_id in (("t", "a"), ("t", "b"), ("other", "a")):
        assert history.last_version(connection, table, row_id) == 0
        assert history.append(connection, table, row_id, "create", "{}", None, None, 1) == 1
    assert history.append(connection, "t", "a", "update", '{"n":1}', "{}", None, 2) == 2
    assert history.last_version(connection, "t", "b") == 1


def test_the_oldest_become_a_chunk_once_there_are_more_than_both_bounds_allow(connection: apsw.Connection):
    updated(connection, 64, keeping=Keeping())
    assert (count(connection, "_row_history"), count(connection, "_row_history_archive")) == (64, 0)
    updated(connection, 65, row_id="other", keeping=Keeping())
    row = connection.execute(
        "SELECT table_name, row_id, version_start, version_end, recorded_start, recorded_end, entry_count, format"
        " FROM _row_history_archive"
    ).fetchall()
    assert row == [("t", "other", 1, 49, 1001, 1049, 49, "jsonl-zstd")]
    assert history.last_version(connection, "t", "other") == 65
    assert count(connection, "_row_history") == 64 + 16


def test_reading_knows_no_difference_between_the_tiers(connection: apsw.Connection):
    updated(connection, 40)
    page = history.read(connection, "t", "r", 100)
    assert [found.version for found in page.versions] == list(range(40, 0, -1))
    assert (page.damaged, page.before) == ([], None)
    assert page.versions[0] == history.Version(40, "update", 1040, SOMEBODY, len('{"n":40}'))
    assert page.versions[-1] == history.Version(1, "create", 1001, SOMEBODY, len('{"n":1}'))
    assert count(connection, "_row_history") <= 5


def test_pages_follow_each_other_without_gap_or_repetition(connection: apsw.Connection):
    updated(connection, 40)
    seen, before = [], None
    for _ in range(100):
        page = history.read(connection, "t", "r", 7, before)
        seen += [found.version for found in page.versions]
        before = page.before
        if before is None:
            break
        updated(connection, 1, row_id=f"meanwhile-{before}")
    assert seen == list(range(40, 0, -1))


def test_a_row_without_history_has_an_empty_page(connection: apsw.Connection):
    assert history.read(connection, "t", "nobody", 5) == history.Page([], [], None)
    assert history.at_version(connection, "t", "nobody", 1) is None
    assert history.at_time(connection, "t", "nobody", 5000) is None
    assert history.first_recorded_at(connection, "t", "nobody") is None


def test_every_version_and_moment_can_be_had_again(connection: apsw.Connection):
    updated(connection, 40)
    for number in range(1, 41):
        for found in (
            history.at_version(connection, "t", "r", number),
            history.at_time(connection, "t", "r", 1000 + number),
        ):
            assert found is not None
            assert (found.version, found.data_json) == (number, f'{{"n":{number}}}')
    latest = history.at_time(connection, "t", "r", 2**62)
    assert latest is not None
    assert latest.version == 40
    assert history.at_time(connection, "t", "r", 1000) is None
    assert history.at_version(connection, "t", "r", 41) is None
    assert history.at_version(connection, "t", "r", 0) is None


def test_where_the_clock_stepped_back_the_highest_version_is_the_newest(connection: apsw.Connection):
    for number, second in enumerate([100, 300, 200, 50, 400, 350], 1):
        op: history.Op = "create" if number == 1 else "update"
        history.append(connection, "t", "r", op, f"{number}", None, None, second, keeping=FEW)
    for second, version in ((49, None), (50, 4), (100, 4), (300, 4), (349, 4), (350, 6), (400, 6)):
        found = history.at_time(connection, "t", "r", second)
        assert (found and found.version) == version


def test_a_deletion_holds_the_row_that_it_deleted(connection: apsw.Connection):
    updated(connection, 3)
    history.append(connection, "t", "r", "delete", None, '{"n":3}', SOMEBODY, 1004, keeping=FEW)
    deleted = history.at_time(connection, "t", "r", 9999)
    assert deleted is not None
    assert (deleted.op, deleted.data_json, deleted.prev_data_json) == ("delete", None, '{"n":3}')
    assert history.read(connection, "t", "r", 1).versions == [history.Version(4, "delete", 1004, SOMEBODY, 0)]
    connection.execute("DELETE FROM _row_history WHERE op != 'delete'")
    assert history.at_time(connection, "t", "r", 9999) == deleted


def test_what_the_entry_before_says_is_not_written_twice(connection: apsw.Connection):
    updated(connection, 3, keeping=Keeping())
    assert connection.execute("SELECT count(*) FROM _row_history WHERE prev_data_json IS NOT NULL").fetchall() == [(0,)]


def test_a_change_that_history_did_not_see_is_kept_in_what_was_before(connection: apsw.Connection):
    updated(connection, 2, keeping=Keeping())
    history.append(connection, "t", "r", "update", '{"n":9}', '{"n":8}', None, 1003)
    found = history.at_version(connection, "t", "r", 3)
    assert found is not None
    assert (found.prev_data_json, found.whence) == ('{"n":8}', None)


def test_version_one_says_when_the_row_was_made_even_from_a_chunk(connection: apsw.Connection):
    updated(connection, 40)
    assert history.first_recorded_at(connection, "t", "r") == 1001
    connection.execute("UPDATE _row_history_archive SET blob = x'00'")
    assert history.first_recorded_at(connection, "t", "r") == 1001
    connection.execute("DELETE FROM _row_history_archive")
    assert history.first_recorded_at(connection, "t", "r") is None


def test_history_is_undone_with_the_change_that_it_belongs_to(connection: apsw.Connection):
    updated(connection, 5)
    before = [
        connection.execute(f"SELECT * FROM {name}").fetchall() for name in ("_row_history", "_row_history_archive")
    ]
    connection.execute("BEGIN")
    updated(connection, 4)
    connection.execute("ROLLBACK")
    after = [
        connection.execute(f"SELECT * FROM {name}").fetchall() for name in ("_row_history", "_row_history_archive")
    ]
    assert after == before


def damaged(connection: apsw.Connection, version: int) -> Damage:
    """Damage the chunk that holds a version, and say which others it held."""
    row = connection.execute(
        "UPDATE _row_history_archive SET blob = substr(blob, 1, length(blob) - 3)"
        " WHERE version_start <= ? AND version_end >= ? RETURNING version_start, version_end",
        (version, version),
    ).fetchone()
    assert row is not None
    return Damage(*row)


def test_a_damaged_chunk_is_named_and_hides_nothing_else(connection: apsw.Connection):
    updated(connection, 60)
    gone = damaged(connection, 20)
    lost = set(range(gone.version_start, gone.version_end + 1))
    page = history.read(connection, "t", "r", 100)
    assert page.damaged == [gone]
    assert [found.version for found in page.versions] == [n for n in range(60, 0, -1) if n not in lost]
    assert 1 not in lost
    for number in range(1, 61):
        if number in lost:
            with pytest.raises(StorageFault, match=f"versions {gone.version_start} to {gone.version_end}"):
                history.at_version(connection, "t", "r", number)
            with pytest.raises(StorageFault):
                history.at_time(connection, "t", "r", 1000 + number)
        else:
            assert history.at_version(connection, "t", "r", number) is not None
            assert history.at_time(connection, "t", "r", 1000 + number) is not None


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_of_a_damaged_history_name_it_once_and_end(connection: apsw.Connection, limit: int):
    updated(connection, 60)
    gone = damaged(connection, 20)
    seen: list[int] = []
    named: list[Damage] = []
    before = None
    for _ in range(100):
        page = history.read(connection, "t", "r", limit, before)
        seen += [found.version for found in page.versions]
        named += page.damaged
        before = page.before
        if before is None:
            break
    assert before is None
    assert named == [gone]
    assert sorted([*seen, *range(gone.version_start, gone.version_end + 1)]) == list(range(1, 61))


def test_a_row_with_a_damaged_chunk_goes_on(connection: apsw.Connection):
    updated(connection, 6)
    gone = damaged(connection, 1)
    for number in range(7, 30):
        version = history.append(connection, "t", "r", "update", f'{{"n":{number}}}', None, None, number, keeping=FEW)
        assert version == number
    page = history.read(connection, "t", "r", 100)
    assert page.damaged == [gone]
    assert [found.version for found in page.versions] == list(range(29, gone.version_end, -1))


def test_a_version_that_was_purged_is_not_called_damaged(connection: apsw.Connection):
    updated(connection, 6)
    damaged(connection, 1)
    connection.execute("DELETE FROM _row_history WHERE version = 5")
    assert history.at_version(connection, "t", "r", 5) is None


def test_files_of_mini_app_mcp_are_read_and_continued():
    connection = sqlite.connect(":memory:")
    connection.execute(THEIRS)
    theirs = "INSERT INTO _row_history (table_name, row_id, version, recorded_at, op, data_json, prev_data_json)"
    connection.execute(f"{theirs} VALUES ('t', 'r', 1, 5, 'create', '{{}}', NULL)")
    connection.execute(f"{theirs} VALUES ('t', 'r', 2, 6, 'delete', NULL, NULL)")
    for _ in range(2):
        history.prepare(connection)
    deleted = history.at_version(connection, "t", "r", 2)
    assert deleted == Entry(version=2, recorded_at=6, op="delete", prev_data_json="{}")
    assert history.append(connection, "t", "r", "update", "{}", None, SOMEBODY, 7) == 3
    restored = history.at_version(connection, "t", "r", 3)
    assert restored is not None
    assert restored.whence == SOMEBODY


def test_a_long_history_of_others_is_packed_little_by_little():
    connection = sqlite.connect(":memory:")
    connection.execute(THEIRS)
    connection.executemany(
        "INSERT INTO _row_history (table_name, row_id, version, recorded_at, op, data_json) VALUES (?, ?, ?, ?, ?, ?)",
        (("t", "r", n, n, "update", f"{n}") for n in range(1, 101)),
    )
    history.prepare(connection)
    assert history.append(connection, "t", "r", "update", "101", "100", None, 101, keeping=FEW) == 101
    assert count(connection, "_row_history") == 101 - (FEW.chunk_min + 1)
    assert len(history.read(connection, "t", "r", 1000).versions) == 101
    for number in range(1, 102):
        found = history.at_version(connection, "t", "r", number)
        assert found is not None
        assert found.data_json == f"{number}"


def test_an_origin_is_kept_by_name_and_one_that_says_nothing_is_none(connection: apsw.Connection):
    history.append(connection, "t", "r", "create", "{}", None, Origin("local", "stdio"), 1)
    (text,) = connection.execute("SELECT origin FROM _row_history").fetchone() or ("",)
    assert msgspec.json.decode(text) == {"device": "local", "transport": "stdio"}
    for other in ("{", '{"device":1}', "[]", "{}"):
        assert Entry(1, 1, "create", origin=other).whence is None
