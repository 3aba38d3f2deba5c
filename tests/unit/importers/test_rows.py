"""rows: what is in a table comes out by name, and what is not there, odd or damaged takes nothing else with it."""

from pathlib import Path

import apsw
import pytest

from convmem.importers import sources
from convmem.importers.model import Notes
from convmem.importers.rows import Database, Group
from convmem.importers.sources import Source


def database(path: Path, *statements: str) -> Database:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return Database(Source(str(path), path), Notes())


def test_a_row_has_the_columns_that_are_there(tmp_path: Path):
    opened = database(tmp_path / "a", "CREATE TABLE t (id, data)", "INSERT INTO t VALUES (1, 'x'), (2, NULL)")
    assert list(opened.rows("t", ("data", "id", "missing"))) == [{"data": "x", "id": 1}, {"data": None, "id": 2}]
    assert list(opened.rows("t", ("id",), {"data": "x"})) == [{"id": 1}]
    assert list(opened.rows("t", ("id",), {"data": None})) == [{"id": 2}]


def test_what_is_not_there_has_no_rows(tmp_path: Path):
    opened = database(tmp_path / "a", "CREATE TABLE t (id)", "INSERT INTO t VALUES (1)")
    assert not list(opened.rows("u", ("id",)))
    assert not list(opened.rows("t", ("other",)))
    assert not list(opened.rows("t", ("id",), {"other": 1}))
    assert not list(opened.groups("t", "other", "id"))


def test_text_that_is_no_utf_8_and_blobs_come_out_as_text(tmp_path: Path):
    opened = database(
        tmp_path / "a", "CREATE TABLE t (data)", "INSERT INTO t VALUES (CAST(x'61ff' AS TEXT)), (x'6263')"
    )
    assert [row["data"] for row in opened.rows("t", ("data",))] == ["a\ufffd", "bc"]


def test_rows_are_grouped_with_the_least_of_another_column(tmp_path: Path):
    rows = "INSERT INTO t VALUES ('a', 3), ('a', 2), (NULL, 9)"
    opened = database(tmp_path / "a", "CREATE TABLE t (name, at)", rows)
    assert list(opened.groups("t", "name", "at")) == [Group(None, 1, 9), Group("a", 2, 2)]
    assert list(opened.groups("t", "name", "missing")) == [Group(None, 1, None), Group("a", 2, None)]


def test_a_damaged_page_is_noted_and_what_came_before_is_read(tmp_path: Path):
    path = tmp_path / "a"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)"
    rows = f"{numbers} INSERT INTO t SELECT i, hex(zeroblob(400)) FROM n"
    opened = database(path, "PRAGMA page_size = 1024", "CREATE TABLE t (id INTEGER PRIMARY KEY, data)", rows)
    pages = path.stat().st_size // 1024
    with path.open("r+b") as file:
        file.seek((pages // 2) * 1024)
        file.write(b"\xff" * 1024)
    read = [row["id"] for row in opened.rows("t", ("id",))]
    assert read == list(range(1, len(read) + 1))
    assert 0 < len(read) < 100
    [skipped] = opened._notes.skipped
    assert "table t" in skipped.where


def test_a_file_that_is_no_database_is_noted_once(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(b"no database at all" * 100)
    notes = Notes()
    opened = Database(Source(str(path), path), notes)
    assert not list(opened.rows("t", ("id",)))
    assert not list(opened.groups("t", "id", "id"))
    assert notes.skipped_count == 1


def test_one_copy_serves_everything_and_goes_with_the_last_that_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    copies: list[Path] = []

    def noted(place: Path, copy: Path) -> None:
        copies.append(copy)
        copied(place, copy)

    copied = sources._copied
    monkeypatch.setattr(sources, "_copied", noted)
    opened = database(tmp_path / "a", "CREATE TABLE t (id)", "INSERT INTO t VALUES (1)")
    first, second = opened.rows("t", ("id",)), opened.rows("t", ("id",))
    del opened
    assert [list(first), next(second)] == [[{"id": 1}], {"id": 1}]
    [copy] = copies
    assert copy.exists()
    del first, second
    assert not copy.parent.exists()
