"""What each operation costs the disk, counted at the one door to it: the rows of the promise, one by one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from convmem import exchange
from convmem.catalog import Catalog
from convmem.clock import SystemClock
from convmem.daemon import domains
from convmem.domain import Origin
from convmem.engine import Engine
from convmem.files import RealFiles
from convmem.limits import STATE_FRAME_BYTES
from convmem.memory.inputs import WriteSection
from convmem.store.compaction import ROUNDS_MAX
from convmem.store.frame import HEADER_SIZE
from convmem.store.store import Store
from tests.support.engines import followed


class Counted:
    """A store whose tools are called in this process, with the counters beside."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.catalog = Catalog(domains())

    async def call(self, tool: str, **arguments: Any) -> Any:
        access = self.engine.access(Origin("local", "test"))
        return (await self.catalog.call(self.catalog.tools[tool], arguments, access)).facts

    async def cost(self, tool: str, **arguments: Any) -> tuple[int, int, int]:
        """(writes, flushes, bytes) of the log that one call costs; the index's own counters must not move on a read."""
        before = self.engine.health()["io"]
        await self.call(tool, **arguments)
        after = self.engine.health()["io"]
        if self.catalog.tools[tool].reads_only:
            assert after == before
        return tuple(after["log"][name] - before["log"][name] for name in ("writes", "flushes", "bytes"))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Counted]:
    async with opened(tmp_path) as counted:
        yield counted


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[Counted]:
    engine = Engine(RealFiles(directory), domains, SystemClock())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        await engine.ready()
        yield Counted(engine)
        engine.stop()


async def write(store: Counted, content: str = "x") -> str:
    return str((await store.call("write_message", session_id="s", role="user", content=content))["message_id"])


@pytest.mark.parametrize("size", [20, 4_096, 1_048_576])
async def test_a_write_is_one_write_and_one_flush_of_header_and_message(store: Counted, size: int) -> None:
    cost = await store.cost("write_message", session_id="s", role="user", content="x" * size)
    assert cost[:2] == (1, 1)
    assert HEADER_SIZE + size < cost[2] < HEADER_SIZE + size + 250


async def test_a_change_of_metadata_writes_the_changed_fields_alone(store: Counted) -> None:
    message_id = await write(store, "x" * 100_000)
    cost = await store.cost("update_message", message_id=message_id, metadata={"importance": 5})
    assert cost[:2] == (1, 1)
    assert cost[2] < HEADER_SIZE + 200


async def test_a_change_of_content_writes_the_content_once(store: Counted) -> None:
    message_id = await write(store, "x" * 100_000)
    cost = await store.cost("update_message", message_id=message_id, content="y" * 5_000)
    assert cost[:2] == (1, 1)
    assert 5_000 < cost[2] < HEADER_SIZE + 5_250


async def test_a_change_of_nothing_costs_nothing(store: Counted) -> None:
    message_id = await write(store)
    assert await store.cost("update_message", message_id=message_id, content="x") == (0, 0, 0)
    assert await store.cost("update_message", message_id=message_id, metadata={"importance": 0}) == (0, 0, 0)


async def test_a_deletion_is_a_tombstone_of_fixed_size(store: Counted) -> None:
    first, second = await write(store, "x" * 100_000), await write(store)
    costs = {await store.cost("delete_message", message_id=message_id) for message_id in (first, second)}
    ((writes, flushes, size),) = costs
    assert (writes, flushes) == (1, 1)
    assert size < HEADER_SIZE + 120


async def test_a_refusal_and_a_repeated_key_cost_nothing(store: Counted) -> None:
    same = {"session_id": "s", "role": "user", "content": "x", "idempotency_key": "k"}
    await store.call("write_message", **same)
    assert await store.cost("write_message", **same) == (0, 0, 0)
    assert await store.cost("write_message", **same | {"content": "y"}) == (0, 0, 0)
    assert await store.cost("delete_message", message_id="7" * 26) == (0, 0, 0)


PREFERENCE = {"category": "coding_pref", "key": "indent", "value": "four spaces"}
LESSON = {"situation": "s" * 900, "mistake": "m" * 900, "correction": "c" * 900}


async def test_a_preference_is_written_whole_once_and_then_only_what_a_statement_changes(store: Counted) -> None:
    first = await store.cost("remember", **PREFERENCE | {"value": "x" * 2_000})
    assert first[:2] == (1, 1)
    assert 2_000 < first[2] < HEADER_SIZE + 2_000 + 250
    again = await store.cost("remember", **PREFERENCE | {"value": "x" * 2_000})
    assert again[:2] == (1, 1)
    assert again[2] < HEADER_SIZE + 150
    changed = await store.cost("remember", **PREFERENCE)
    assert changed[2] < HEADER_SIZE + 200


async def test_a_lesson_that_is_known_costs_nothing(store: Counted) -> None:
    first = await store.cost("save_lesson", **LESSON)
    assert first[:2] == (1, 1)
    assert 2_700 < first[2] < HEADER_SIZE + 2_700 + 250
    assert await store.cost("save_lesson", **LESSON) == (0, 0, 0)


async def test_what_is_forgotten_costs_a_tombstone_and_what_is_not_there_nothing(store: Counted) -> None:
    await store.call("remember", **PREFERENCE | {"value": "x" * 2_000})
    await store.call("save_lesson", **LESSON)
    for number in ("1", "2"):
        writes, flushes, size = await store.cost("forget", target_id=number)
        assert (writes, flushes) == (1, 1)
        assert size < HEADER_SIZE + 120
        assert await store.cost("forget", target_id=number) == (0, 0, 0)


async def test_a_section_that_reads_the_same_costs_nothing(store: Counted) -> None:
    access = store.engine.access(Origin("local", "test"))
    for content, cost in (("x" * 4_000, (1, 1)), ("x" * 4_000, (0, 0)), ("y", (1, 1))):
        before = store.engine.health()["io"]["log"]
        await access.write(WriteSection(section="goals", content=content))
        after = store.engine.health()["io"]["log"]
        assert tuple(after[name] - before[name] for name in ("writes", "flushes")) == cost
        assert after["bytes"] - before["bytes"] < HEADER_SIZE + len(content) + 200


async def test_a_rebuild_with_nothing_to_do_costs_nothing(store: Counted) -> None:
    assert await store.cost("rebuild_index") == (0, 0, 0)
    await write(store, "x" * 10_000)
    before = store.engine.health()["io"]["index"]
    assert await store.cost("rebuild_index") == (0, 0, 0)
    assert store.engine.health()["io"]["index"] == before


async def waste(store: Counted, count: int, size: int) -> int:
    """Write `count` messages of `size` bytes and as many that are deleted again; the bytes of those that live."""
    live = await asyncio.gather(*(write(store, "x" * size) for _ in range(count)))
    dead = await asyncio.gather(*(write(store, "y" * size) for _ in range(count)))
    await asyncio.gather(*(store.call("delete_message", message_id=message_id) for message_id in dead))
    # The index has come to rest: nobody reads it, no checkpoint of its own is due.
    await followed(store.engine)
    writer, _ = await store.engine.ready()
    await writer.alone(Store.rest)
    return len(live) * size


@pytest.mark.parametrize(("count", "size"), [(1, 20), (300, 200), (40, 50_000)])
async def test_a_rebuild_writes_what_lives_once_and_flushes_log_directory_and_index(
    store: Counted, count: int, size: int
) -> None:
    live_bytes = await waste(store, count, size)
    index_before = store.engine.health()["io"]["index"]
    writes, flushes, written = await store.cost("rebuild_index")
    # Frames of live records, and the one that ends the state.
    assert 2 <= writes <= 3 + live_bytes // STATE_FRAME_BYTES
    assert flushes == 2, "the log once, the directory once"
    assert live_bytes < written <= live_bytes + count * 130 + writes * HEADER_SIZE + 250
    assert written == store.engine.health()["log_bytes"]
    index_after = store.engine.health()["io"]["index"]
    assert index_after["flushes"] - index_before["flushes"] == 1
    assert index_after["bytes"] - index_before["bytes"] > live_bytes


async def test_a_rebuild_under_writes_flushes_once_more_for_what_came_meanwhile(store: Counted) -> None:
    await waste(store, 300, 200)
    before = store.engine.health()["io"]["log"]
    rebuilding = asyncio.ensure_future(store.call("rebuild_index"))
    written = 0
    while not rebuilding.done():
        await write(store)
        written += 1
    await rebuilding
    after = store.engine.health()["io"]["log"]
    assert after["flushes"] - before["flushes"] <= written + 2 + ROUNDS_MAX
    assert store.engine.health()["sequence"] == str(900 + written)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_messages", {"view": "history", "session_id": "s"}),
        ("read_messages", {"view": "sessions"}),
        ("read_messages", {"view": "export"}),
        ("search_messages", {"query": "x"}),
        ("search_messages", {"query": "not there"}),
        ("get_system_health", {}),
        ("recall", {"topic": "indent"}),
        ("get_profile", {}),
        ("search_history", {"query": "x"}),
        ("memory_stats", {}),
        ("get_recent_interactions", {}),
    ],
)
async def test_a_read_writes_nothing(store: Counted, tool: str, arguments: dict[str, Any]) -> None:
    await write(store)
    await store.call("remember", **PREFERENCE)
    assert await store.cost(tool, **arguments) == (0, 0, 0)


async def test_the_views_of_one_message_write_nothing(store: Counted) -> None:
    message_id = await write(store)
    for view in ("content", "context"):
        assert await store.cost("read_messages", view=view, message_id=message_id) == (0, 0, 0)


async def test_a_crowd_of_writers_shares_its_flushes(store: Counted) -> None:
    before = store.engine.health()["io"]["log"]["flushes"]
    await asyncio.gather(*(write(store, str(number)) for number in range(300)))
    assert store.engine.health()["io"]["log"]["flushes"] - before <= 30


async def test_reading_changes_no_byte_of_any_file(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        message_id = await write(store, "何 " * 500)
        await followed(store.engine)
        before = files_of(tmp_path)
        for _ in range(20):
            await store.call("read_messages", view="history", session_id="s")
            await store.call("read_messages", view="content", message_id=message_id)
            await store.call("search_messages", query="何")
            await store.call("get_system_health")
        assert files_of(tmp_path) == before


def files_of(directory: Path) -> dict[str, bytes]:
    """Every file by name, but for SQLite's -shm, which is memory for its locks."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if not path.name.endswith("-shm")}


async def test_an_export_writes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await asyncio.gather(*(write(store, "何 " * 500) for _ in range(200)))
        await followed(store.engine)
        before, io = files_of(tmp_path), store.engine.health()["io"]
        pieces = [piece async for piece in exchange.export(store.engine)]
        assert sum(piece.count(b"\n") for piece in pieces) == 201
        assert (files_of(tmp_path), store.engine.health()["io"]) == (before, io)
