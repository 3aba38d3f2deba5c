"""Whatever a history looks like and whatever is purged: what stays says what it said, and no version is given twice."""

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.clock import SystemClock
from convmem.domain import Origin
from convmem.tables import chunks, create, history, purging
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

BEFORE_S_MAX = 32
change = st.tuples(st.sampled_from("ab"), st.booleans(), st.integers(0, 30))
changes = st.lists(change, min_size=1, max_size=60)
purges = st.lists(st.tuples(st.integers(0, BEFORE_S_MAX), st.integers(0, 8)), min_size=1, max_size=4)
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


class Written(NamedTuple):
    """What a version said when it was written down."""

    op: Op
    data: str | None
    before: str | None
    at: int


class Model:
    """Rows that are written to while they are purged, and all that was ever said of them."""

    def __init__(self, file: apsw.Connection, keeping: Keeping) -> None:
        self.file, self.keeping = file, keeping
        self.said: dict[tuple[str, int], Written] = {}
        self.there: dict[str, str] = {}

    def write(self, row_id: str, *, deletes: bool, at: int) -> None:
        """A change as we write it down, or as others do: both sides, or a deletion that says nothing."""
        number = len(self.said)
        was = self.there.pop(row_id, None)
        op: Op = "create" if was is None else "delete" if deletes else "update"
        text = None if op == "delete" else json.dumps({"n": f"<{number}>"})
        self.file.execute("DELETE FROM rows WHERE id = ?", (row_id,))
        if text is not None:
            self.there[row_id] = text
            self.file.execute("INSERT INTO rows VALUES (?, ?, 0, 0)", (row_id, text))
        before = None if op == "delete" and number % 2 else was
        version = history.append(self.file, "t", row_id, op, text, before, ORIGIN, at, keeping=self.keeping)
        if op == "update" and number % 3:
            sql = "UPDATE _row_history SET prev_data_json = ? WHERE row_id = ? AND version = ?"
            self.file.execute(sql, (was, row_id, version))
        assert (row_id, version) not in self.said, "a version was given twice"
        assert version == self.newest(row_id) + 1
        self.said[row_id, version] = Written(op, text, was if op == "delete" else None, at)

    def left(self) -> dict[tuple[str, int], Written]:
        return {key: Written(*what) for key, what in all_said(self.file).items()}

    def texts(self) -> str:
        """All that stands in either tier."""
        recent: list[Any] = self.file.execute("SELECT data_json, prev_data_json FROM _row_history").fetchall()
        packed: list[Any] = self.file.execute("SELECT blob FROM _row_history_archive").fetchall()
        return str(recent) + str([chunks.unpacked(blob) for (blob,) in packed])

    def newest(self, row_id: str) -> int:
        return max((version for row, version in self.said if row == row_id), default=0)


@settings(max_examples=300, deadline=None)
@given(made=changes, asks=purges, size=sizes, keeping=keepings, data=st.data())
def test_whoever_writes_while_it_goes_on_loses_nothing_and_nothing_that_went_is_said(
    made: list[tuple[str, bool, int]],
    asks: list[tuple[int, int]],
    size: tuple[int, int],
    keeping: Keeping,
    data: st.DataObject,
):
    file = apsw.Connection(":memory:")
    create.prepare(file)
    model = Model(file, keeping)
    for row_id, deletes, at in made:
        model.write(row_id, deletes=deletes, at=at)
    rows, entries = purging.PURGE_ROWS_AT_ONCE, purging.PURGE_ENTRIES_AT_ONCE
    purging.PURGE_ROWS_AT_ONCE, purging.PURGE_ENTRIES_AT_ONCE = size
    try:
        for before_s, keep in asks:
            there = sorted(model.left())
            kept = {key for row_id in "ab" for key in [key for key in there if key[0] == row_id][-max(keep, 1) :]}
            after: Any = START
            while after is not None:
                done = purging.purge(file, PurgeHistory(FILE, Asked("t", before_s, keep), after), STAMP)
                assert done.damaged == []
                after = done.after
                for row_id, deletes, at in data.draw(st.lists(change, max_size=2)):
                    model.write(row_id, deletes=deletes, at=at)
            judge(model, set(there) - kept, before_s)
    finally:
        purging.PURGE_ROWS_AT_ONCE, purging.PURGE_ENTRIES_AT_ONCE = rows, entries
        file.close()


def judge(model: Model, old: set[tuple[str, int]], before_s: int) -> None:
    """`old`: what was there before, but for the newest of each row; of that all goes that is old enough."""
    left = model.left()
    for key, what in left.items():
        emptied = Written(what.op, None, PURGED if what.op == "delete" else None, what.at)
        assert what == model.said[key] or (what == emptied and model.said[key].at < BEFORE_S_MAX)
    assert not any(model.said[key].at < before_s for key in old & set(left))
    for row_id in "ab":
        newest = model.newest(row_id)
        assert history.last_version(model.file, "t", row_id) == newest
        if row_id in model.there:
            assert left[row_id, newest] == model.said[row_id, newest]
    said_still = {text for what in left.values() for text in (what.data, what.before)}
    texts = model.texts()
    for key in set(model.said) - set(left):
        text = model.said[key].data
        assert text is None or text in said_still or json.loads(text)["n"] not in texts
