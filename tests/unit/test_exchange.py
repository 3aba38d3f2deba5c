"""Files of records and a store in use: all of a file or none, reads go on, and nothing is left behind."""

import asyncio
import errno
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
from convmem.errors import Busy, CallerError, Conflict, DiskFault, Invalid, Stopping, StorageFull, StoreFailed
from convmem.files import RealFile, RealFiles, regular
from convmem.transfer import scan as scan_module
from convmem.transfer.intake import Intake
from tests.support.engines import followed
from tests.support.filed import message, records_of, written

ORIGIN = Origin("laptop", "http")


class Store:
    """An engine on real files, and its tools."""

    def __init__(self, engine: Engine, directory: Path) -> None:
        self.engine = engine
        self.directory = directory
        self.catalog = Catalog(domains())

    async def call(self, tool: str, **arguments: Any) -> Any:
        return (await self.catalog.call(self.catalog.tools[tool], arguments, self.engine.access(ORIGIN))).facts

    async def say(self, content: str, **metadata: Any) -> str:
        answer = await self.call("write_message", session_id="s", role="user", content=content, metadata=metadata)
        return str(answer["message_id"])

    async def export(self) -> bytes:
        return b"".join([piece async for piece in exchange.export(self.engine)])

    async def bring(self, data: bytes, policy: Any = "reject", *, dry_run: bool = False) -> Any:
        path = self.directory.parent / f"brought-{len(data)}.jsonl"
        path.write_bytes(data)
        file = regular(path)
        try:
            return await exchange.bring(self.engine, file, policy, dry_run=dry_run, progress=untold)
        finally:
            file.close()

    async def contents(self) -> dict[str, bytes]:
        """Every file but SQLite's memory for locks, once nothing more is written."""
        await followed(self.engine)
        return {path.name: path.read_bytes() for path in self.directory.iterdir() if not path.name.endswith("-shm")}


async def untold(done: float, total: float, sentence: str) -> None:
    """Nobody asked."""


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Store]:
    directory.mkdir(exist_ok=True)
    engine = Engine(RealFiles(directory), domains, SystemClock())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        await engine.ready()
        yield Store(engine, directory)
        engine.stop()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with running(tmp_path / "data") as opened:
        yield opened


async def test_what_was_exported_is_the_same_after_it_was_brought_elsewhere(store: Store, tmp_path: Path):
    first = await store.say("一", tags=["a"])
    await store.say("二\u2028\0", relations=[{"type": "r", "message_id": first}])
    await store.call("update_message", message_id=first, content="eins")
    data = await store.export()
    async with running(tmp_path / "other") as other:
        facts = await other.bring(data)
        assert (facts["records"], facts["new"], facts["generation"], facts["sequence"]) == (2, 2, "2", "2")
        assert (await other.export()).split(b"\n")[1:] == data.split(b"\n")[1:]
        # It is a store like any other, and its own ids go on.
        later = await other.say("later")
        assert [message["message_id"] for message in records_of(await other.export())][2:] == [later]
        assert (await other.call("search_messages", query="eins"))["results"][0]["message_id"] == first
    async with running(tmp_path / "other") as other:
        assert [message["content"] for message in records_of(await other.export())] == ["eins", "二\u2028\0", "later"]


async def test_an_export_is_one_moment_however_long_it_is_read(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("convmem.transfer.export.EXPORT_PIECE_BYTES", 1)
    ids = [await store.say(str(number)) for number in range(4)]
    pieces = exchange.export(store.engine)
    first = await anext(pieces)
    await store.call("delete_message", message_id=ids[2])
    await store.say("later")
    await store.call("rebuild_index")
    data = first + b"".join([piece async for piece in pieces])
    assert [record["message_id"] for record in records_of(data)] == ids
    assert len(records_of(await store.export())) == 4


async def test_a_file_that_is_refused_changes_nothing_and_leaves_nothing(store: Store):
    kept = await store.say("kept")
    known = records_of(await store.export())[0]
    before = await store.contents()
    for records, kind in (
        ([message(0), message(1, revision=0)], Invalid),
        ([message(0), known | {"content": "other"}], Conflict),
        ([message(0), message(0)], Conflict),
    ):
        with pytest.raises(kind) as refused:
            await store.bring(written(records))
        assert refused.value.details["line"] == 3
    assert await store.contents() == before
    assert [record["message_id"] for record in records_of(await store.export())] == [kept]


async def test_a_dry_run_says_what_would_happen_and_does_not_do_it(store: Store):
    await store.say("kept")
    known = records_of(await store.export())[0]
    before = await store.contents()
    data = written([message(0), known, message(1)])
    facts = await store.bring(data, dry_run=True)
    assert (facts["new"], facts["unchanged"], facts["dry_run"], facts["generation"]) == (2, 1, True, "1")
    facts = await store.bring(written([known | {"content": "x"}]), "overwrite", dry_run=True)
    assert facts["overwritten"] == 1
    assert await store.contents() == before


async def test_a_file_that_brings_nothing_new_costs_nothing(store: Store):
    await store.say("kept")
    before = await store.contents()
    counters = store.engine.health()["io"]
    facts = await store.bring(await store.export())
    assert (facts["unchanged"], facts["generation"]) == (1, "1")
    assert await store.contents() == before
    assert store.engine.health()["io"] == counters


async def test_while_the_file_meets_the_store_writes_are_busy_and_reads_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    loop = asyncio.get_running_loop()
    seen: list[Any] = []

    async def look() -> None:
        with pytest.raises(Busy):
            await store.engine.access(ORIGIN).write(None)  # type: ignore[arg-type]
        seen.append((await store.call("read_messages", view="history", session_id="s"))["messages"])
        with pytest.raises(Busy):
            await store.bring(b"")
        assert (await store.call("rebuild_index"))["error"]["code"] == "BUSY"

    def meet(intake: Intake, connection: Any) -> Any:
        asyncio.run_coroutine_threadsafe(look(), loop).result(10)
        return real(intake, connection)

    def scan(*arguments: Any) -> Any:
        # The first reading: nobody notices it yet.
        asyncio.run_coroutine_threadsafe(store.say("meanwhile"), loop).result(10)
        return real_scan(*arguments)

    real, real_scan = Intake.meet, exchange.scan
    monkeypatch.setattr(Intake, "meet", meet)
    monkeypatch.setattr(exchange, "scan", scan)
    await store.bring(written([message(0)]))
    assert [message["content"] for message in seen[0]] == ["meanwhile"]
    await store.say("afterwards")
    contents = [record["content"] for record in records_of(await store.export())]
    assert contents == ["meanwhile", "message 0", "afterwards"]


async def test_a_key_that_was_used_before_is_still_known_behind_an_import(store: Store):
    first = await store.call("write_message", session_id="s", role="user", content="a", idempotency_key="k")
    await store.bring(written([message(0)]))
    again = await store.call("write_message", session_id="s", role="user", content="a", idempotency_key="k")
    assert again == {**first, "replayed": True}


async def test_a_file_that_changes_between_its_two_readings_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch):
    await store.say("kept")
    before = await store.export()
    data = written([message(0), message(1)])
    path = store.directory.parent / f"brought-{len(data)}.jsonl"
    real = Intake.meet

    for other in (b"message 7", b'message 1"', b"\xff"):

        def meet(intake: Intake, connection: Any, other: bytes = other) -> Any:
            path.write_bytes(path.read_bytes().replace(b"message 1", other))
            return real(intake, connection)

        monkeypatch.setattr(Intake, "meet", meet)
        with pytest.raises(Conflict):
            await store.bring(data)
        assert (await store.export()).split(b"\n")[1:] == before.split(b"\n")[1:]
    assert not [name for name in await store.contents() if name.startswith("staging")]


async def test_a_stop_abandons_an_import_and_the_store_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scan_module, "STRIDE", 1)
    data = written([message(number) for number in range(8)])
    async with running(tmp_path / "data") as store:
        await store.say("kept")
        before = await store.export()
    async with running(tmp_path / "data") as store:
        real, engine = exchange.scan, store.engine

        def scan(*arguments: Any) -> Any:
            engine.stop()
            return real(*arguments)

        monkeypatch.setattr(exchange, "scan", scan)
        with pytest.raises(Stopping):
            await store.bring(data)
    async with running(tmp_path / "data") as store:
        assert (await store.export()).split(b"\n")[1:] == before.split(b"\n")[1:]
        assert not [name for name in await store.contents() if name.startswith("staging")]


async def body(*parts: bytes | Exception) -> AsyncIterator[bytes]:
    for part in parts:
        if isinstance(part, Exception):
            raise part
        yield part


async def test_what_a_request_brings_in_pieces_is_the_same_as_a_file(store: Store):
    data = written([message(0), message(1)])
    pieces = [data[start : start + 7] for start in range(0, len(data), 7)]
    facts = await exchange.upload(store.engine, body(*pieces), {})
    assert facts["new"] == 2
    facts = await exchange.upload(store.engine, body(data.replace(b"message 1", b"x")), {"policy": "overwrite"})
    assert (facts["overwritten"], facts["unchanged"]) == (1, 1)
    assert [record["content"] for record in records_of(await store.export())] == ["message 0", "x"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"policy": "merge"}, "policy"), ({"dry_run": "yes"}, "dry_run"), ({"polcy": "overwrite"}, "polcy")],
)
async def test_arguments_that_mean_nothing_are_refused_before_anything_is_read(
    store: Store, arguments: dict[str, str], field: str
):
    with pytest.raises(Invalid) as refused:
        await exchange.upload(store.engine, body(AssertionError("read")), arguments)
    assert refused.value.details["field"] == field


async def test_a_sender_who_goes_away_leaves_nothing(store: Store):
    before = await store.contents()
    with pytest.raises(ConnectionResetError):
        await exchange.upload(store.engine, body(written([message(0)]), ConnectionResetError()), {})
    assert await store.contents() == before
    assert (await store.bring(written([message(0)])))["new"] == 1


async def test_a_request_over_the_bound_is_refused_while_it_comes(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exchange, "IMPORT_BYTES_MAX", 1_000)
    with pytest.raises(Invalid):
        await exchange.upload(store.engine, body(b"x" * 600, b"x" * 600, AssertionError("read on")), {})
    assert not [name for name in await store.contents() if name.startswith("staging")]


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A disk that refuses the next write to a staging file."""

    def refuse(number: int) -> None:
        real = RealFile.write

        def write(file: RealFile, offset: int, data: bytes) -> None:
            monkeypatch.setattr(RealFile, "write", real)
            raise OSError(number, "made to fail")

        monkeypatch.setattr(RealFile, "write", write)

    return refuse


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, StorageFull), (errno.EIO, DiskFault)])
async def test_what_the_disk_refuses_is_said_and_the_store_goes_on(
    store: Store, refusing: Any, number: int, kind: type[Exception]
):
    await store.say("kept")
    refusing(number)
    with pytest.raises(kind):
        await exchange.upload(store.engine, body(written([message(0)])), {})
    refusing(number)
    with pytest.raises(kind):
        await store.bring(written([message(0)]))
    await store.say("goes on")
    assert (await store.bring(written([message(0)])))["new"] == 1
    assert len(records_of(await store.export())) == 3


async def test_one_bad_line_anywhere_is_named(store: Store):
    records = [message(number) for number in range(9)]
    for place in range(9):
        spoiled: list[Any] = list(records)
        spoiled[place] = b'{"type":"message"'
        with pytest.raises(CallerError) as refused:
            await store.bring(written(spoiled))
        assert refused.value.details["line"] == place + 2
    assert records_of(await store.export()) == []


async def test_an_index_that_cannot_be_read_ends_an_export_as_damage_and_the_next_start_heals_it(tmp_path: Path):
    async with running(tmp_path / "data") as store:
        for number in range(3):
            await store.say(f"text {number}")
    path = tmp_path / "data" / "index-1.db"
    path.write_bytes(path.read_bytes().replace(b"text 1", b"text \xff"))

    async def export() -> None:
        async with running(tmp_path / "data") as store:
            with pytest.raises(StoreFailed):
                await store.export()

    with pytest.raises(ExceptionGroup) as failed:
        await export()
    assert failed.group_contains(StoreFailed)
    async with running(tmp_path / "data") as store:
        assert len(records_of(await store.export())) == 3
