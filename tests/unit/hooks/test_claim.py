"""hooks/claim: one process delivers, and whoever waits for the right is heard."""

import os
from pathlib import Path

import pytest

from convmem.hooks import claim as module
from convmem.hooks.claim import asked_for, claimed
from tests.support.manual_clock import ManualClock


def test_one_has_it_and_whoever_has_it_is_told_that_somebody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, clock = str(tmp_path / "name.drain"), ManualClock()
    claim = claimed(path)
    assert claim is not None
    assert claimed(path) is None
    assert Path(path).read_text().split() == [str(os.getpid())]
    assert not claim.is_over()
    assert asked_for(path, 2, clock) is None
    assert claim.is_over()
    claim.tell()
    assert claim.is_over(), "whoever says its name takes back what was asked"
    monkeypatch.setattr(module, "sleep_ms", lambda duration_ms: claim.close())
    after = asked_for(path, 10, clock)
    assert after is not None
    assert not after.is_over()
    after.close()


def test_a_file_that_was_removed_ends_the_right(tmp_path: Path):
    claim = claimed(str(tmp_path / "name.drain"))
    assert claim is not None
    (tmp_path / "name.drain").unlink()
    assert claim.is_over()
    claim.close()
