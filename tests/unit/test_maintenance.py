"""maintenance.py: compaction of a store in use, as whoever asks for it sees it."""

import asyncio
import errno
from contextlib import suppress
from pathlib import Path

import pytest

from convmem.clock import SystemClock
from convmem.domain import Waste
from convmem.engine import Engine
from convmem.errors import Busy, DiskFault, LogCorrupt, Stopping, StorageFull, StoreFailed
from convmem.files import RealFile, RealFiles
from convmem.store.shelf import index_name
from tests.support.daemons import complaints
from tests.support.engines import ORIGIN, PATIENCE_S, Gate, Tools, names, running, tools
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK, Add, Strike, notes
from tests.support.waiting import until


async def fill(directory: Path, count: int = 20, struck: int = 5) -> list[tuple[int, str]]:
    """Write notes and strike some of them out; what is left."""
    async with running(directory) as engine:
        access = engine.access(ORIGIN)
        await asyncio.gather(*(access.write(Add((f"note {number:03} " + "x" * 200,))) for number in range(count)))
        for number in range(struck):
            await access.write(Strike(3 * number + 1))
        return await access.read(notes)


async def test_compaction_says_what_it_did(tmp_path: Path) -> None:
    kept = await fill(tmp_path)
    before = (tmp_path / "convmem.log").stat().st_size
    async with running(tmp_path) as engine:
        facts = dict(await engine.access(ORIGIN).rebuild())
        assert isinstance(facts.pop("duration_ms"), int)
        assert facts == {
            "rebuilt": True,
            "live": 15,
            "removed": 5,
            "dangling_removed": 0,
            "log_bytes_before": before,
            "log_bytes_after": (tmp_path / "convmem.log").stat().st_size,
            "generation": "2",
        }
        assert facts["log_bytes_after"] < before
        assert await engine.access(ORIGIN).read(notes) == kept
        assert names(tmp_path) == ["convmem.log", "index-2.db"]
        health = engine.health()
        assert (health["generation"], health["sequence"], health["status"]) == ("2", "25", "ok")
        assert health["last_compaction_ms"] is not None
        assert health["index_bytes"] >= (tmp_path / "index-2.db").stat().st_size > 0
    async with running(tmp_path) as engine:
        assert await engine.access(ORIGIN).read(notes) == kept
        assert engine.health()["recovery"]["index"] == "kept"
        assert (await engine.access(ORIGIN).write(Add(("next",))))["sequence"] == 26


async def test_with_nothing_to_do_nothing_is_written(tmp_path: Path) -> None:
    await fill(tmp_path, struck=0)
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        await engine.ready()
        before, stored = engine.health()["io"], contents(tmp_path)
        facts = await access.rebuild()
        assert (facts["rebuilt"], facts["live"], facts["removed"], facts["generation"]) == (False, 20, 0, "1")
        assert facts["log_bytes_before"] == facts["log_bytes_after"]
        assert engine.health()["io"] == before
        assert contents(tmp_path) == stored
        assert engine.health()["last_compaction_ms"] is None
        await access.write(Strike(1))
        assert (await access.rebuild())["rebuilt"] is True
        assert (await access.rebuild())["rebuilt"] is False


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if not path.name.endswith("-shm")}


async def test_reads_and_writes_go_on_meanwhile_and_nothing_is_lost(tmp_path: Path) -> None:
    kept = await fill(tmp_path)
    gate = Gate()
    async with running(tmp_path, lambda: [gate.domain]) as engine:
        access = engine.access(ORIGIN)
        compacting = asyncio.ensure_future(access.rebuild())
        await gate.reached()
        assert await access.read(notes) == kept
        answers = [await access.write(Add((f"meanwhile {number}",))) for number in range(10)]
        await access.write(Strike(answers[0]["sequence"]))
        assert len(await access.read(notes)) == 15 + 9
        assert engine.status() == "ok"
        gate.open()
        assert (await compacting)["rebuilt"] is True
        last = await access.write(Add(("afterwards",)))
        assert last["sequence"] == answers[-1]["sequence"] + 2
        found = await access.read(notes)
        assert found[:15] == kept
        assert [note for _, note in found[15:]] == [*(f"meanwhile {number}" for number in range(1, 10)), "afterwards"]
    async with running(tmp_path) as engine:
        assert await engine.access(ORIGIN).read(notes) == found


async def test_a_crowd_writes_and_reads_through_several_compactions_without_a_refusal(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        is_done = asyncio.Event()
        written: list[int] = []

        async def write() -> None:
            while not is_done.is_set():
                written.append((await access.write(Add(("of the crowd",))))["sequence"])
                if len(written) % 7 == 0:
                    await access.write(Strike(written.pop(0)))

        async def read() -> None:
            count = 0
            while not is_done.is_set():
                found = len(await access.read(notes))
                assert found >= 15
                count += 1
            assert count

        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(write())
                tasks.create_task(read())
            for expected in range(2, 6):
                await until(lambda: len(written) >= 2)
                await access.write(Strike((await access.write(Add(("waste",))))["sequence"]))
                assert (await access.rebuild())["generation"] == str(expected)
            is_done.set()
        found = {sequence for sequence, _ in await access.read(notes)}
        assert set(written) <= found
        assert names(tmp_path) == ["convmem.log", "index-5.db"]


async def test_one_new_generation_is_made_at_a_time(tmp_path: Path) -> None:
    await fill(tmp_path)
    gate = Gate()
    async with running(tmp_path, lambda: [gate.domain]) as engine:
        access = engine.access(ORIGIN)
        first = asyncio.ensure_future(access.rebuild())
        await gate.reached()
        with pytest.raises(Busy) as refused:
            await asyncio.wait_for(access.rebuild(), PATIENCE_S)
        assert refused.value.details["retry_after_ms"] > 0
        gate.open()
        assert (await first)["generation"] == "2"
        await access.write(Strike(2))
        assert (await access.rebuild())["generation"] == "3"


async def test_who_goes_away_does_not_take_the_compaction_along(tmp_path: Path) -> None:
    await fill(tmp_path)
    gate = Gate()
    async with running(tmp_path, lambda: [gate.domain]) as engine:
        asking = asyncio.ensure_future(engine.access(ORIGIN).rebuild())
        await gate.reached()
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        gate.open()
        await until(lambda: engine.health()["generation"] == "2")
        await until(lambda: not engine.renewal.locked())
        assert names(tmp_path) == ["convmem.log", "index-2.db"]


async def test_a_stop_abandons_it_and_the_store_is_as_it_was(tmp_path: Path) -> None:
    kept = await fill(tmp_path)
    log = (tmp_path / "convmem.log").read_bytes()
    gate = Gate()
    async with running(tmp_path, lambda: [gate.domain]) as engine:
        compacting = asyncio.ensure_future(engine.access(ORIGIN).rebuild())
        await gate.reached()
        assert any(name.startswith("staging") for name in names(tmp_path))
        engine.stop()
        gate.open()
        with pytest.raises(Stopping):
            await compacting
    assert names(tmp_path) == ["convmem.log", "index-1.db"]
    assert (tmp_path / "convmem.log").read_bytes() == log
    async with running(tmp_path) as engine:
        assert await engine.access(ORIGIN).read(notes) == kept
        assert engine.health()["recovery"]["index"] == "kept"


async def test_a_stop_comes_too_late_for_a_compaction_that_has_ended_and_it_is_asked_for_in_vain(
    tmp_path: Path,
) -> None:
    await fill(tmp_path)
    async with running(tmp_path) as engine:
        assert (await engine.access(ORIGIN).rebuild())["rebuilt"] is True
        engine.stop()
        with pytest.raises(Stopping):
            await engine.access(ORIGIN).rebuild()


async def test_whoever_asks_for_it_is_told_how_far_it_is(tmp_path: Path) -> None:
    await fill(tmp_path)
    told: list[tuple[float, float, str]] = []

    async def progress(done: float, total: float, sentence: str) -> None:
        told.append((done, total, sentence))

    async with running(tmp_path) as engine:
        await engine.access(ORIGIN, progress).rebuild()
        await until(lambda: len({sentence for *_, sentence in told}) == 3)
    assert all(0 <= done <= total for done, total, _ in told)


async def test_the_log_speaks_where_a_row_of_the_index_was_changed_on_the_disk(tmp_path: Path) -> None:
    kept = await fill(tmp_path, count=200)
    path = tmp_path / "index-1.db"
    data = path.read_bytes()
    assert data.count(b"note 007 ") >= 1
    path.write_bytes(data.replace(b"note 007 ", b"note 9\xff7 "))
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        assert (await access.rebuild())["rebuilt"] is True
        assert await access.read(notes) == kept


async def test_an_index_whose_pages_are_damaged_is_made_anew_by_it(tmp_path: Path) -> None:
    kept = await fill(tmp_path, count=200, struck=0)
    async with running(tmp_path) as engine:
        await engine.ready()
        assert (await engine.access(ORIGIN).rebuild())["rebuilt"] is False
    path = tmp_path / "index-1.db"
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\xaa" * 4096
    path.write_bytes(bytes(data))
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        facts = await access.rebuild()
        assert (facts["rebuilt"], facts["live"]) == (True, 200)
        assert await access.read(notes) == kept


async def test_a_damaged_log_is_not_rewritten_and_health_says_so(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        await until(lambda: engine.health().get("log_verified_bytes") == (tmp_path / "convmem.log").stat().st_size)
        path = tmp_path / "convmem.log"
        data = bytearray(path.read_bytes())
        data[500] ^= 1
        with path.open("r+b") as file:
            file.write(data)
        with pytest.raises(LogCorrupt) as refused:
            await access.rebuild()
        assert refused.value.details["offset"] <= 500
        await until(lambda: engine.status() == "degraded")
        assert any("damaged" in reason for reason in engine.reasons())
        assert path.read_bytes() == bytes(data)
        assert names(tmp_path) == ["convmem.log", "index-1.db"]
        assert (await access.write(Add(("still works",))))["sequence"] == 26


class Refusing(RealFiles):
    """A disk that raises `error` where `refuses` says."""

    refuses = ""
    error = errno.ENOSPC

    def stage(self, name: str) -> RealFile:
        self._refuse("stage")
        return super().stage(name)

    def rename(self, old: str, new: str) -> None:
        self._refuse("rename")
        super().rename(old, new)

    def sync_directory(self) -> None:
        self._refuse("sync_directory")
        super().sync_directory()

    def _refuse(self, name: str) -> None:
        if name == self.refuses:
            raise OSError(self.error, "made to fail")


@pytest.mark.parametrize("where", ["stage", "rename"])
async def test_a_full_disk_refuses_it_and_the_store_goes_on(tmp_path: Path, where: str) -> None:
    kept = await fill(tmp_path)
    disk = Refusing(tmp_path)
    async with running(disk) as engine:
        access = engine.access(ORIGIN)
        await engine.ready()
        disk.refuses = where
        with pytest.raises(StorageFull):
            await access.rebuild()
        assert names(tmp_path) == ["convmem.log", "index-1.db"]
        assert await access.read(notes) == kept
        await access.write(Add(("goes on",)))
        disk.refuses = ""
        assert (await access.rebuild())["rebuilt"] is True


async def test_when_nobody_can_know_which_generation_is_there_the_engine_stops_and_a_start_heals_it(
    tmp_path: Path,
) -> None:
    kept = await fill(tmp_path)
    disk = Refusing(tmp_path)
    disk.error = errno.EIO
    engine = Engine(disk, lambda: [NOTEBOOK], SystemClock())
    run = asyncio.ensure_future(engine.run())
    await engine.ready()
    disk.refuses = "sync_directory"
    with pytest.raises(StoreFailed):
        await engine.access(ORIGIN).rebuild()
    with pytest.raises(StoreFailed):
        await run
    assert engine.status() == "failed"
    async with running(tmp_path) as engine:
        assert await engine.access(ORIGIN).read(notes) == kept
        assert not [name for name in names(tmp_path) if name.startswith("staging")]


async def test_tails_that_were_cut_off_are_something_to_do(tmp_path: Path) -> None:
    await fill(tmp_path, struck=0)
    with (tmp_path / "convmem.log").open("ab") as log:
        log.write(b"a tail of nothing")
    async with running(tmp_path) as engine:
        await engine.ready()
        assert any(name.endswith(".tail") for name in names(tmp_path))
        assert (await engine.access(ORIGIN).rebuild())["rebuilt"] is True
        assert names(tmp_path) == ["convmem.log", "index-2.db"]
        assert (await engine.access(ORIGIN).rebuild())["rebuilt"] is False


# With messages, through their tools.


async def linked(store: Tools) -> tuple[dict[str, object], dict[str, object]]:
    """A message that points at another, and that other."""
    target = await store.say("the target")
    links = {
        "relations": [{"type": "after", "message_id": target["message_id"]}],
        "source_message_ids": [target["message_id"]],
    }
    pointing = await store.say("pointing", metadata=links)
    return target, pointing


async def message(store: Tools, message_id: object) -> dict[str, object]:
    found: dict[str, object] = (await store.call("read_messages", view="context", message_id=message_id))["target"]
    return found


async def test_references_to_what_is_gone_go_and_revision_and_time_stay(tmp_path: Path) -> None:
    clock = ManualClock()
    async with tools(tmp_path, clock) as store:
        target, pointing = await linked(store)
        clock.pass_ms(1_000)
        await store.call("update_message", message_id=pointing["message_id"], metadata={"importance": 7})
        clock.pass_ms(1_000)
        await store.call("delete_message", message_id=target["message_id"])
        before = await message(store, pointing["message_id"])
        clock.pass_ms(1_000)
        facts = await store.call("rebuild_index")
        assert (facts["removed"], facts["dangling_removed"], facts["live"]) == (1, 2, 1)
        after = await message(store, pointing["message_id"])
        assert before["metadata"]["relations"]
        assert (after["metadata"]["relations"], after["metadata"]["source_message_ids"]) == ([], [])
        for field in ("revision", "updated_at", "timestamp", "sequence", "content", "session_id", "origin"):
            assert after[field] == before[field], field
        assert after["revision"] == 2
        assert (await store.call("rebuild_index"))["rebuilt"] is False
    assert complaints(tmp_path) == []


async def test_a_dangling_reference_alone_is_something_to_do(tmp_path: Path) -> None:
    async with tools(tmp_path) as store:
        target, _ = await linked(store)
        await store.call("rebuild_index")
        await store.call("delete_message", message_id=target["message_id"])
        await store.call("rebuild_index")
        assert (await store.call("rebuild_index"))["rebuilt"] is False
        domain = store.engine.parts.domains[0]
        assert await store.engine.access(ORIGIN).read(domain.waste) == Waste()


async def test_receipts_outlive_compaction_also_those_of_messages_that_are_gone(tmp_path: Path) -> None:
    async with tools(tmp_path) as store:
        kept = await store.say("kept", idempotency_key="k")
        gone = await store.say("gone", idempotency_key="g")
        await store.call("delete_message", message_id=gone["message_id"])
        assert (await store.call("rebuild_index"))["rebuilt"] is True
        for key, content, first in (("k", "kept", kept), ("g", "gone", gone)):
            again = await store.say(content, idempotency_key=key)
            assert again == {**first, "replayed": True}
    async with tools(tmp_path) as store:
        assert (await store.say("gone", idempotency_key="g"))["message_id"] == gone["message_id"]
        assert (await store.call("get_system_health"))["live"] == 1


async def test_health_counts_the_deleted_of_which_bytes_are_there(tmp_path: Path) -> None:
    async with tools(tmp_path) as store:
        written = [await store.say(str(number)) for number in range(5)]
        for one in written[:3]:
            await store.call("delete_message", message_id=one["message_id"])
        health = await store.call("get_system_health")
        assert (health["live"], health["deleted"]) == (2, 3)
        assert (await store.call("rebuild_index"))["removed"] == 3
        health = await store.call("get_system_health")
        assert (health["live"], health["deleted"]) == (2, 0)
        await store.call("delete_message", message_id=written[3]["message_id"])
        assert (await store.call("get_system_health"))["deleted"] == 1


async def test_ids_rise_across_compaction_and_restart_with_the_clock_set_back(tmp_path: Path) -> None:
    clock = ManualClock()
    made: list[str] = []
    for remove_index in (False, True):
        async with tools(tmp_path, clock) as store:
            made += [str((await store.say(text))["message_id"]) for text in "ab"]
            # The greatest id is of a message that is gone from the log.
            await store.call("delete_message", message_id=made[-1])
            await store.call("rebuild_index")
        clock.pass_ms(-3_600_000)
        if remove_index:
            for path in tmp_path.glob("index-*"):
                path.unlink()
    async with tools(tmp_path, clock) as store:
        made.append(str((await store.say("c"))["message_id"]))
        health = await store.call("get_system_health")
    assert made == sorted(set(made))
    assert len(made) == 5
    assert health["sequence"] == "7"


async def test_nothing_of_the_old_index_is_held_open_once_its_readers_have_gone(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        await asyncio.gather(*(access.read(notes) for _ in range(8)))
        await access.rebuild()
        await asyncio.gather(*(access.read(notes) for _ in range(8)))

        def held() -> set[str]:
            found = [path.resolve() for path in Path("/proc/self/fd").iterdir()]
            return {path.name for path in found if tmp_path in path.parents}

        # A scrub that was in the middle of the old log lets go of it at its next step.
        await until(lambda: not [name for name in held() if "deleted" in name])
        assert index_name(2) in held()


async def test_an_index_of_an_older_generation_that_was_left_is_removed_by_the_next(tmp_path: Path) -> None:
    await fill(tmp_path, struck=0)
    async with running(tmp_path) as engine:
        await engine.ready()
        assert (await engine.access(ORIGIN).rebuild())["rebuilt"] is False
        (tmp_path / "index-7.db").write_bytes(b"an index that says what was deleted")
        (tmp_path / "cut-1-0-1.tail").write_bytes(b"a tail that says what was deleted")
        assert (await engine.access(ORIGIN).rebuild())["rebuilt"] is True
        assert (await engine.access(ORIGIN).rebuild())["rebuilt"] is False
    assert names(tmp_path) == ["convmem.log", "index-2.db"]


async def test_a_row_that_is_wrong_and_breaks_no_rule_is_found_where_there_is_nothing_else_to_do(
    tmp_path: Path,
) -> None:
    kept = await fill(tmp_path, struck=0)
    path = tmp_path / "index-1.db"
    path.write_bytes(path.read_bytes().replace(b"note 007 ", b"NOTE 007 "))
    async with running(tmp_path) as engine:
        access = engine.access(ORIGIN)
        assert await access.read(notes) != kept
        assert (await access.rebuild())["rebuilt"] is True
        assert await access.read(notes) == kept
        assert (await access.rebuild())["rebuilt"] is False


async def test_a_data_directory_that_was_moved_away_fails_the_call_and_not_the_engine(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    await fill(tmp_path / "data", struck=0)
    async with running(tmp_path / "data") as engine:
        await engine.ready()
        (tmp_path / "data").rename(tmp_path / "moved")
        for ask in (engine.access(ORIGIN).rebuild(), engine.access(ORIGIN).read(notes)):
            with pytest.raises(DiskFault):
                await ask
        engine.scrub.renew()
        await until(lambda: engine.status() == "degraded")
        (tmp_path / "moved").rename(tmp_path / "data")
