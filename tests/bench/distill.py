"""What distill makes of many prompts: python -m tests.bench.distill PROMPTS DIR

Stores so many captured prompts (prompts.py), each with a tool call, in a new store in DIR, a third of them older than
the retention; distills twice and shows the sections, how long it took, how long a writer beside it waited, and that the
second time nothing was written.
"""

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from convmem import memory, messages
from convmem.clock import SystemClock
from convmem.distilling import DAY_MS, Distilling
from convmem.domain import Origin
from convmem.engine import Engine
from convmem.files import RealFiles
from convmem.messages import capture
from tests.support.prompts import prompts

ORIGIN = Origin("laptop", "http", "bench/1")
RETENTION_DAYS, DAYS, REQUEST_EVENTS = 30, 45, 256
TOOLS = ("Bash", "Edit", "Read", "Grep", "Write", "WebFetch")
PLACES = (("shop", "/srv/shop"), ("blog", "/srv/blog"), ("infra", "/srv/infra/terraform"))


async def store(engine: Engine, count: int) -> None:
    """Capture so many prompts and as many tool calls."""
    chance, now_ms, waiting = Random(2), engine.clock.now_ms(), []
    for number, prompt in enumerate(prompts(count)):
        project, directory = PLACES[chance.randrange(len(PLACES))]
        facts = {
            "session_id": f"session {number // 20}",
            "at": now_ms - round(chance.random() * DAYS * DAY_MS),
            "project": project,
            "directory": directory,
        }
        waiting.append({**facts, "event_id": f"p{number}", "kind": "prompt", "content": prompt})
        call = {"event_id": f"c{number}", "kind": "tool_call", "content": f"ran {number}", "tool": chance.choice(TOOLS)}
        waiting.append({**facts, **call})
        if len(waiting) >= REQUEST_EVENTS:
            await capture.capture(engine.access(ORIGIN), capture.given({"events": waiting}))
            waiting = []
    if waiting:
        await capture.capture(engine.access(ORIGIN), capture.given({"events": waiting}))


async def beside(engine: Engine, waits_ms: list[float], is_over: asyncio.Event) -> None:
    """Write small messages one after another until it is over, and note how long each took."""
    number = 0
    while not is_over.is_set():
        number += 1
        started = time.perf_counter()
        event = {"event_id": f"b{number}", "kind": "error", "session_id": "beside", "content": f"beside {number}"}
        await capture.capture(engine.access(ORIGIN), capture.given({"events": [event]}))
        waits_ms.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(0.01)


async def nobody(done: float, total: float, sentence: str) -> None:
    """Nobody looks."""


async def timed(distilling: Distilling) -> tuple[Mapping[str, Any], float]:
    """The facts of a run and its seconds."""
    started = time.perf_counter()
    facts = await distilling.distill({}, nobody, ORIGIN)
    return facts, time.perf_counter() - started


async def main(count: int, directory: Path) -> None:
    """Fill, distill twice, print."""
    files = RealFiles(directory)
    files.prepare()
    engine = Engine(files, lambda: (messages.DOMAIN, memory.DOMAIN), SystemClock())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        await engine.ready()
        await store(engine, count)
        distilling = Distilling(engine, RETENTION_DAYS)
        waits_ms: list[float] = []
        is_over = asyncio.Event()
        writer = tasks.create_task(beside(engine, waits_ms, is_over))
        facts, seconds = await timed(distilling)
        is_over.set()
        await writer
        for section in facts["sections"]:
            print(f"\n{section['section']} ({section['outcome']})\n{section['content']}")
        print(f"\ncounted {facts['counted']}, pruned {facts['pruned']}, {seconds:.2f} s")
        waits_ms.sort()
        print(
            f"{len(waits_ms)} writes beside it: median {waits_ms[len(waits_ms) // 2]:.1f} ms, worst {waits_ms[-1]:.1f}"
        )
        await distilling.distill({}, nobody, ORIGIN)  # What was written beside the first run is counted now.
        assert engine.writer is not None
        before, log = engine.writer.facts.sequence, files.size("convmem.log")
        facts, seconds = await timed(distilling)
        outcomes = {section["section"]: section["outcome"] for section in facts["sections"]}
        is_same = (engine.writer.facts.sequence, files.size("convmem.log")) == (before, log)
        print(
            f"again: {outcomes}, pruned {facts['pruned']}, {seconds:.2f} s, log {'the same' if is_same else 'CHANGED'}"
        )
        engine.stop()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
