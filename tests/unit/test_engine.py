"""engine.py: phases, health, damage."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import apsw
import pytest

from convmem import engine as engine_module
from convmem.clock import SystemClock
from convmem.domain import Origin
from convmem.engine import Engine
from convmem.errors import Busy, LogCorrupt, Stopping, StoreFailed
from convmem.files import RealFiles
from convmem.phases import Phase
from convmem.store.log import Position
from convmem.store.store import Store
from tests.support import engines
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK, Add, Strike, notes

ORIGIN = Origin("laptop", "http", "tester/1")


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Engine]:
    engine = Engine(RealFiles(directory), lambda: [NOTEBOOK], SystemClock())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        yield engine
        engine.stop()


async def until(fact: object, engine: Engine) -> None:
    """Wait until health says `fact` among its reasons."""
    async with asyncio.timeout(10):
        while not any(str(fact) in reason for reason in engine.reasons()):
            await asyncio.sleep(0)


async def fill(directory: Path, count: int) -> None:
    async with running(directory) as engine:
        access = engine.access(ORIGIN)
        for number in range(count):
            await access.write(Add((f"note {number} " + "x" * 500,)))


async def test_a_call_that_comes_while_the_store_is_opened_waits_for_it(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        assert engine.phase is Phase.OPENING
        await engine.access(ORIGIN).write(Add(("a",)))
        assert [note for _, note in await engine.access(ORIGIN).read(notes)] == ["a"]
        assert engine.status() == "ok"


async def test_each_visit_to_a_reader_is_noted_with_what_it_took(tmp_path: Path) -> None:
    clock = ManualClock()

    def look(connection: apsw.Connection, elapsed_ms: int) -> int:
        clock.pass_ms(elapsed_ms)
        return elapsed_ms

    async with engines.running(tmp_path, clock=clock) as engine:
        access = engine.access(ORIGIN)
        await access.write(Add(("a",)))
        assert [await access.read(look, 5), await access.read(look, 7)] == [5, 7]
        assert await access.search(notes) is None
        assert access.visits == [("look", 5.0), ("look", 7.0), ("notes", 0.0)]
        assert engine.access(ORIGIN).visits == []


async def test_while_the_index_is_folded_calls_are_busy_with_progress_and_health_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path, 3)
    (tmp_path / "index-1.db").unlink()
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()
    fold = Store.catch_up

    def slow(store: Store, report: object, is_stopped: object) -> int:
        report(0, 1234)  # type: ignore[operator]
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(10)
        return fold(store, report, is_stopped)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "catch_up", slow)
    monkeypatch.setattr(engine_module, "OPENING_WAIT_MS_MAX", 20)
    async with running(tmp_path) as engine:
        await until("1234", engine)
        with pytest.raises(Busy) as busy:
            await engine.access(ORIGIN).write(Add(("a",)))
        assert busy.value.details["total"] == 1234
        assert engine.status() == "degraded"
        assert any("1234" in reason for reason in engine.health()["reasons"])
        gate.set()
        async with asyncio.timeout(10):
            while engine.phase is not Phase.READY:
                await asyncio.sleep(0)
        assert engine.status() == "ok"
        assert engine.health()["recovery"]["entries_replayed"] == 3


async def test_a_damaged_log_refuses_the_start_with_file_and_offset(tmp_path: Path) -> None:
    await fill(tmp_path, 3)
    log = tmp_path / "convmem.log"
    log.write_bytes(log.read_bytes()[:-1])
    engine = Engine(RealFiles(tmp_path), lambda: [NOTEBOOK], SystemClock())
    with pytest.raises(LogCorrupt) as refused:
        await engine.run()
    assert refused.value.details["file"] == "convmem.log"
    assert engine.status() == "failed"
    with pytest.raises(StoreFailed):
        await engine.access(ORIGIN).write(Add(("a",)))


async def test_the_scrub_finds_damage_in_old_frames_and_the_next_start_refuses(tmp_path: Path) -> None:
    await fill(tmp_path, 5)
    log = tmp_path / "convmem.log"
    data = bytearray(log.read_bytes())
    data[70] ^= 4
    log.write_bytes(bytes(data))
    async with running(tmp_path) as engine:
        await until("damaged", engine)
        assert engine.status() == "degraded"
        await engine.access(ORIGIN).write(Add(("still works",)))
    with pytest.raises(LogCorrupt):
        await Engine(RealFiles(tmp_path), lambda: [NOTEBOOK], SystemClock()).run()


async def test_health_says_how_much_of_the_log_was_verified(tmp_path: Path) -> None:
    await fill(tmp_path, 5)
    async with running(tmp_path) as engine:
        await engine.ready()
        async with asyncio.timeout(10):
            while engine.health()["log_verified_bytes"] < (tmp_path / "convmem.log").stat().st_size:
                await asyncio.sleep(0)
        assert engine.status() == "ok"


async def test_an_index_found_damaged_while_reading_stops_the_engine_and_is_made_anew(tmp_path: Path) -> None:
    await fill(tmp_path, 60)

    def damaged(connection: apsw.Connection) -> None:
        raise apsw.CorruptError("database disk image is malformed")

    engine = Engine(RealFiles(tmp_path), lambda: [NOTEBOOK], SystemClock())
    run = asyncio.ensure_future(engine.run())
    with pytest.raises(StoreFailed):
        await engine.access(ORIGIN).read(damaged)
    with pytest.raises(StoreFailed):
        await run
    assert engine.status() == "failed"
    assert not list(tmp_path.glob("index-*"))
    async with running(tmp_path) as engine:
        assert len(await engine.access(ORIGIN).read(notes)) == 60


async def test_a_log_removed_under_the_daemon_fails_the_next_write_and_is_not_made_again(tmp_path: Path) -> None:
    engine = Engine(RealFiles(tmp_path), lambda: [NOTEBOOK], SystemClock())
    run = asyncio.ensure_future(engine.run())
    await engine.access(ORIGIN).write(Add(("a",)))
    (tmp_path / "convmem.log").unlink()
    with pytest.raises(StoreFailed):
        await engine.access(ORIGIN).write(Add(("b",)))
    assert engine.status() == "failed"
    with pytest.raises(StoreFailed):
        await run
    assert not (tmp_path / "convmem.log").exists()
    with pytest.raises(LogCorrupt):
        await Engine(RealFiles(tmp_path), lambda: [NOTEBOOK], SystemClock()).run()


async def test_after_a_stop_calls_are_told_so(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.ready()
        engine.stop()
        assert engine.status() == "stopping"
        with pytest.raises(Stopping):
            await engine.access(ORIGIN).write(Add(("late",)))


async def test_reads_and_health_write_nothing(tmp_path: Path) -> None:
    await fill(tmp_path, 20)
    async with running(tmp_path) as engine:
        await engine.access(ORIGIN).write(Add(("a",)))
        before = engine.health()["io"]
        for _ in range(50):
            await engine.access(ORIGIN).read(notes)
        assert engine.health()["io"] == before
        assert before["log"]["writes"] == 1


async def test_long_work_ends_before_the_store_is_closed_whoever_asked_for_it(tmp_path: Path) -> None:
    is_begun, go_on, done = asyncio.Event(), asyncio.Event(), []

    async def work(engine: Engine) -> int:
        is_begun.set()
        await go_on.wait()
        done.append(await engine.access(ORIGIN).read(notes))
        return 7

    async with running(tmp_path) as engine:
        asking = asyncio.ensure_future(engine.apart(work(engine)))
        await is_begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        go_on.set()
        assert await engine.apart(work(engine)) == 7
    assert done == [[], []]


async def test_what_long_work_is_refused_is_told_to_whoever_asked_for_it(tmp_path: Path) -> None:
    async def work() -> None:
        raise Busy("not now", retry_after_ms=1)

    async with running(tmp_path) as engine:
        with pytest.raises(Busy):
            await engine.apart(work())
        await engine.access(ORIGIN).write(Add(("goes on",)))


async def test_a_stop_waits_for_long_work_that_has_begun_and_lets_none_begin(tmp_path: Path) -> None:
    go_on, ended = asyncio.Event(), []

    async def work() -> None:
        await go_on.wait()
        ended.append("work")

    engine = Engine(RealFiles(tmp_path), lambda: [NOTEBOOK], SystemClock())
    run = asyncio.ensure_future(engine.run())
    run.add_done_callback(lambda _: ended.append("engine"))
    await engine.ready()
    asking = asyncio.ensure_future(engine.apart(work()))
    await asyncio.sleep(0)
    engine.stop()
    with pytest.raises(Stopping):
        await engine.apart(work())
    assert not run.done()
    go_on.set()
    await asyncio.gather(run, asking)
    assert ended == ["work", "engine"]


async def test_without_writes_writes_are_busy_and_reads_go_on(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        await access.write(Add(("before",)))
        with engine.without_writes("an import runs"):
            with pytest.raises(Busy) as refused:
                await access.write(Add(("meanwhile",)))
            assert refused.value.message == "an import runs"
            assert refused.value.details["retry_after_ms"] > 0
            assert [note for _, note in await access.read(notes)] == ["before"]
            assert engine.status() == "ok"
        assert (await access.write(Add(("afterwards",))))["sequence"] == 2


async def test_writes_are_taken_again_although_what_kept_them_out_has_failed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        with suppress(KeyError), engine.without_writes("an import runs"):
            raise KeyError
        assert (await engine.access(ORIGIN).write(Add(("a",))))["sequence"] == 1


async def test_what_is_committed_is_what_was_acknowledged(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.ready()
        assert engine.committed() == Position(0, 1)
        await engine.access(ORIGIN).write(Add(("a",)))
        assert engine.committed() == Position((tmp_path / "convmem.log").stat().st_size, 2)
        await engine.access(ORIGIN).write(Strike(1))
        await engine.access(ORIGIN).rebuild()
        assert engine.committed() == Position((tmp_path / "convmem.log").stat().st_size, 3)
        assert engine.health()["generation"] == "2"


async def test_health_counts_on_across_a_new_generation(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for number in range(1, 20):
            await engine.access(ORIGIN).write(Add(("x" * 1_000,)))
            await engine.access(ORIGIN).write(Strike(2 * number - 1))
        before = engine.health()["io"]
        await engine.access(ORIGIN).rebuild()
        after = engine.health()["io"]
        for part in ("log", "index"):
            for what in ("writes", "bytes", "flushes"):
                assert after[part][what] > before[part][what], (part, what)
