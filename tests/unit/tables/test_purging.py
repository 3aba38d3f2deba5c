"""Purging: what goes is gone from both tiers, what stays says what it said, and no version is given twice."""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.clock import SystemClock
from convmem.domain import Origin
from convmem.tables import create, history
from convmem.tables.history import Keeping
from convmem.tables.purging import PurgeHistory, purge
from convmem.targets import TableFile, TableStamp

ORIGIN = Origin("local", "test")
STAMP = TableStamp(0, ORIGIN, lambda: "x", SystemClock().monotonic_ms)
KEEPING = Keeping(4, 6)


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


def command(before_s: int, keep: int, **more: Any) -> PurgeHistory:
    return PurgeHistory(TableFile(Path("/t.db"), create.prepare), "t", before_s, keep, **more)


def versions(file: apsw.Connection, row_id: str) -> list[int]:
    page = history.read(file, "t", row_id, 1_000)
    assert page.damaged == []
    return [version.version for version in page.versions][::-1]


@pytest.mark.parametrize(
    ("before_s", "keep", "left"),
    [(100, 10, 10), (100, 1, 1), (100, 0, 1), (21, 0, 20), (21, 30, 30), (0, 0, 40), (2**62, 1_000, 40)],
)
def test_what_is_old_and_not_among_the_newest_goes(file: apsw.Connection, before_s: int, keep: int, left: int):
    dry = purge(file, command(before_s, keep, dry_run=True), STAMP)
    assert len(versions(file, "a")) == 40
    done = purge(file, command(before_s, keep), STAMP)
    assert done == dry
    assert versions(file, "a") == list(range(41 - left, 41))
    for version in versions(file, "a"):
        found = history.at_version(file, "t", "a", version)
        assert found is not None
        assert json.loads(found.data_json or "") == {"n": version}
    assert history.append(file, "t", "a", "update", "{}", None, ORIGIN, 99, keeping=KEEPING) == 41


def test_of_a_row_that_is_gone_all_may_go_and_what_stays_can_be_restored(file: apsw.Connection):
    purge(file, command(100, 1), STAMP)
    assert versions(file, "b") == [3]
    found = history.at_version(file, "t", "b", 3)
    assert found is not None
    assert json.loads(found.prev_data_json or "") == {"gone": 2}
    purge(file, command(100, 0), STAMP)
    assert versions(file, "b") == []


def test_a_deletion_takes_along_what_only_the_entry_before_said(file: apsw.Connection):
    file.execute("UPDATE _row_history SET prev_data_json = NULL WHERE row_id = 'b'")
    purge(file, command(3, 0), STAMP)
    found = history.at_version(file, "t", "b", 3)
    assert found is not None
    assert json.loads(found.prev_data_json or "") == {"gone": 2}


def test_a_damaged_chunk_is_counted_and_left(file: apsw.Connection):
    file.execute("UPDATE _row_history_archive SET blob = x'00' WHERE id = (SELECT min(id) FROM _row_history_archive)")
    done = purge(file, command(100, 1), STAMP)
    assert done.damaged == 1
    assert history.read(file, "t", "a", 1_000).damaged


def test_many_rows_are_purged_slice_by_slice(file: apsw.Connection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("convmem.tables.purging.PURGE_ROWS_AT_ONCE", 1)
    entries, after, slices = 0, "", 0
    while True:
        done = purge(file, command(100, 1, after=after), STAMP)
        entries, slices = entries + done.entries, slices + 1
        if done.after is None:
            break
        after = done.after
    assert (entries, slices) == (39 + 2, 3)
