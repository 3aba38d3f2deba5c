"""store/writer.py: the mailbox and the batches it makes."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from convmem.domain import Origin
from convmem.errors import Busy, NotFound, Stopping, StorageFull, StoreFailed
from convmem.limits import (
    BATCH_BYTES_MAX,
    BATCH_COMMANDS_MAX,
    CHECKPOINT_PAGES_BUSY,
    CHECKPOINT_PAGES_IDLE,
    MAILBOX_BYTES_MAX,
    MAILBOX_COMMANDS_MAX,
)
from convmem.store.store import Facts, Store, Ticket
from convmem.store.writer import Writer
from tests.support.notebook import Add, Break, Strike, notes
from tests.support.stores import ORIGIN, Opened, open_store


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
