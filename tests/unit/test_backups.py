"""backups.py: made and proven beside a store in use, and on a schedule that says when a restore was last proven."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem import files
from convmem.backups import Backups
from convmem.clock import Clock, SystemClock
from convmem.domain import Origin
from convmem.engine import Engine
from convmem.errors import BackupRefused, Busy, DiskFault, Invalid, LogCorrupt, Stopping, StoreFailed
from convmem.files import RealFiles
from convmem.limits import BACKUP_EVERY_S_MAX
from convmem.store import backup, manifest
from convmem.store.manifest import MANIFEST, PROVEN, Proof
from tests.support.manual_clock import START_MS, ManualClock
from tests.support.notebook import NOTEBOOK, Add, Strike, notes
from tests.support.sleeping import Sleeper
from tests.support.waiting import until

ORIGIN = Origin("laptop", "http", "tester/1")
HOUR_MS = 3_600_000
EVERY_MS = 6 * HOUR_MS


@asynccontextmanager
async def running(
    data_dir: Path, *, clock: Clock | None = None, sleeper: Sleeper | None = None, to: Path | None = None
) -> AsyncIterator[Engine]:
    directory = RealFiles(data_dir)
    directory.prepare()
    engine = Engine(directory, lambda: [NOTEBOOK], clock or SystemClock())
    if sleeper is not None:
        engine.backups = Backups(engine, directory, sleeper)
    if to is not None:
        engine.backups.schedule(to, EVERY_MS)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        await engine.ready()
        yield engine
        engine.stop()


async def add(engine: Engine, *texts: str) -> None:
    for text in texts:
        await engine.access(ORIGIN).write(Add((text,)))


async def nobody(done: float, total: float, sentence: str) -> None:
    pass


async def back_up(engine: Engine, to: Path, **more: Any) -> Any:
    return await engine.backups.back_up({"dest": str(to), **more}, nobody)


async def verify(engine: Engine, source: Path) -> Any:
    return await engine.backups.verify({"src": str(source)}, nobody)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "copy"


async def test_a_backup_and_its_proof_answer_facts(data_dir: Path, to: Path) -> None:
    async with running(data_dir) as engine:
        await add(engine, "a", "b")
        made = await back_up(engine, to)
        size = (data_dir / "convmem.log").stat().st_size
        assert (made["dest"], made["generation"], made["sequence"]) == (str(to), "1", "2")
        assert made["log_bytes"] == made["copied_bytes"] == size
        assert made["parts"] == [{"name": "convmem.log", "file": "log-1", "bytes": size}]
        proven = await verify(engine, to)
        assert proven["live"] == 2
        assert proven["state_hash"] == made["state_hash"]
        await add(engine, "c")
        again = await back_up(engine, to)
        assert again["copied_bytes"] == again["log_bytes"] - size
        assert (await verify(engine, to))["live"] == 3


async def test_what_is_made_is_for_the_owner_alone_and_nothing_else_is_left(data_dir: Path, to: Path) -> None:
    async with running(data_dir) as engine:
        await add(engine, "a")
        await back_up(engine, to)
        await verify(engine, to)
        assert {path.name for path in to.iterdir()} == {"backup.lock", "log-1", MANIFEST, PROVEN}
        assert to.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in to.iterdir()} == {0o600}
        assert not list(data_dir.glob("staging-*"))


async def test_a_proof_is_remembered_of_backups_of_this_store_only(data_dir: Path, to: Path, tmp_path: Path) -> None:
    async with running(tmp_path / "other") as other:
        await back_up(other, to)
    async with running(data_dir) as engine:
        await verify(engine, to)
        assert engine.health()["last_proven_restore_ms"] is None
        assert not (to / PROVEN).exists()
        await back_up(engine, tmp_path / "own")
        await verify(engine, tmp_path / "own")
        assert engine.health()["last_proven_restore_ms"] is not None
        assert (tmp_path / "own" / PROVEN).exists()


async def test_a_backup_while_generations_change_and_writes_go_on_is_one_moment(data_dir: Path, to: Path) -> None:
    async with running(data_dir) as engine:
        await add(engine, *map(str, range(50)))
        done = asyncio.Event()

        async def write() -> None:
            number = 0
            while not done.is_set():
                await add(engine, f"meanwhile {number}")
                number += 1

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(write())
            for _ in range(3):
                (first, _), *_ = await engine.access(ORIGIN).read(notes)
                struck = await engine.access(ORIGIN).write(Strike(first))
                made, rebuilt = await asyncio.gather(back_up(engine, to), engine.access(ORIGIN).rebuild())
                assert rebuilt["rebuilt"] is True
                assert int(made["sequence"]) >= struck["sequence"]
                proven = await verify(engine, to)
                assert (proven["generation"], proven["sequence"]) == (made["generation"], made["sequence"])
            done.set()


async def test_one_backup_or_proof_at_a_time(data_dir: Path, to: Path) -> None:
    async with running(data_dir) as engine:
        await add(engine, "a")
        outcomes = await asyncio.gather(
            back_up(engine, to), back_up(engine, to), verify(engine, to), return_exceptions=True
        )
        assert isinstance(outcomes[0], dict)
        assert [type(outcome) for outcome in outcomes[1:]] == [Busy, Busy]
        await verify(engine, to)


async def test_a_directory_that_another_process_writes_to_is_busy(data_dir: Path, to: Path) -> None:
    async with running(data_dir) as engine:
        await back_up(engine, to)
        held = files.lock(to / backup.LOCK)
        assert held is not None
        with pytest.raises(Busy, match="another process"):
            await back_up(engine, to)
        held.close()
        await back_up(engine, to)


@pytest.mark.parametrize("step", ["backup", "proof"])
async def test_a_stop_ends_it_and_leaves_what_was_there(
    data_dir: Path, to: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(data_dir) as engine:
        await add(engine, "a")
        await back_up(engine, to)
        before = {path.name: path.read_bytes() for path in to.iterdir()}
        await add(engine, "b")
        loop, is_stopped = asyncio.get_running_loop(), engine.is_stopped

        def stopping() -> bool:
            loop.call_soon_threadsafe(engine.stop)
            while not is_stopped():
                pass
            return True

        monkeypatch.setattr(engine, "is_stopped", stopping)
        with pytest.raises(Stopping):
            await (back_up(engine, to) if step == "backup" else verify(engine, to))
        monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in to.iterdir()} == before
    assert not list(data_dir.glob("staging-*"))


async def test_after_a_stop_nothing_is_begun(data_dir: Path, to: Path) -> None:
    async with running(data_dir) as engine:
        engine.stop()
        with pytest.raises(Stopping):
            await back_up(engine, to)
        with pytest.raises(Stopping):
            await verify(engine, to)
    assert not to.exists()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "dest"),
        ({"dest": "relative"}, "dest"),
        ({"dest": 7}, "dest"),
        ({"dest": "/a\0b"}, "dest"),
        ({"dest": ""}, "dest"),
    ],
)
async def test_arguments_are_meant_or_refused(data_dir: Path, arguments: dict[str, Any], field: str) -> None:
    async with running(data_dir) as engine:
        with pytest.raises(Invalid) as refused:
            await engine.backups.back_up(arguments, nobody)
        assert refused.value.details == {"field": field}
        with pytest.raises(Invalid):
            await engine.backups.verify({"src": arguments.get("dest")}, nobody)


@pytest.mark.parametrize("arguments", [{"with_tokens": "yes"}, {"with_token": True}])
async def test_a_misspelt_or_strange_argument_is_refused(data_dir: Path, to: Path, arguments: dict[str, Any]) -> None:
    async with running(data_dir) as engine:
        with pytest.raises(Invalid) as refused:
            await back_up(engine, to, **arguments)
        assert refused.value.details == {"field": next(iter(arguments))}
        with pytest.raises(Invalid):
            await engine.backups.verify({"src": str(to), **arguments}, nobody)
        assert not to.exists()


async def test_a_backup_cannot_stand_in_the_data_directory(data_dir: Path, tmp_path: Path) -> None:
    async with running(data_dir) as engine:
        (tmp_path / "link").symlink_to(data_dir)
        for to in (data_dir, data_dir / "copy", tmp_path / "link" / "copy", tmp_path / "x" / ".." / "data" / "copy"):
            with pytest.raises(BackupRefused, match="in the data directory"):
                await back_up(engine, to)
        assert not (data_dir / "copy").exists()


async def test_a_directory_that_is_used_otherwise_is_left_as_it_is(data_dir: Path, tmp_path: Path) -> None:
    async with running(data_dir) as engine:
        home = tmp_path / "home"
        home.mkdir()
        home.chmod(0o755)
        (home / "thesis.odt").write_text("years")
        for to in (home, tmp_path):
            with pytest.raises(BackupRefused, match="other things"):
                await back_up(engine, to)
        assert home.stat().st_mode & 0o777 == 0o755
        assert [path.name for path in home.iterdir()] == ["thesis.odt"]


async def test_what_the_disk_refuses_is_said_without_a_path(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    async with running(data_dir) as engine:
        for to in (tmp_path / "file", tmp_path / "file" / "copy"):
            with pytest.raises(DiskFault) as refused:
                await back_up(engine, to)
            assert str(tmp_path) not in refused.value.message
        with pytest.raises(BackupRefused, match="there is no backup"):
            await verify(engine, tmp_path / "nowhere")


async def test_whoever_asks_hears_how_far_it_is(data_dir: Path, to: Path) -> None:
    told: list[str] = []

    async def progress(done: float, total: float, sentence: str) -> None:
        told.append(sentence)

    async with running(data_dir) as engine:
        await add(engine, "a")
        await engine.backups.back_up({"dest": str(to)}, progress)
        await engine.backups.verify({"src": str(to)}, progress)
        await until(lambda: "replaying the log" in told)
    assert {"copying", "reading log-1"} <= set(told)


async def test_a_proof_file_that_was_changed_is_noticed_by_whoever_asks(data_dir: Path, to: Path) -> None:
    async with running(data_dir) as engine:
        await back_up(engine, to)
        await verify(engine, to)
        (to / PROVEN).write_bytes((to / PROVEN).read_bytes().replace(b"1", b"2", 1))
        with pytest.raises(BackupRefused, match=PROVEN):
            await verify(engine, to)


async def test_an_index_found_damaged_stops_the_engine_as_a_reader_would(
    data_dir: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*arguments: object) -> None:
        raise apsw.CorruptError("database disk image is malformed")

    monkeypatch.setattr(backup, "state_hash", damaged)
    directory = RealFiles(data_dir)
    directory.prepare()
    engine = Engine(directory, lambda: [NOTEBOOK], SystemClock())
    run = asyncio.ensure_future(engine.run())
    with pytest.raises(StoreFailed):
        await back_up(engine, to)
    with pytest.raises(StoreFailed):
        await run
    assert not list(data_dir.glob("index-*"))


# The schedule.


async def test_the_schedule_begins_soon_after_the_start_and_then_keeps_its_period(data_dir: Path, to: Path) -> None:
    clock = ManualClock()
    sleeper = Sleeper(clock)
    async with running(data_dir, clock=clock, sleeper=sleeper, to=to) as engine:
        await sleeper.asleep(1)
        assert engine.health()["last_proven_restore_ms"] == START_MS
        assert engine.status() == "ok"
        await add(engine, "a")
        sleeper.pass_ms(EVERY_MS - 1)
        await sleeper.asleep(2)
        assert engine.health()["last_proven_restore_ms"] == START_MS
        sleeper.pass_ms(1)
        await sleeper.asleep(3)
        assert engine.health()["last_proven_restore_ms"] == START_MS + EVERY_MS
        assert max(sleeper.asked) <= 60, "a machine that was suspended notices soon"
        assert sleeper.asked[1] == 0.001
        assert (await verify(engine, to))["live"] == 1


async def test_a_restart_knows_when_a_restore_was_last_proven(data_dir: Path, to: Path) -> None:
    clock = ManualClock()
    sleeper = Sleeper(clock)
    async with running(data_dir, clock=clock, sleeper=sleeper, to=to):
        await sleeper.asleep(1)
    clock.pass_ms(HOUR_MS)
    later = Sleeper(clock)
    async with running(data_dir, clock=clock, sleeper=later, to=to) as engine:
        await later.asleep(1)
        assert engine.health()["last_proven_restore_ms"] == START_MS, "proven then, not merely written"
        later.pass_ms(EVERY_MS - HOUR_MS)
        await later.asleep(2)
        assert engine.health()["last_proven_restore_ms"] == START_MS + EVERY_MS


async def test_without_a_schedule_nothing_happens_and_health_says_never(data_dir: Path) -> None:
    clock = ManualClock()
    sleeper = Sleeper(clock)
    async with running(data_dir, clock=clock, sleeper=sleeper) as engine:
        clock.pass_ms(BACKUP_EVERY_S_MAX * 1000)
        assert engine.health()["last_proven_restore_ms"] is None
        assert engine.status() == "ok"
    assert sleeper.asked == []


async def test_a_failure_is_told_and_tried_again_in_the_next_period(
    data_dir: Path, to: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    sleeper = Sleeper(clock)
    to.write_text("a file where the directory should be")
    with caplog.at_level(logging.ERROR, "convmem"):
        async with running(data_dir, clock=clock, sleeper=sleeper, to=to) as engine:
            await sleeper.asleep(1)
            assert engine.status() == "degraded"
            (reason,) = engine.health()["reasons"]
            assert "the last backup failed (IO_ERROR: " in reason
            assert str(to) not in reason
            assert f"the backup in {to} failed: IO_ERROR" in caplog.text
            assert engine.health()["last_proven_restore_ms"] is None
            to.unlink()
            sleeper.pass_ms(EVERY_MS)
            await sleeper.asleep(2)
            assert engine.status() == "ok"
            assert engine.health()["last_proven_restore_ms"] == START_MS + EVERY_MS


async def test_a_backup_that_was_made_but_not_proven_is_a_failure(
    data_dir: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    sleeper = Sleeper(clock)
    real = backup.back_up

    def damaged_on_the_way(*arguments: Any, **more: Any) -> Any:
        made = real(*arguments, **more)
        log = to / "log-1"
        log.write_bytes(log.read_bytes()[:-1] + b"?")
        return made

    async with running(data_dir, clock=clock, sleeper=sleeper) as engine:
        await add(engine, "a")
    monkeypatch.setattr(backup, "back_up", damaged_on_the_way)
    async with running(data_dir, clock=clock, sleeper=sleeper, to=to) as engine:
        await sleeper.asleep(1)
        assert "BACKUP_ERROR" in engine.health()["reasons"][0]
        assert engine.health()["last_proven_restore_ms"] is None
        monkeypatch.undo()
        sleeper.pass_ms(EVERY_MS)
        await sleeper.asleep(2)
        assert engine.status() == "ok", "what was damaged is copied anew"


@pytest.mark.parametrize("was_proven", [False, True])
async def test_a_proof_that_grows_old_is_a_reason(data_dir: Path, to: Path, was_proven: bool) -> None:
    clock = ManualClock()
    sleeper = Sleeper(clock)
    if not was_proven:
        to.write_text("a file where the directory should be")
    async with running(data_dir, clock=clock, sleeper=sleeper, to=to) as engine:
        await sleeper.asleep(1)
        clock.pass_ms(2 * EVERY_MS)
        assert not any("no restore" in reason for reason in engine.health()["reasons"])
        clock.pass_ms(1)
        (reason,) = [reason for reason in engine.health()["reasons"] if "no restore" in reason]
        assert ("since 2023-11-14T22:13:20.000Z" in reason) == was_proven
        assert engine.status() == "degraded"


async def test_a_clock_that_was_set_back_delays_no_backup(data_dir: Path, to: Path) -> None:
    clock = ManualClock()
    sleeper = Sleeper(clock)
    async with running(data_dir, clock=clock, sleeper=sleeper, to=to) as engine:
        await sleeper.asleep(1)
        sleeper.pass_ms(-365 * 24 * HOUR_MS)
        await sleeper.asleep(2)
        assert engine.health()["last_proven_restore_ms"] == clock.now_ms()


async def test_a_proof_that_cannot_be_believed_counts_as_none_and_is_made_anew(
    data_dir: Path, to: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    sleeper = Sleeper(clock)
    to.mkdir()
    (to / PROVEN).write_bytes(b'{"proven_at_ms": 99999999999999}\n')
    async with running(data_dir, clock=clock, sleeper=sleeper, to=to) as engine:
        await sleeper.asleep(1)
        assert "cannot be used" in caplog.text
        assert engine.health()["last_proven_restore_ms"] == START_MS
        assert manifest.read(RealFiles(to), PROVEN, Proof) is not None


async def test_a_schedule_waits_for_its_turn(data_dir: Path, to: Path, tmp_path: Path) -> None:
    clock = ManualClock()
    sleeper = Sleeper(clock)
    async with running(data_dir, clock=clock, sleeper=sleeper, to=to) as engine:
        await sleeper.asleep(1)
        first = asyncio.ensure_future(back_up(engine, tmp_path / "own"))
        sleeper.pass_ms(EVERY_MS)
        await first
        await sleeper.asleep(2)
        assert engine.status() == "ok"


async def test_damage_in_the_log_is_a_reason_and_the_good_backup_stays(data_dir: Path, to: Path) -> None:
    clock = ManualClock()
    sleeper = Sleeper(clock)
    async with running(data_dir, clock=clock, sleeper=sleeper, to=to) as engine:
        await sleeper.asleep(1)
        await add(engine, "a" * 100, "b" * 100)
        sleeper.pass_ms(EVERY_MS)
        await sleeper.asleep(2)
        log = data_dir / "convmem.log"
        log.write_bytes(log.read_bytes()[:80] + b"?" + log.read_bytes()[81:])
        sleeper.pass_ms(EVERY_MS)
        await sleeper.asleep(3)
        assert any("LOG_CORRUPT" in reason for reason in engine.health()["reasons"])
        with pytest.raises(LogCorrupt):
            await back_up(engine, to)
        assert (await verify(engine, to))["live"] == 2
