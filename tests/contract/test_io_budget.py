"""What each operation costs the disk, counted at the one door to it: the rows of the promise, one by one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from convmem.catalog import Catalog
from convmem.clock import SystemClock
from convmem.daemon import domains
from convmem.domain import Origin
from convmem.engine import Engine
from convmem.files import RealFiles
from convmem.store.frame import HEADER_SIZE


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


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_messages", {"view": "history", "session_id": "s"}),
        ("read_messages", {"view": "sessions"}),
        ("read_messages", {"view": "export"}),
        ("search_messages", {"query": "x"}),
        ("search_messages", {"query": "not there"}),
        ("get_system_health", {}),
    ],
)
async def test_a_read_writes_nothing(store: Counted, tool: str, arguments: dict[str, Any]) -> None:
    await write(store)
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
