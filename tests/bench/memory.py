"""What each tool of memory costs in a large store: python -m tests.bench.memory DIR MESSAGES [RECORDS]

DIR keeps the store between two runs: MESSAGES of the corpus, a tenth as many captured by hooks beside them, and RECORDS
(2,000) preferences and as many lessons of a sentence or three. Arguments are of what is stored. Times: p50 / p99
and the most, in ms; CPU is that of all threads of the process. No call may take longer than GOAL_MS at 100,000.
"""

import asyncio
import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvloop

from convmem.catalog import Catalog
from convmem.daemon import domains
from convmem.engine import Engine
from convmem.memory.inputs import WriteSection
from convmem.messages import capture
from tests.bench.load import table
from tests.bench.search_speed import ORIGIN, Measured, following, made, percentiles
from tests.support.engines import running

GOAL_MS = 100
CALLS, PROJECTS = 200, 20
KINDS = ("prompt", "prompt", "tool_call", "error")
EVENTS_AT_ONCE = 256
SEED = 7


def texts(file: Path, count: int) -> Iterator[str]:
    """The contents of so many messages of the corpus, spread over it."""
    with file.open(encoding="utf-8") as lines:
        found = [json.loads(line).get("content", "") for line in lines]
    words = [text for text in found if text]
    return iter(random.Random(SEED).choices(words, k=count))


async def filled(engine: Engine, file: Path, messages: int, records: int) -> None:
    """Leave what the tools are to find in the store."""
    access, catalog = engine.access(ORIGIN), Catalog(domains())
    events = messages // 10
    for begin in range(0, events, EVENTS_AT_ONCE):
        some = [
            {
                "event_id": f"event {number}",
                "kind": KINDS[number % len(KINDS)],
                "session_id": f"hook {number // 50}",
                "content": text,
                "project": f"project {number % PROJECTS}",
            }
            for number, text in enumerate(texts(file, min(EVENTS_AT_ONCE, events - begin)), start=begin)
        ]
        await capture.capture(access, capture.given({"events": some}))
    for number, text in enumerate(texts(file, records)):
        label = {"project": f"project {number % PROJECTS}"} if number % 2 else {}
        preference = {"category": "other", "key": f"{number} {text}".replace("\0", "")[:60], "value": text[:150]}
        await catalog.call(catalog.tools["remember"], preference | label, access)
        lesson = {"situation": f"{number} {text}"[:100], "mistake": text[100:200] or "m", "correction": text[-100:]}
        await catalog.call(catalog.tools["save_lesson"], lesson | label, access)
    for number, text in enumerate(texts(file, 32)):
        await access.write(WriteSection(section=f"section_{number}", content=(text * 20)[:4_000]))


async def caught_up(engine: Engine) -> None:
    """Return once the tables of search know what was written."""
    assert engine.writer is not None
    while engine.indexer.rested_sequence != engine.writer.facts.sequence:
        await asyncio.sleep(0.01)


async def measured(engine: Engine, tool: str, arguments: Callable[[], dict[str, Any]], count: int = CALLS) -> Measured:
    """What the calls of one tool took."""
    catalog, found = Catalog(domains()), Measured()
    for _ in range(count):
        given = arguments()
        found.begin()
        reply = await catalog.call(catalog.tools[tool], given, engine.access(ORIGIN))
        found.end()
        assert not reply.refused, reply.text
        found.found += any(bool(value) for value in reply.facts.values() if isinstance(value, list))
    return found


async def run(data_dir: Path, file: Path, messages: int, records: int) -> None:
    rng = random.Random(SEED)
    asked = [text for text in texts(file, 4 * CALLS) if text.strip()]

    def part(code_points: int) -> str:
        text = rng.choice(asked)
        begin = rng.randrange(max(1, len(text) - code_points))
        return text[begin : begin + code_points].strip() or "the"

    def project() -> str:
        return f"project {rng.randrange(PROJECTS)}"

    async with running(data_dir, domains) as engine:
        await following(engine)
        ways: list[tuple[str, str, Callable[[], dict[str, Any]]]] = [
            ("recall", "a word or two", lambda: {"topic": part(10)}),
            ("recall", "a sentence", lambda: {"topic": part(80)}),
            ("recall", "500 characters, limit 50", lambda: {"topic": part(500), "limit": 50}),
            ("recall", "one character", lambda: {"topic": part(1)}),
            ("recall", "a sentence, with project", lambda: {"topic": part(80), "project": project()}),
            ("get_profile", "", dict),
            ("get_profile", "with project", lambda: {"project": project()}),
            ("search_history", "a word or two", lambda: {"query": part(10)}),
            ("search_history", "a sentence, with project", lambda: {"query": part(80), "project": project()}),
            ("memory_stats", "", dict),
            ("get_recent_interactions", "", dict),
            ("get_recent_interactions", "100 errors", lambda: {"limit": 100, "kind": "error"}),
            ("remember", "", lambda: {"category": "other", "key": part(20).replace("\0", ""), "value": part(200)}),
            ("save_lesson", "", lambda: {"situation": part(80), "mistake": part(80), "correction": part(80)}),
            ("forget", "", lambda: {"target_id": rng.randrange(2 * records)}),
        ]
        rows = []
        for tool, way, arguments in ways:
            await measured(engine, tool, arguments, 5)
            found = await measured(engine, tool, arguments)
            await caught_up(engine)
            worst = max(found.wall_ms)
            verdict = "kept" if worst < GOAL_MS else "BROKEN"
            cpu, wall = percentiles(found.cpu_ms), percentiles(found.wall_ms)
            rows.append([tool, way, cpu, wall, f"{worst:.1f}", found.share, verdict])
        (export,) = (await measured(engine, "export_memory", lambda: {"include_interactions": True}, 1)).wall_ms
        rows.append(["export_memory", "with interactions", "", f"{export:,.0f}", "", "", ""])
        columns = ["tool", "arguments", "CPU ms", "wall ms", "most", "found", f"< {GOAL_MS} ms"]
        table(f"tools of memory in {messages:,} messages, {records:,} preferences and lessons each", columns, rows)


async def main() -> None:
    directory, messages = Path(sys.argv[1]), int(sys.argv[2])
    records = int(sys.argv[3]) if len(sys.argv) > 3 else 2_000
    file, data_dir = directory / f"corpus-{messages}.jsonl", directory / f"memory-{messages}-{records}"
    if not data_dir.exists():
        source, _ = made(directory, messages)
        part = data_dir.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(source, part, ignore=shutil.ignore_patterns("*.sock", "store.lock"))
        async with running(part, domains) as engine:
            await engine.ready()
            await filled(engine, file, messages, records)
            await caught_up(engine)
        part.rename(data_dir)
    await run(data_dir, file, messages, records)


if __name__ == "__main__":
    uvloop.run(main())
