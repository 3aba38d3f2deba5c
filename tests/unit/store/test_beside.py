"""store/beside: an index looked at without a byte, a time or a name of its directory being changed."""

import os
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.daemon import domains
from convmem.store.beside import state_of
from tests.support.wrecks import SCRIPT, Wreck


def image(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.iterdir()}
    return {**found, ".": directory.stat().st_mtime_ns}


@pytest.fixture
def left_open(tmp_path: Path) -> Path:
    """What a killed process leaves: a database whose newest rows stand in its WAL alone."""
    wreck = Wreck(tmp_path / "open")
    store = wreck.play(SCRIPT, closes=False)
    shutil.copytree(wreck.directory, tmp_path / "left")
    store.close()
    return tmp_path / "left"


def test_an_index_that_was_left_in_order_tells_how_far_it_is(tmp_path: Path):
    wreck = Wreck(tmp_path / "data")
    wreck.play(SCRIPT)
    before = image(wreck.directory)
    state = state_of(wreck.directory / "index-1.db", domains())
    assert state is not None
    assert state.end.next_sequence == len(SCRIPT) + 1
    assert image(wreck.directory) == before


@pytest.mark.parametrize("has_list_of_pages", [True, False])
def test_what_stands_in_the_wal_alone_is_seen(left_open: Path, has_list_of_pages: bool):
    assert (left_open / "index-1.db-wal").stat().st_size > 0
    if not has_list_of_pages:
        (left_open / "index-1.db-shm").unlink()
    before = image(left_open)
    state = state_of(left_open / "index-1.db", domains())
    assert state is not None
    assert state.end.next_sequence == len(SCRIPT) + 1
    assert image(left_open) == before


def test_nothing_is_known_of_what_is_damaged_missing_or_of_another_version(tmp_path: Path):
    path = tmp_path / "index-1.db"
    assert state_of(path, domains()) is None
    path.write_bytes(b"no database" * 1_000)
    assert state_of(path, domains()) is None
    path.unlink()
    apsw.Connection(os.fspath(path)).execute("CREATE TABLE another (x)")
    assert state_of(path, domains()) is None
