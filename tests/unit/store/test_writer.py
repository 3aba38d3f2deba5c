"""store/writer.py: the mailbox and the batches it makes."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.domain import Origin
from convmem.errors import Busy, NotFound, Stopping, StorageFault, StorageFull, StoreFailed
from convmem.limits import (
    BATCH_BYTES_MAX,
    BATCH_COMMANDS_MAX,
    CHECKPOINT_PAGES_BUSY,
    CHECKPOINT_PAGES_IDLE,
    MAILBOX_BYTES_MAX,
    MAILBOX_COMMANDS_MAX,
    TABLE_REST_MS,
    TABLE_WAL_PAGES_MAX,
)
from convmem.store.store import Facts, Store, Ticket
from convmem.store.table_files import TableFiles
from convmem.store.writer import Writer
from convmem.targets import TableFile
from tests.support.notebook import Add, Break, Strike, notes
from tests.support.stores import ORIGIN, Opened, open_store
from tests.support.toy_table import TABLES, Do, Put, shelf, words


@asynccontextmanager
async def running(opened: Opened) -> AsyncIterator[Writer]:
    writer = Writer(opened.store)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(writer.run())
        yield writer
        writer.stop()


class Gated(Store):
    """A store whose commits wait until the test lets them through; it remembers the batches."""

    gate: threading.Event
    batches: list[int]

    def commit(self, tickets: Any) -> list[Any]:
        assert self.gate.wait(10)
        self.batches.append(len(tickets))
        return super().commit(tickets)


def gated() -> tuple[Opened, Gated]:
    opened = open_store()
    opened.store.__class__ = Gated
    store = opened.store
    assert isinstance(store, Gated)
    store.gate, store.batches = threading.Event(), []
    return opened, store


async def taken(writer: Writer) -> None:
    """Return when the writer has taken everything out of its mailbox (and holds it at the gate)."""
    await asyncio.sleep(0)
    while writer.depth:
        await asyncio.sleep(0)


async def test_a_crowd_shares_one_sync() -> None:
    opened = open_store()
    async with running(opened) as writer:
        await asyncio.gather(*(writer.write(Add((str(number),)), ORIGIN) for number in range(200)))
    assert opened.disk.steps.count("sync") <= 3
    assert len(notes(opened.connection)) == 200
    assert opened.check() == []


async def test_a_refusal_spoils_nobody_else() -> None:
    opened = open_store()
    async with running(opened) as writer:
        good, refused, better = await asyncio.gather(
            writer.write(Add(("a",)), ORIGIN),
            writer.write(Strike(9), ORIGIN),
            writer.write(Add(("b",)), ORIGIN),
            return_exceptions=True,
        )
    assert isinstance(refused, NotFound)
    assert (good["sequence"], better["sequence"]) == (1, 2)


async def test_a_lone_caller_waits_for_no_company() -> None:
    opened, store = gated()
    store.gate.set()
    async with running(opened) as writer:
        for number in range(3):
            await writer.write(Add((str(number),)), ORIGIN)
    assert store.batches == [1, 1, 1]


async def test_while_one_batch_syncs_the_next_gathers_up_to_its_bound() -> None:
    opened, store = gated()
    async with running(opened) as writer:
        first = asyncio.ensure_future(writer.write(Add(("first",)), ORIGIN))
        await taken(writer)
        rest = [asyncio.ensure_future(writer.write(Add(("x",)), ORIGIN)) for _ in range(BATCH_COMMANDS_MAX + 1)]
        await asyncio.sleep(0)
        store.gate.set()
        await asyncio.gather(first, *rest)
    assert sum(store.batches) == BATCH_COMMANDS_MAX + 2
    assert max(store.batches) == BATCH_COMMANDS_MAX


@dataclass(frozen=True)
class Heavy(Add):
    """A note that says it is large."""

    size: int = 0

    @property
    def size_bytes(self) -> int:
        return self.size


async def test_a_batch_holds_no_more_bytes_than_its_bound() -> None:
    opened, store = gated()
    opened.store._deciders[Heavy] = opened.store._deciders[Add]
    async with running(opened) as writer:
        asks = [asyncio.ensure_future(writer.write(Heavy(("x",), size=BATCH_BYTES_MAX // 2), ORIGIN)) for _ in range(5)]
        await asyncio.sleep(0)
        store.gate.set()
        await asyncio.gather(*asks)
    assert store.batches == [2, 2, 1]


async def test_a_full_mailbox_is_busy_and_takes_nothing() -> None:
    opened, store = gated()
    async with running(opened) as writer:
        held = asyncio.ensure_future(writer.write(Add(("held",)), ORIGIN))
        await taken(writer)
        asks = [asyncio.ensure_future(writer.write(Add(("x",)), ORIGIN)) for _ in range(MAILBOX_COMMANDS_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(Busy) as busy:
            await writer.write(Add(("y",)), ORIGIN)
        assert busy.value.details["retry_after_ms"] > 0
        store.gate.set()
        await asyncio.gather(held, *asks)
    assert len(notes(opened.connection)) == MAILBOX_COMMANDS_MAX + 1


async def test_a_mailbox_full_of_bytes_is_busy() -> None:
    opened, store = gated()
    opened.store._deciders[Heavy] = opened.store._deciders[Add]
    async with running(opened) as writer:
        asks = [
            asyncio.ensure_future(writer.write(Heavy(("x",), size=MAILBOX_BYTES_MAX // 4), ORIGIN)) for _ in range(4)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await writer.write(Heavy(("y",), size=MAILBOX_BYTES_MAX // 2), ORIGIN)
        store.gate.set()
        await asyncio.gather(*asks)
        assert writer.bytes_held == 0


async def test_a_caller_that_goes_away_takes_nothing_back() -> None:
    opened, store = gated()
    async with running(opened) as writer:
        gone = asyncio.ensure_future(writer.write(Add(("gone",)), ORIGIN))
        waiting = asyncio.ensure_future(writer.write(Add(("waiting",)), ORIGIN))
        await asyncio.sleep(0)
        gone.cancel()
        store.gate.set()
        await waiting
    assert [note for _, note in notes(opened.connection)] == ["gone", "waiting"]


async def test_a_stop_finishes_what_is_in_the_mailbox_and_takes_no_more() -> None:
    opened, store = gated()
    async with running(opened) as writer:
        asks = [asyncio.ensure_future(writer.write(Add((str(number),)), ORIGIN)) for number in range(300)]
        await asyncio.sleep(0)
        writer.stop()
        with pytest.raises(Stopping):
            await writer.write(Add(("late",)), ORIGIN)
        store.gate.set()
        await asyncio.gather(*asks)
    assert len(notes(opened.connection)) == 300


async def test_a_failed_sync_answers_everybody_who_waits_and_ends_the_writer() -> None:
    opened, store = gated()
    opened.disk.fail_at_step = len(opened.disk.steps) + 2
    writer = Writer(opened.store)
    run = asyncio.ensure_future(writer.run())
    first = asyncio.ensure_future(writer.write(Add(("a",)), ORIGIN))
    await taken(writer)
    second = asyncio.ensure_future(writer.write(Add(("b",)), ORIGIN))
    await asyncio.sleep(0)
    store.gate.set()
    for ask in (first, second, run):
        with pytest.raises(StoreFailed):
            await ask
    with pytest.raises(StoreFailed):
        await writer.write(Add(("c",)), ORIGIN)
    assert writer.is_failed


async def test_a_fault_of_ours_ends_the_writer_too() -> None:
    writer = Writer(open_store().store)
    run = asyncio.ensure_future(writer.run())
    with pytest.raises(StoreFailed):
        await writer.write(Break(AssertionError("ours")), ORIGIN)
    with pytest.raises(StoreFailed):
        await run


async def test_a_job_runs_between_two_batches() -> None:
    opened, store = gated()
    seen: list[int] = []
    async with running(opened) as writer:
        before = asyncio.ensure_future(writer.write(Add(("a",)), ORIGIN))
        await asyncio.sleep(0)
        job = asyncio.ensure_future(writer.alone(lambda store: seen.append(store.facts().sequence)))
        await asyncio.sleep(0)
        after = asyncio.ensure_future(writer.write(Add(("b",)), ORIGIN))
        await asyncio.sleep(0)
        store.gate.set()
        await asyncio.gather(before, job, after)
    assert seen == [1]
    assert store.batches == [1, 1]


async def test_a_job_that_is_refused_harms_nobody() -> None:
    def refuse(store: Store) -> None:
        raise StorageFull("full", retry_after_ms=1)

    opened = open_store()
    async with running(opened) as writer:
        with pytest.raises(StorageFull):
            await writer.alone(refuse)
        await writer.write(Add(("a",)), ORIGIN)


async def test_a_writer_told_to_fail_answers_and_ends() -> None:
    writer = Writer(open_store().store)
    run = asyncio.ensure_future(writer.run())
    await writer.write(Add(("a",)), ORIGIN)
    writer.fail(StoreFailed("the index is damaged"))
    with pytest.raises(StoreFailed):
        await run


async def test_facts_are_those_after_the_last_batch() -> None:
    opened = open_store()
    async with running(opened) as writer:
        assert writer.facts.sequence == 0
        await writer.write(Add(("a",)), Origin("laptop", "http"))
        assert writer.facts.sequence == 1
        assert writer.facts.log_bytes == len(opened.log())


def test_a_ticket_keeps_who_left_it() -> None:
    assert Ticket(Add(("a",)), ORIGIN).origin == ORIGIN


class Resting(Store):
    """A store that says how many pages wait, and remembers when it rested."""

    pages: int
    rested: list[int]

    def facts(self) -> Facts:
        return super().facts()._replace(waiting_pages=self.pages)

    def rest(self) -> Facts:
        self.rested.append(self.pages)
        self.pages = 0
        return super().rest()._replace(waiting_pages=0)


@pytest.mark.parametrize(
    ("pages", "rests"), [(CHECKPOINT_PAGES_IDLE - 1, 0), (CHECKPOINT_PAGES_IDLE, 1), (CHECKPOINT_PAGES_BUSY, 1)]
)
async def test_a_writer_without_work_rests_when_enough_pages_wait(pages: int, rests: int) -> None:
    opened = open_store()
    opened.store.__class__ = Resting
    store = opened.store
    assert isinstance(store, Resting)
    store.pages, store.rested = pages, []
    async with running(opened) as writer:
        await writer.write(Add(("a",)), ORIGIN)
        await writer.write(Add(("b",)), ORIGIN)
    assert len(store.rested) == rests


async def test_a_writer_that_is_never_idle_rests_when_it_is_overdue() -> None:
    opened = open_store()
    opened.store.__class__ = Resting
    store = opened.store
    assert isinstance(store, Resting)
    store.pages, store.rested = CHECKPOINT_PAGES_IDLE, []
    async with running(opened) as writer:
        first = asyncio.ensure_future(writer.write(Add(("a",)), ORIGIN))
        job = asyncio.ensure_future(writer.alone(lambda _: setattr(store, "pages", CHECKPOINT_PAGES_BUSY)))
        last = asyncio.ensure_future(writer.write(Add(("b",)), ORIGIN))
        await asyncio.gather(first, job, last)
    assert store.rested[0] in (CHECKPOINT_PAGES_IDLE, CHECKPOINT_PAGES_BUSY)
    assert CHECKPOINT_PAGES_BUSY in store.rested


@asynccontextmanager
async def running_with_tables(opened: Opened) -> AsyncIterator[Writer]:
    tables = TableFiles([TABLES], opened.clock)
    writer = Writer(opened.store, tables)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(writer.run())
        yield writer
        writer.stop()
    tables.close()


async def test_a_table_command_is_durable_before_it_is_answered(tmp_path: Path) -> None:
    file = shelf(tmp_path / "words.db")
    async with running_with_tables(open_store()) as writer:
        for number in range(3):
            answer = await writer.write(Put(file, "key", str(number)), ORIGIN)
            assert answer["version"] == number + 1
            assert words(file.path) == {"key": str(number)}


async def test_a_crowd_of_a_table_shares_one_transaction_and_leaves_the_log_alone(tmp_path: Path) -> None:
    opened = open_store()
    file = shelf(tmp_path / "words.db")
    async with running_with_tables(opened) as writer:
        await writer.write(Put(file, "first"), ORIGIN)
        await asyncio.gather(*(writer.write(Put(file, str(number)), ORIGIN) for number in range(200)))
    assert len(words(file.path)) == 201
    assert opened.log() == b""


class Watched(TableFiles):
    """Table files that begin no commit before those who wait for the stores before it have their answers."""

    store: Store
    commits: list[tuple[str, int, int]]
    answers_before: list[threading.Event]

    def commit(self, file: TableFile, tickets: Any) -> list[Any]:
        assert self.answers_before[len(self.commits)].wait(10)
        self.commits.append((file.path.name, len(tickets), self.store.facts().sequence))
        return super().commit(file, tickets)


async def test_each_store_is_committed_and_answered_by_itself_the_log_first(tmp_path: Path) -> None:
    opened = open_store()
    tables = Watched([TABLES], opened.clock)
    log_answered, first_answered = threading.Event(), threading.Event()
    tables.store, tables.commits, tables.answers_before = opened.store, [], [log_answered, first_answered]
    writer = Writer(opened.store, tables)
    first, second = shelf(tmp_path / "first.db"), shelf(tmp_path / "second.db")

    async def ask(command: Any, answered: threading.Event) -> None:
        await writer.write(command, ORIGIN)
        answered.set()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ask(Put(first, "a"), first_answered))
        tasks.create_task(ask(Put(second, "a"), threading.Event()))
        tasks.create_task(ask(Add(("a",)), log_answered))
        tasks.create_task(ask(Put(first, "b"), first_answered))
        await asyncio.sleep(0)
        writer.stop()
        tasks.create_task(writer.run())
    tables.close()
    assert tables.commits == [("first.db", 2, 1), ("second.db", 1, 1)]
    assert words(first.path) == {"a": "", "b": ""}


async def test_a_file_that_fails_refuses_only_its_own_commands(tmp_path: Path) -> None:
    opened = open_store()
    good, locked, bad = (shelf(tmp_path / f"{name}.db") for name in ("good", "locked", "bad"))
    bad.path.write_bytes(b"\xa5" * 8192)
    foreigner = apsw.Connection(str(locked.path))
    foreigner.execute("PRAGMA journal_mode = WAL")
    foreigner.execute("BEGIN IMMEDIATE")
    async with running_with_tables(opened) as writer:
        asks = (Put(locked, "a"), Put(bad, "a"), Add(("a",)), Put(good, "a"), Put(locked, "b"))
        outcomes = await asyncio.gather(*(writer.write(ask, ORIGIN) for ask in asks), return_exceptions=True)
        kinds = [type(outcome) for outcome in outcomes]
        assert kinds == [Busy, StorageFault, dict, dict, Busy]
        foreigner.execute("ROLLBACK")
        assert (await writer.write(Put(locked, "a"), ORIGIN))["version"] == 1
    foreigner.close()
    assert words(good.path) == {"a": ""}


async def test_a_full_disk_under_the_log_does_not_stop_a_table(tmp_path: Path) -> None:
    opened = open_store()
    file = shelf(tmp_path / "words.db")
    opened.disk.capacity = 0
    async with running_with_tables(opened) as writer:
        told, answer = await asyncio.gather(
            writer.write(Add(("a",)), ORIGIN), writer.write(Put(file, "a"), ORIGIN), return_exceptions=True
        )
    assert isinstance(told, StorageFull)
    assert isinstance(answer, dict)


async def test_a_poisoned_log_stops_the_tables_too_and_nothing_of_theirs_is_begun(tmp_path: Path) -> None:
    opened = open_store()
    file = shelf(tmp_path / "words.db")
    opened.disk.fail_at_step = len(opened.disk.steps) + 2
    tables = TableFiles([TABLES], opened.clock)
    writer = Writer(opened.store, tables)
    asks = [asyncio.ensure_future(writer.write(ask, ORIGIN)) for ask in (Put(file, "a"), Add(("a",)))]
    await asyncio.sleep(0)
    run = asyncio.ensure_future(writer.run())
    for waiting in (*asks, run):
        with pytest.raises(StoreFailed):
            await waiting
    with pytest.raises(StoreFailed):
        await writer.write(Put(file, "b"), ORIGIN)
    tables.close()
    assert not file.path.exists()


async def test_a_fault_of_ours_in_a_table_ends_the_writer_and_answers_everybody(tmp_path: Path) -> None:
    opened = open_store()
    file, other = shelf(tmp_path / "words.db"), shelf(tmp_path / "other.db")

    def fall(connection: apsw.Connection) -> None:
        raise AssertionError("ours")

    tables = TableFiles([TABLES], opened.clock)
    writer = Writer(opened.store, tables)
    asks = (Add(("a",)), Put(file, "a"), Do(file, fall), Put(other, "a"))
    waiting = [asyncio.ensure_future(writer.write(ask, ORIGIN)) for ask in asks]
    await asyncio.sleep(0)
    with pytest.raises(StoreFailed):
        await writer.run()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [dict, StoreFailed, StoreFailed, StoreFailed]
    tables.close()
    assert words(file.path) == {}


async def test_files_are_whole_by_themselves_once_nobody_has_written_for_a_while(tmp_path: Path) -> None:
    file = shelf(tmp_path / "words.db")
    async with running_with_tables(open_store()) as writer:
        await writer.write(Put(file, "a"), ORIGIN)
        wal = tmp_path / "words.db-wal"
        assert wal.stat().st_size > 0
        async with asyncio.timeout(TABLE_REST_MS / 1000 + 10):
            while wal.stat().st_size:
                writer.changed.clear()
                await writer.changed.wait()
        assert (await writer.write(Put(file, "a"), ORIGIN))["version"] == 2


async def test_a_wal_is_bounded_while_the_writer_is_never_idle(tmp_path: Path) -> None:
    file, wal = shelf(tmp_path / "words.db"), tmp_path / "words.db-wal"
    sizes: list[int] = []
    async with running_with_tables(open_store()) as writer:
        for turn in range(TABLE_WAL_PAGES_MAX // 10):
            await writer.write(Put(file, str(turn), "x" * 90_000), ORIGIN)
            sizes.append(wal.stat().st_size)
    assert sum(after - before for before, after in pairwise(sizes) if after > before) > TABLE_WAL_PAGES_MAX * 4_096
    assert max(sizes) < (TABLE_WAL_PAGES_MAX + 100) * 4_200
