"""hooks/state: what a spool knows of itself survives, and what is damaged says nothing."""

from pathlib import Path

import pytest

from convmem.hooks.state import State, state_in
from convmem.limits import SPOOL_AGE_MS_MAX

NOW_MS = 1_700_000_000_000


def test_what_is_written_is_what_is_read(tmp_path: Path):
    state = State(5, 7).counted(2, NOW_MS).counted(1, NOW_MS + 5)
    (tmp_path / "state").write_bytes(state.text())
    assert state_in(str(tmp_path / "state"), NOW_MS) == state == State(5, 7, 3, NOW_MS)
    assert state.facts(4, 9) == {"depth": 4, "oldest_at": 9, "dropped": 3, "dropped_since": NOW_MS}
    assert State().counted(0, NOW_MS) == State()
    assert State().facts(0, None)["dropped_since"] is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"offset": 5}', '{"file": "x", "offset": 5}', "\0" * 90])
def test_one_that_is_damaged_or_missing_says_nothing(tmp_path: Path, text: str):
    (tmp_path / "state").write_text(text)
    assert state_in(str(tmp_path / "state"), NOW_MS) == State()
    assert state_in(str(tmp_path / "none"), NOW_MS) == State()
    assert state_in(str(tmp_path), NOW_MS) == State()


def test_what_was_dropped_is_forgotten_after_a_while(tmp_path: Path):
    (tmp_path / "state").write_bytes(State(5, 7, 3, NOW_MS).text())
    assert state_in(str(tmp_path / "state"), NOW_MS + SPOOL_AGE_MS_MAX).dropped == 3
    assert state_in(str(tmp_path / "state"), NOW_MS + SPOOL_AGE_MS_MAX + 1) == State(5, 7)
