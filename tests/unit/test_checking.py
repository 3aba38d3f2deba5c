"""checking.py: a directory is checked beside whoever holds it, whatever happens to it meanwhile; nothing is changed."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem import checking, maintenance
from convmem.clock import SystemClock
from convmem.daemon import domains
from convmem.engine import Engine
from convmem.errors import Stopping
from convmem.files import RealFile, RealFiles
from convmem.store import check as invariants
from convmem.store import log
from tests.support.wrecks import DAMAGES, SCRIPT, Step, Wreck

SOUND: dict[str, list[str]] = {"violations": [], "leftovers": []}


def silent(done: float, total: float, sentence: str) -> None:
    pass


def walked(files: RealFiles, tell: Callable[[float, float, str], None] = silent, **more: Any) -> Any:
    return checking.walk(files, domains(), SystemClock(), tell, **more)


@pytest.fixture
def wreck(tmp_path: Path) -> Wreck:
    made = Wreck(tmp_path / "store")
    made.play(SCRIPT)
    return made


def test_a_sound_store_is_sound_and_stays_as_it_is(wreck: Wreck):
    before = wreck.image()
    assert walked(RealFiles(wreck.directory)) == SOUND
    assert wreck.image() == before


@pytest.mark.parametrize("lacks", ["", "-shm"])
def test_a_store_that_its_daemon_left_behind_gets_no_new_file(wreck: Wreck, tmp_path: Path, lacks: str):
    """There is a WAL that nobody has folded in; with the index alone the last entries would be missing."""
    store = wreck.play([Step("write", 30)], closes=False)
    left = wreck.copy(tmp_path / "left")
    store.close()
    if lacks:
        (left.directory / f"index-1.db{lacks}").unlink()
    names = sorted(left.image())
    assert walked(RealFiles(left.directory)) == SOUND
    assert sorted(left.image()) == names
    assert (left.directory / "index-1.db-wal").stat().st_size > 0


def test_an_empty_wal_is_none(wreck: Wreck):
    (wreck.directory / "index-1.db-wal").touch()
    before = wreck.image()
    assert walked(RealFiles(wreck.directory)) == SOUND
    assert wreck.image() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_only_be_read_is_checked(wreck: Wreck):
    wreck.directory.chmod(0o500)
    try:
        assert walked(RealFiles(wreck.directory)) == SOUND
    finally:
        wreck.directory.chmod(0o700)


def test_an_index_that_changes_while_it_is_read_without_a_lock_is_read_again(wreck: Wreck):
    """A daemon starts, writes and stops in the middle of the check."""
    told: list[str] = []

    def tell(done: float, total: float, sentence: str) -> None:
        told.append(sentence)
        if len(told) == 3:
            wreck.play([Step("write", 40), Step("delete", 40)])

    assert walked(RealFiles(wreck.directory), tell) == SOUND
    assert len(told) > 2 * len(SCRIPT)


def test_an_end_that_the_next_start_cuts_is_a_leftover(wreck: Wreck):
    data = wreck.log.read_bytes()
    wreck.log.write_bytes(data + bytes(70))
    assert walked(RealFiles(wreck.directory)) == {
        "violations": [],
        "leftovers": [
            f"the log, from byte {len(data)} to {len(data) + 70}: the header is damaged; the next start cuts it off"
        ],
    }


def test_an_end_that_the_next_start_refuses_is_a_violation(wreck: Wreck):
    frame, data = wreck.frames()[-1], wreck.log.read_bytes()
    wreck.log.write_bytes(data + data[frame.offset :])
    assert walked(RealFiles(wreck.directory)) == {
        "violations": [f"the log is damaged at byte {len(data)}: a whole frame of another place or generation"],
        "leftovers": [],
    }


@pytest.mark.parametrize("column", ["content", "session_id", "tags"])
def test_a_text_of_the_index_that_is_no_utf_8_is_damage(wreck: Wreck, column: str):
    connection = apsw.Connection(str(wreck.directory / "index-1.db"))
    connection.execute(f"UPDATE messages_message SET {column} = CAST(x'ff' AS TEXT) WHERE sequence = 1")
    connection.close()
    (sentence,) = walked(RealFiles(wreck.directory))["violations"]
    assert sentence.startswith("the index is damaged: ")


def test_damage_of_the_log_is_named_with_its_place(wreck: Wreck):
    frame = wreck.frames()[3]
    wreck.log.write_bytes(DAMAGES["zeros"](wreck.log.read_bytes(), frame.offset, frame.header.frame_size))
    assert walked(RealFiles(wreck.directory))["violations"] == [
        f"the log is damaged at byte {frame.offset}: the header is damaged"
    ]


def test_a_damaged_index_is_named(wreck: Wreck):
    path = wreck.directory / "index-1.db"
    path.write_bytes(path.read_bytes()[:5000])
    (sentence,) = walked(RealFiles(wreck.directory))["violations"]
    assert sentence.startswith("the index")


def test_without_an_index_the_log_is_checked_and_nothing_is_wrong(wreck: Wreck):
    wreck.drop_index()
    found = walked(RealFiles(wreck.directory))
    assert found == {"violations": [], "leftovers": ["index-1.db is missing; the next start makes it anew"]}


def test_a_log_that_is_missing_is_a_violation(wreck: Wreck):
    wreck.log.unlink()
    assert walked(RealFiles(wreck.directory))["violations"] == ["convmem.log is missing"]


def test_what_nobody_needs_is_listed_and_no_fault(wreck: Wreck):
    names = {
        "staging-2.log": "the next start removes it",
        "index-7.db": "the next start removes it",
        "index-7.db-wal": "the next start removes it",
        "cut-1-70-1.tail": "`convmem compact` removes it",
    }
    for name in (*names, "notes.txt", "index-x.db", "convmem.env"):
        (wreck.directory / name).write_bytes(b"left")
    found = walked(RealFiles(wreck.directory))
    assert found["violations"] == []
    assert {line.split(": ")[0]: line.rsplit("; ")[-1] for line in found["leftovers"]} == names


def test_an_empty_store_is_checked_with_its_own_index(tmp_path: Path):
    """Not with that of an import which had just begun."""
    wreck = Wreck(tmp_path / "store")
    wreck.play([])
    other = Wreck(tmp_path / "other")
    other.play(SCRIPT)
    other.compact()
    (wreck.directory / "index-2.db").write_bytes((other.directory / "index-2.db").read_bytes())
    assert walked(RealFiles(wreck.directory))["violations"] == []


class Busy(RealFiles):
    """A directory in which something happens just after the log was opened to be read."""

    happens: Callable[[], None]

    def open_to_read(self, name: str) -> RealFile:
        file = super().open_to_read(name)
        if name == log.NAME:
            self.happens()
        return file


@pytest.mark.parametrize("opening", [1, 2])
def test_a_compaction_that_comes_in_between_is_no_violation(wreck: Wreck, opening: int):
    files, count = Busy(wreck.directory), 0

    def compact() -> None:
        nonlocal count
        count += 1
        if count == opening:
            wreck.compact()

    files.happens = compact
    assert walked(files) == SOUND
    assert count >= opening


def test_what_is_found_wrong_in_a_generation_that_is_gone_is_not_told(wreck: Wreck, monkeypatch: pytest.MonkeyPatch):
    """An index whose files are removed while it is read may look like anything."""
    look = invariants.look

    def look_once(*arguments: Any) -> invariants.Found:
        monkeypatch.setattr(invariants, "look", look)
        wreck.compact()
        return invariants.Found(["the index: it seems to be damaged"])

    monkeypatch.setattr(invariants, "look", look_once)
    assert walked(RealFiles(wreck.directory)) == SOUND


def test_a_check_ends_when_the_daemon_stops(wreck: Wreck):
    for steps in (0, 3, 12):
        told: list[str] = []

        def tell(done: float, total: float, sentence: str) -> None:
            told.append(sentence)  # noqa: B023

        with pytest.raises(Stopping):
            walked(RealFiles(wreck.directory), tell, is_stopped=lambda: len(told) > steps)  # noqa: B023


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Engine]:
    engine = Engine(RealFiles(directory), lambda: domains(), SystemClock())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        yield engine
        engine.stop()


async def unheard(done: float, total: float, sentence: str) -> None:
    pass


async def test_a_store_in_use_is_checked_by_its_own_daemon(wreck: Wreck):
    told: list[str] = []

    async def hear(done: float, total: float, sentence: str) -> None:
        told.append(sentence)

    async with running(wreck.directory) as engine:
        assert await checking.check(engine, hear) == SOUND
        await maintenance.compact(engine, unheard)
        assert await checking.check(engine, hear) == SOUND
    assert {"reading the log", "folding the log"} <= set(told)


async def test_a_stop_ends_the_check_of_a_store_in_use(wreck: Wreck):
    async with running(wreck.directory) as engine:

        async def hear(done: float, total: float, sentence: str) -> None:
            engine.stop()

        with pytest.raises(Stopping):
            await checking.check(engine, hear)
