"""distilling.py: distill beside a store in use, once at a time, in slices; and once a day if it was told to."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from convmem import memory, messages
from convmem.clock import Clock, SystemClock
from convmem.distilling import AGAIN_MS, BUSY_MS, BY_SCHEDULE, DAY_MS, EVERY_MS, FIRST_MS, Distilling
from convmem.domain import Origin
from convmem.engine import Engine
from convmem.errors import Busy, Invalid, Stopping
from convmem.files import RealFiles
from convmem.limits import DISTILL_SLICE_MESSAGES, PROFILE_SECTIONS_MAX, PRUNE_MESSAGES_MAX, RETENTION_DAYS_MAX
from convmem.memory import decide, queries
from convmem.memory.inputs import DeleteSection, WriteSection
from convmem.memory.model import Section
from convmem.messages import capture
from convmem.messages import queries as messages_queries
from convmem.messages.inputs import MetadataGiven, UpdateMessage
from tests.support.manual_clock import START_MS, ManualClock
from tests.support.sleeping import Sleeper

ORIGIN = Origin("laptop", "http", "tester/1")
DAYS = 30
OLD_MS = (DAYS + 1) * DAY_MS


class Running:
    """An engine with messages and memory, and its distilling."""

    def __init__(self, engine: Engine, distilling: Distilling, clock: Clock) -> None:
        self.engine, self.distilling, self.clock = engine, distilling, clock
        self.told: list[tuple[float, float, str]] = []
        self._events = 0

    async def capture(self, *contents: str, age_ms: int = 0, **more: Any) -> None:
        """Store what a hook saw so long ago; contents are a minute apart."""
        at = self.clock.now_ms() - age_ms
        for content in contents:
            self._events += 1
            facts = {"event_id": f"e{self._events}", "kind": "prompt", "session_id": "s", "content": content, "at": at}
            await capture.capture(self.engine.access(ORIGIN), capture.given({"events": [facts | more]}))

    async def distill(self, **arguments: Any) -> Any:
        return await self.distilling.distill(arguments, self._tell, ORIGIN)

    async def _tell(self, done: float, total: float, sentence: str) -> None:
        self.told.append((done, total, sentence))

    async def section(self, name: str) -> Section | None:
        return await self.engine.access(ORIGIN).read(queries.read_section, name)

    async def totals(self) -> Mapping[str, int]:
        totals = await self.engine.access(ORIGIN).read(messages_queries.capture_totals)
        return {kind: count for kind, count in totals.items() if count}

    def written(self) -> tuple[int, int]:
        """The last sequence, and the bytes of the log."""
        assert self.engine.writer is not None
        return self.engine.writer.facts.sequence, self.engine.writer.facts.log_bytes


@asynccontextmanager
async def running(data_dir: Path, clock: Clock | None = None, sleeper: Sleeper | None = None) -> AsyncIterator[Running]:
    files, clock = RealFiles(data_dir), clock or SystemClock()
    files.prepare()
    engine = Engine(files, lambda: (messages.DOMAIN, memory.DOMAIN), clock)
    distilling = Distilling(engine, DAYS) if sleeper is None else Distilling(engine, DAYS, sleeper)
    if sleeper is not None:
        engine.beside.append(distilling)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        await engine.ready()
        yield Running(engine, distilling, clock)
        engine.stop()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def test_both_sections_are_written_and_what_is_old_is_pruned(data_dir: Path):
    async with running(data_dir) as run:
        await run.capture("the parser", "a parser again", project="shop")
        await run.capture("ran it", kind="tool_call", tool="Bash", age_ms=OLD_MS)
        await run.capture("an old zebra", age_ms=OLD_MS)
        facts = await run.distill()
        assert (facts["dry_run"], facts["retention_days"]) == (False, DAYS)
        assert facts["counted"] == {"prompt": 2, "tool_call": 0, "error": 0}
        assert facts["pruned"] == {"prompt": 1, "tool_call": 1, "error": 0}
        assert [(section["section"], section["outcome"]) for section in facts["sections"]] == [
            ("usage_stats", "written"),
            ("topics", "written"),
        ]
        for told in facts["sections"]:
            stored = await run.section(told["section"])
            assert stored is not None
            assert stored.content == told["content"]
            assert stored.origin == ORIGIN
        assert "parser: 2" in facts["sections"][1]["content"]
        assert "zebra" not in facts["sections"][1]["content"]
        assert await run.totals() == {"prompt": 2}


async def test_a_second_time_nothing_is_written_at_all(data_dir: Path):
    async with running(data_dir) as run:
        await run.capture("the parser", "a lexer")
        await run.capture("an old zebra", age_ms=OLD_MS)
        first, before = await run.distill(), run.written()
        again = await run.distill()
        assert run.written() == before
        assert [section["outcome"] for section in again["sections"]] == ["unchanged", "unchanged"]
        assert [section["content"] for section in again["sections"]] == [it["content"] for it in first["sections"]]
        assert sum(again["pruned"].values()) == 0


async def test_a_dry_run_says_the_same_and_writes_nothing(data_dir: Path):
    async with running(data_dir) as run:
        await run.capture("the parser")
        await run.capture("an old zebra", age_ms=OLD_MS)
        before = run.written()
        dry = await run.distill(dry_run=True)
        assert run.written() == before
        assert await run.section("topics") is None
        wet = await run.distill()
        assert {**dry, "dry_run": False, "duration_ms": 0} == {**wet, "duration_ms": 0}


async def test_where_nothing_was_captured_nothing_is_written(data_dir: Path):
    async with running(data_dir) as run:
        before = run.written()
        facts = await run.distill()
        assert [section["outcome"] for section in facts["sections"]] == ["absent", "absent"]
        assert run.written() == before


async def test_a_section_goes_when_there_is_nothing_to_say_any_more(data_dir: Path):
    clock = ManualClock()
    async with running(data_dir, clock) as run:
        await run.capture("the parser")
        await run.distill()
        clock.pass_ms(OLD_MS)
        dry = await run.distill(dry_run=True)
        assert [section["outcome"] for section in dry["sections"]] == ["deleted", "deleted"]
        assert await run.section("topics") is not None
        facts = await run.distill()
        assert [section["outcome"] for section in facts["sections"]] == ["deleted", "deleted"]
        assert facts["pruned"]["prompt"] == 1
        assert await run.section("topics") is None
        assert [section["outcome"] for section in (await run.distill())["sections"]] == ["absent", "absent"]


async def test_days_can_be_asked_for(data_dir: Path):
    async with running(data_dir) as run:
        await run.capture("the parser", age_ms=2 * DAY_MS)
        assert (await run.distill(retention_days=2, dry_run=True))["pruned"]["prompt"] == 1
        assert (await run.distill(retention_days=3))["pruned"]["prompt"] == 0
        assert (await run.distill(retention_days=2))["pruned"]["prompt"] == 1


async def test_a_message_whose_tier_was_raised_stays_and_counts(data_dir: Path):
    async with running(data_dir) as run:
        await run.capture("the old parser", age_ms=OLD_MS)
        access = run.engine.access(ORIGIN)
        (message,) = await access.read(
            lambda connection: list(messages_queries.captured(connection, kind=None, limit=1))
        )
        await access.write(UpdateMessage(message_id=message.message_id, metadata=MetadataGiven(memory_tier="long")))
        facts = await run.distill()
        assert (facts["counted"]["prompt"], facts["pruned"]["prompt"]) == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"dry_run": "yes"}, "dry_run"),
        ({"dry_run": 1}, "dry_run"),
        ({"dry_run": None}, "dry_run"),
        ({"retention_days": 0}, "retention_days"),
        ({"retention_days": RETENTION_DAYS_MAX + 1}, "retention_days"),
        ({"retention_days": True}, "retention_days"),
        ({"retention_days": 1.5}, "retention_days"),
        ({"retention_days": "30"}, "retention_days"),
        ({"days": 1}, "days"),
    ],
    ids=str,
)
async def test_an_argument_that_means_nothing_is_refused_before_anything_is_read(
    data_dir: Path, arguments: dict[str, Any], field: str
):
    async with running(data_dir) as run:
        with pytest.raises(Invalid) as refused:
            await run.distill(**arguments)
        assert refused.value.details["field"] == field
        assert run.told == []


async def test_one_run_at_a_time(data_dir: Path):
    async with running(data_dir) as run:
        await run.capture("the parser")
        outcomes = await asyncio.gather(run.distill(), run.distill(), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [dict, Busy]
        await run.distill()


async def test_a_stop_ends_a_run_between_two_slices_and_the_next_one_does_what_was_left(data_dir: Path):
    async with running(data_dir) as run:
        await run.capture(*(f"parser {number}" for number in range(DISTILL_SLICE_MESSAGES + 1)))
        told = asyncio.Event()

        async def tell(done: float, total: float, sentence: str) -> None:
            run.engine.stop()
            told.set()

        with pytest.raises(Stopping):
            await run.distilling.distill({}, tell, ORIGIN)
        assert told.is_set()
    async with running(data_dir) as run:
        assert await run.section("topics") is None
        assert (await run.distill())["counted"]["prompt"] == DISTILL_SLICE_MESSAGES + 1


async def test_many_are_pruned_in_small_commands_and_the_progress_is_told(data_dir: Path):
    async with running(data_dir) as run:
        count = PRUNE_MESSAGES_MAX + 44
        facts = {"session_id": "s", "kind": "tool_call", "at": run.clock.now_ms() - OLD_MS}
        events = [{**facts, "event_id": f"x{number}", "content": f"ran {number}"} for number in range(count)]
        for start in range(0, count, 100):
            body = capture.given({"events": events[start : start + 100]})
            await capture.capture(run.engine.access(ORIGIN), body)
        before, _ = run.written()
        assert (await run.distill())["pruned"]["tool_call"] == count
        after, _ = run.written()
        assert after - before == 2, "two commands of at most 256 each"
        assert run.told[-1] == (count, count, "pruning")
        reading = [done for done, total, sentence in run.told if sentence == "reading what was captured"]
        assert reading == sorted(reading)
        assert reading[-1] == count
        assert await run.totals() == {}


async def test_what_is_captured_while_it_runs_stays_and_is_left_to_the_next_run(data_dir: Path):
    async with running(data_dir) as run:
        await run.capture("the parser")

        async def tell(done: float, total: float, sentence: str) -> None:
            if len(run.told) == 0:
                run.told.append((done, total, sentence))
                await run.capture("a zebra")

        facts = await run.distilling.distill({}, tell, ORIGIN)
        assert facts["counted"]["prompt"] == 1
        assert (await run.distill())["counted"]["prompt"] == 2


async def test_the_schedule_begins_some_minutes_after_the_start_and_then_keeps_to_a_day(data_dir: Path):
    clock = ManualClock()
    sleeper = Sleeper(clock)
    async with running(data_dir, clock, sleeper) as run:
        await sleeper.asleep(1)
        await run.capture("the parser")
        sleeper.pass_ms(FIRST_MS - 1)
        await sleeper.asleep(2)
        assert await run.section("topics") is None
        sleeper.pass_ms(1)
        await sleeper.asleep(3)
        section = await run.section("topics")
        assert section is not None
        assert section.origin == BY_SCHEDULE
        await run.capture("a parser", "parsers")
        sleeper.pass_ms(EVERY_MS - 1)
        await sleeper.asleep(4)
        assert await run.section("topics") == section
        sleeper.pass_ms(1)
        await sleeper.asleep(5)
        section = await run.section("topics")
        assert section is not None
        assert "3" in section.content
        assert max(sleeper.asked) <= 60, "a machine that was suspended notices soon"
        assert run.engine.status() == "ok"


async def test_a_clock_that_was_set_back_makes_a_run_due(data_dir: Path):
    clock = ManualClock()
    sleeper = Sleeper(clock)
    async with running(data_dir, clock, sleeper) as run:
        await sleeper.asleep(1)
        await run.capture("the parser", age_ms=-DAY_MS)
        sleeper.pass_ms(-DAY_MS)
        await sleeper.asleep(2)
        assert await run.section("topics") is not None


async def test_a_failure_is_told_tried_again_sooner_and_forgotten_once_it_goes_well(
    data_dir: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    # As if its sections were a person's: then there is no room for them.
    for module in (decide, queries):
        monkeypatch.setattr(module, "DISTILLED_SECTIONS", ())
    clock = ManualClock(START_MS)
    sleeper = Sleeper(clock)
    with caplog.at_level(logging.ERROR, "convmem"):
        async with running(data_dir, clock, sleeper) as run:
            await sleeper.asleep(1)
            access = run.engine.access(ORIGIN)
            for number in range(PROFILE_SECTIONS_MAX):
                await access.write(WriteSection(section=f"own_{number}", content="mine"))
            await run.capture("the parser")
            sleeper.pass_ms(FIRST_MS)
            await sleeper.asleep(2)
            assert run.engine.status() == "degraded"
            (reason,) = run.engine.health()["reasons"]
            assert reason.startswith("the last distill failed (VALIDATION_ERROR: the profile has ")
            assert "distill failed: VALIDATION_ERROR" in caplog.text
            for number in range(2):
                await access.write(DeleteSection(section=f"own_{number}"))
            sleeper.pass_ms(AGAIN_MS)
            await sleeper.asleep(3)
            assert await run.section("topics") is not None
            assert run.engine.status() == "ok"


async def test_while_an_import_admits_no_write_the_schedule_waits_without_a_word(data_dir: Path):
    clock = ManualClock()
    sleeper = Sleeper(clock)
    async with running(data_dir, clock, sleeper) as run:
        await sleeper.asleep(1)
        await run.capture("the parser")
        with run.engine.without_writes("an import takes records in"):
            sleeper.pass_ms(FIRST_MS)
            await sleeper.asleep(2)
        assert run.engine.status() == "ok"
        assert await run.section("topics") is None
        sleeper.pass_ms(BUSY_MS)
        await sleeper.asleep(3)
        assert await run.section("topics") is not None


async def test_without_a_schedule_nothing_runs_by_itself(data_dir: Path):
    clock = ManualClock()
    async with running(data_dir, clock) as run:
        await run.capture("the parser")
        before = run.written()
        clock.pass_ms(7 * DAY_MS)
        assert run.engine.beside == []
        assert run.engine.status() == "ok"
        assert run.written() == before
