"""Distill beside a store in use: when somebody asks, and once a day if the daemon was told to.

Reading goes in slices through the readers and counting through a thread, so nobody waits for it; what is pruned goes in
small commands. One run at a time. A stop ends it between two slices, and whatever it left the next run does.

The schedule remembers nothing: it runs some minutes after a start, and then a day after each run. A run that finds
nothing new writes nothing, so a daemon that starts often does no harm. A run that failed is tried again sooner, and
health says so until one succeeds; one that only was not possible then (an import goes on) soon, without a word.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from convmem.domain import Access, Origin
from convmem.errors import Busy, ConvmemError, Invalid, NotFound, Stopping
from convmem.limits import FIELD_CODE_POINTS_MAX, PRUNE_MESSAGES_MAX, REBUILD_RETRY_MS, RETENTION_DAYS_MAX

if TYPE_CHECKING:
    from convmem.engine import Engine
    from convmem.maintenance import Progress
    from convmem.memory.distill import Distillation

Sleep = Callable[[float], Awaitable[object]]
JOURNAL = logging.getLogger("convmem")
DAY_MS = 24 * 3600 * 1000
FIRST_MS, EVERY_MS, AGAIN_MS, BUSY_MS = 10 * 60 * 1000, DAY_MS, 3600 * 1000, 60 * 1000
# How long the schedule sleeps at most: a machine that was suspended notices soon that a run is due.
LOOK_S = 60
ARGUMENTS = {"dry_run", "retention_days"}
BY_SCHEDULE = Origin("local", "daemon")


class Distilling:
    """The distilling of one engine. Everything is called on the event loop's thread."""

    def __init__(self, engine: "Engine", retention_days: int, sleep: Sleep = asyncio.sleep) -> None:
        self._engine = engine
        self._retention_days = retention_days
        self._sleep = sleep
        self._turn = asyncio.Lock()
        self._failure: str | None = None

    async def run(self) -> None:
        """Follow the schedule until cancelled."""
        wait_ms = FIRST_MS
        while True:
            await self._passed(wait_ms)
            try:
                facts = await self.distill({}, _nobody, BY_SCHEDULE)
                self._failure, wait_ms = None, EVERY_MS
                counted, pruned = (sum(facts[name].values()) for name in ("counted", "pruned"))
                JOURNAL.info("distill: %d captured messages counted, %d pruned", counted, pruned)
            except Stopping:
                return
            except Busy:
                wait_ms = BUSY_MS
            except ConvmemError as error:
                self._failure, wait_ms = f"the last distill failed ({error.code}: {error.message})", AGAIN_MS
                JOURNAL.error("distill failed: %s: %s", error.code, error.message)

    async def _passed(self, wait_ms: int) -> None:
        """Return once so much time has passed, or the clock was set back."""
        since_ms = self._engine.clock.now_ms()
        while 0 <= (passed_ms := self._engine.clock.now_ms() - since_ms) < wait_ms:
            await self._sleep(min(LOOK_S, (wait_ms - passed_ms) / 1000))

    def reasons(self) -> list[str]:
        """Why the distilling is not simply well, in sentences; empty if it is."""
        return [] if self._failure is None else [self._failure]

    async def distill(self, arguments: Mapping[str, Any], progress: "Progress", origin: Origin) -> Mapping[str, Any]:
        """Write the sections that captured messages come to, and prune those whose time has passed; with `dry_run` only
        say so: {dry_run, retention_days, counted, sections[{section, content?, outcome}], pruned, duration_ms}.

        `outcome` is written, unchanged, deleted or absent; counts are by kind. Invalid, Busy, Stopping, StorageFull.
        """
        dry_run, retention_days = asked(arguments, self._retention_days)
        return await self._engine.apart(self._distill(dry_run, retention_days, progress, origin))

    async def _distill(
        self, dry_run: bool, retention_days: int, progress: "Progress", origin: Origin
    ) -> Mapping[str, Any]:
        started_ms = self._engine.clock.monotonic_ms()
        if self._turn.locked():
            raise Busy("captured messages are being distilled already", retry_after_ms=REBUILD_RETRY_MS)
        async with self._turn:
            access = self._engine.access(origin)
            found = await self._seen(access, self._engine.clock.now_ms() - retention_days * DAY_MS, progress)
            texts = await asyncio.to_thread(found.sections)
            sections = [await _settled(access, name, text, dry_run=dry_run) for name, text in texts.items()]
            pruned = found.pruned if dry_run else await _pruned(access, found, progress)
        return {
            "dry_run": dry_run,
            "retention_days": retention_days,
            "counted": by_kind(found.counted),
            "sections": sections,
            "pruned": by_kind(pruned),
            "duration_ms": round(self._engine.clock.monotonic_ms() - started_ms),
        }

    async def _seen(self, access: Access, before_ms: int, progress: "Progress") -> "Distillation":
        """Go through all that was captured, and once more through the prompts; what comes meanwhile is left out."""
        # Imported here: by now the engine has loaded its domains, and with them pydantic.
        from convmem.memory import distill
        from convmem.messages import queries

        totals = await access.read(queries.capture_totals)
        assert self._engine.writer is not None
        through = self._engine.writer.facts.sequence
        found = distill.Distillation(before_ms)
        done, total = 0, sum(totals.values()) + totals.get(distill.PROMPT, 0)
        for kind, look in [*((kind, found.see) for kind in distill.NAMED), (distill.PROMPT, found.see_again)]:
            after = 0
            while messages := await access.read(distill.piece, kind, after, through):
                await asyncio.to_thread(look, messages)
                after, done = messages[-1].sequence, done + len(messages)
                await progress(done, total, "reading what was captured")
        return found


def asked(arguments: Mapping[str, Any], retention_days: int) -> tuple[bool, int]:
    """Dry run and days, from the arguments of a request; Invalid with `field` for anything else."""
    for name in arguments.keys() - ARGUMENTS:
        raise Invalid(f"{name[:FIELD_CODE_POINTS_MAX]} is not an argument here", field=name[:FIELD_CODE_POINTS_MAX])
    dry_run, days = arguments.get("dry_run", False), arguments.get("retention_days", retention_days)
    if not isinstance(dry_run, bool):
        raise Invalid("dry_run must be true or false", field="dry_run")
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= RETENTION_DAYS_MAX:
        raise Invalid(f"retention_days must be a whole number from 1 to {RETENTION_DAYS_MAX}", field="retention_days")
    return dry_run, days


def by_kind(counts: Mapping[str, int]) -> dict[str, int]:
    """How many of each kind, 0 where there are none."""
    from convmem.memory.distill import NAMED

    return {kind: counts.get(kind, 0) for kind in NAMED}


async def _settled(access: Access, name: str, text: str | None, *, dry_run: bool) -> dict[str, Any]:
    """Make a section read so, unless it does already; one that nothing can be said of any more goes."""
    from convmem.memory import queries
    from convmem.memory.inputs import DeleteSection, WriteSection

    known = await access.read(queries.read_section, name)
    if text is None:
        if known is not None and not dry_run:
            with suppress(NotFound):
                await access.write(DeleteSection(section=name))
        return {"section": name, "outcome": "absent" if known is None else "deleted"}
    is_new = known is None or known.content != text
    if is_new and not dry_run:
        await access.write(WriteSection(section=name, content=text))
    return {"section": name, "outcome": "written" if is_new else "unchanged", "content": text}


async def _pruned(access: Access, found: "Distillation", progress: "Progress") -> Counter[str]:
    """Take away what may go, and say how many really went."""
    from convmem.memory.prune import PruneInteractions

    pruned = Counter[str]()
    for start in range(0, len(found.prunable), PRUNE_MESSAGES_MAX):
        sequences = tuple(found.prunable[start : start + PRUNE_MESSAGES_MAX])
        answer = await access.write(PruneInteractions(sequences, found.before_ms))
        pruned.update(answer["pruned"])
        await progress(start + len(sequences), len(found.prunable), "pruning")
    return pruned


async def _nobody(done: float, total: float, sentence: str) -> None:
    """Hears how far the schedule's own runs are."""
