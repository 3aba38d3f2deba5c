"""Whatever happens to a row, its history is every state that it was in, in order, by version and by time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.store import sqlite
from convmem.tables import history
from convmem.tables.history import Keeping
from tests.support.texts import texts

pytestmark = pytest.mark.slow

# A change: the row afterwards (None: deleted), and how many seconds the clock went on, or back.
changes = st.lists(st.tuples(st.none() | texts, st.integers(-3, 5)), min_size=1, max_size=60)


@given(changes, st.integers(1, 4), st.integers(1, 5), st.integers(1, 9), st.data())
@settings(derandomize=True, max_examples=200, deadline=None)
def test_replaying_history_gives_every_past_state(
    steps: list[tuple[str | None, int]], keep_recent: int, chunk_min: int, limit: int, data: st.DataObject
):
    connection = sqlite.connect(":memory:")
    history.prepare(connection)
    keeping = Keeping(keep_recent, chunk_min)
    states: list[tuple[str | None, str | None, int]] = []
    was, second = None, 1000
    for now, seconds in steps:
        if was is None and now is None:
            continue
        second += seconds
        op: history.Op = "delete" if now is None else "update" if states else "create"
        assert history.append(connection, "t", "r", op, now, was, None, second, keeping=keeping) == len(states) + 1
        states.append((now, was, second))
        was = now

    seen, before = [], None
    for _ in range(len(states) + 1):
        page = history.read(connection, "t", "r", limit, before)
        assert page.damaged == []
        assert len(page.versions) <= limit
        seen += [(found.version, found.op, found.recorded_at, found.size_bytes) for found in page.versions]
        before = page.before
        if before is None:
            break
    ops = ["create", *("update" if now is not None else "delete" for now, _, _ in states[1:])]
    sizes = [len((now or "").encode()) for now, _, _ in states]
    assert seen[::-1] == [(n + 1, ops[n], states[n][2], sizes[n]) for n in range(len(states))]

    for version, (now, was, second) in enumerate(states, 1):
        found = history.at_version(connection, "t", "r", version)
        assert found is not None
        assert (found.data_json, found.recorded_at) == (now, second)
        if now is None:
            assert found.prev_data_json == was
    moment = data.draw(st.integers(990, 1300))
    newest = max((version for version, state in enumerate(states, 1) if state[2] <= moment), default=None)
    at_moment = history.at_time(connection, "t", "r", moment)
    assert (at_moment and at_moment.version) == newest
    raw = connection.execute("SELECT count(*) FROM _row_history").fetchone()
    assert raw is not None
    assert raw[0] <= keep_recent + chunk_min
