"""Whatever a history looks like and whatever is purged: what stays says what it said, and no version is given twice."""

import json
from pathlib import Path
from typing import Any, Literal

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.clock import SystemClock
from convmem.domain import Origin
from convmem.tables import create, history, purging
from convmem.tables.history import Keeping
from convmem.tables.purge_marks import is_unfinished
from convmem.tables.purge_reach import Asked
from convmem.tables.purge_rules import PURGED
from convmem.tables.purging import START, PurgeHistory
from convmem.targets import TableFile, TableStamp

ORIGIN = Origin("local", "test")
STAMP = TableStamp(0, ORIGIN, lambda: "x", SystemClock().monotonic_ms)
FILE = TableFile(Path("/t.db"), create.prepare)
Op = Literal["create", "update", "delete"]

changes = st.lists(st.tuples(st.sampled_from("ab"), st.booleans(), st.integers(0, 30)), min_size=1, max_size=60)
purges = st.lists(st.tuples(st.integers(0, 32), st.integers(0, 8)), min_size=1, max_size=4)
sizes = st.tuples(st.integers(1, 3), st.integers(1, 20))
keepings = st.builds(Keeping, st.integers(1, 5), st.integers(0, 6))


def fill(file: apsw.Connection, made: list[tuple[str, bool, int]], keeping: Keeping) -> None:
    """Rows that come, change and go. Now and then a deletion does not hold what it deleted, as in files of others."""
    there: dict[str, str] = {}
    for number, (row_id, deletes, at) in enumerate(made):
        op: Op = "create" if row_id not in there else "delete" if deletes else "update"
        text = None if op == "delete" else json.dumps({"n": number})
        before = None if op == "delete" and number % 2 else there.get(row_id)
        history.append(file, "t", row_id, op, text, before, ORIGIN, at, keeping=keeping)
        if text is None:
            del there[row_id]
        else:
            there[row_id] = text
    for row_id, text in there.items():
        file.execute("INSERT INTO rows VALUES (?, ?, 0, 0)", (row_id, text))


def all_said(file: apsw.Connection) -> dict[tuple[str, int], Any]:
    """Each version with what it says, its time beside it."""
    said = {}
    for row_id in "ab":
        for version in history.read(file, "t", row_id, 1_000).versions:
            found = history.at_version(file, "t", row_id, version.version)
            assert found is not None
            # What a change other than a deletion was before is what the entry before it says.
            before = found.prev_data_json if found.op == "delete" else None
            said[row_id, version.version] = (found.op, found.data_json, before, found.recorded_at)
    return said


def expected(file: apsw.Connection, said: dict[tuple[str, int], Any], before_s: int, keep: int) -> dict[Any, Any]:
    left = {}
    for row_id in "ab":
        versions = sorted(version for row, version in said if row == row_id)
        is_there = bool(file.execute("SELECT 1 FROM rows WHERE id = ?", (row_id,)).fetchall())
        for version in versions:
            what = said[row_id, version]
            is_old = what[3] < before_s and version not in (versions[-keep:] if keep else [])
            if version != versions[-1] and is_old:
                continue
            is_emptied = is_old and version == versions[-1] and not is_there
            told = PURGED if what[0] == "delete" else None
            left[row_id, version] = (what[0], None, told, what[3]) if is_emptied else what
    return left


@settings(max_examples=300, deadline=None)
@given(made=changes, purged=purges, size=sizes, keeping=keepings)
def test_what_stays_says_what_it_said(
    made: list[tuple[str, bool, int]], purged: list[tuple[int, int]], size: tuple[int, int], keeping: Keeping
):
    file = apsw.Connection(":memory:")
    create.prepare(file)
    fill(file, made, keeping)
    rows, entries = purging.PURGE_ROWS_AT_ONCE, purging.PURGE_ENTRIES_AT_ONCE
    purging.PURGE_ROWS_AT_ONCE, purging.PURGE_ENTRIES_AT_ONCE = size
    try:
        for before_s, keep in purged:
            asked = Asked("t", before_s, keep)
            before = all_said(file)
            left = expected(file, before, before_s, keep)
            newest = {row_id: history.last_version(file, "t", row_id) for row_id in "ab"}
            foreseen = total(lambda after, asked=asked: purging.count(file, asked, after))
            done = total(lambda after, asked=asked: purging.purge(file, PurgeHistory(FILE, asked, after), STAMP))
            assert all_said(file) == left
            assert done == foreseen
            emptied = sum(before[key] != left[key] for key in left)
            assert done == len(before) - len(left) + emptied
            assert {row_id: history.last_version(file, "t", row_id) for row_id in "ab"} == newest
            assert is_unfinished(file) or not done
    finally:
        purging.PURGE_ROWS_AT_ONCE, purging.PURGE_ENTRIES_AT_ONCE = rows, entries
        file.close()


def total(step: Any) -> int:
    entries, after = 0, START
    while True:
        done = step(after)
        assert done.damaged == []
        entries += done.entries
        if done.after is None:
            return entries
        after = done.after
