"""The indexer follows what is stored, heals what is lost, and is never waited for."""

import asyncio
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from convmem import checking, indexer
from convmem.clock import SystemClock
from convmem.daemon import domains
from convmem.files import RealFiles
from convmem.indexer import Indexer
from convmem.store import search_index
from tests.support.engines import Tools, followed, running, tools
from tests.support.waiting import until


def violations(directory: Path) -> list[str]:
    found: list[str] = checking.walk(RealFiles(directory), domains(), SystemClock(), lambda *_: None)["violations"]
    return found


async def path_of(store: Tools, query: str) -> str:
    facts = await store.call("search_messages", query=query, match="exact")
    assert [result["snippet"] for result in facts["results"]] == [query]
    return str(facts["path"])


def search(store: Tools) -> Any:
    return store.engine.health()["search"]


async def test_what_is_written_changed_and_deleted_is_known_to_the_tables_soon(tmp_path: Path):
    async with tools(tmp_path) as store:
        said = [await store.say(f"message number {number}") for number in range(200)]
        for one in said[:50]:
            change = {"content": "changed", "metadata": {"tags": ["t"]}}
            await store.call("update_message", message_id=one["message_id"], **change)
        for one in said[40:60]:
            await store.call("delete_message", message_id=one["message_id"])
        await followed(store.engine)
        assert await path_of(store, "message number 77") == "index"
        assert search(store) == {"in_use": True, "sequence": "270", "lag": 0, "found": "missing, made anew"}
    assert violations(tmp_path) == []
    async with tools(tmp_path) as store:
        assert await path_of(store, "message number 77") in ("index", "scan")
        await followed(store.engine)
        assert search(store)["found"] == "kept"


async def test_a_crowd_s_messages_are_found_at_once_with_the_indexer_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def write_and_find(store: Tools, writer: int) -> str:
        content = f"写 writer {writer} ends"
        await store.say(content, f"session {writer}")
        return await path_of(store, content)

    for name in ("with", "stopped", "without"):
        (tmp_path / name).mkdir()
    async with tools(tmp_path / "with") as store:
        await asyncio.gather(*(write_and_find(store, writer) for writer in range(100)))
    monkeypatch.setattr(Indexer, "_follow", lambda self, writer: 0)
    async with tools(tmp_path / "stopped") as store:
        await until(lambda: search(store)["in_use"])
        paths = await asyncio.gather(*(write_and_find(store, writer) for writer in range(100)))
        assert set(paths) == {"index+tail"}
    monkeypatch.setattr(Indexer, "_open", lambda self, *_: None)
    async with tools(tmp_path / "without") as store:
        paths = await asyncio.gather(*(write_and_find(store, writer) for writer in range(100)))
        assert set(paths) == {"scan"}


@pytest.mark.parametrize(
    "damage",
    [
        *("removed", "overwritten", "cut", "emptied", "of another version", "forged", "of nothing"),
        *("of other messages", "without its structure"),
    ],
)
async def test_tables_that_were_damaged_while_nobody_used_them_are_made_anew(tmp_path: Path, damage: str):
    async with tools(tmp_path) as store:
        for number in range(300):
            await store.say(f"message number {number}")
        await followed(store.engine)
    path = tmp_path / "search-1.db"
    spoil(path, damage)
    async with tools(tmp_path) as store:
        assert await path_of(store, "message number 177") in ("index", "index+tail", "scan")
        await until(lambda: search(store)["found"] != "kept")
        await followed(store.engine)
        assert search(store)["found"].endswith(", made anew")
        assert await path_of(store, "message number 177") == "index"
        assert (await store.call("get_system_health"))["status"] == "ok"
    assert violations(tmp_path) == []


def spoil(path: Path, damage: str) -> None:
    if damage == "removed":
        path.unlink()
    elif damage == "overwritten":
        path.write_bytes(b"\xff" * path.stat().st_size)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:5_000])
    elif damage == "emptied":
        path.write_bytes(b"")
    else:
        with closing(apsw.Connection(str(path))) as connection:
            if damage == "forged":
                connection.execute("UPDATE messages_state SET watermark = 10000")
            elif damage == "of nothing":
                connection.execute("DELETE FROM messages_gram")
            elif damage == "of other messages":
                connection.execute(
                    "DELETE FROM messages_word; WITH RECURSIVE n (i) AS"
                    " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
                    " INSERT INTO messages_word (rowid, content) SELECT i, 'x' FROM n"
                )
            elif damage == "without its structure":
                connection.execute("UPDATE messages_word_data SET block = zeroblob(length(block)) WHERE id = 10")
            else:
                connection.execute("UPDATE search_state SET shape = 'x'")


async def test_tables_that_are_damaged_under_a_running_daemon_are_made_anew_and_searches_go_on(tmp_path: Path):
    async with tools(tmp_path) as store:
        for number in range(300):
            await store.say(f"message number {number:03}")
        await followed(store.engine)
        with closing(apsw.Connection(str(tmp_path / "search-1.db"))) as connection:
            connection.execute("DELETE FROM messages_gram_data WHERE id > 10")
            connection.execute("DROP TABLE messages_word_idx")
        for number in range(300):
            await path_of(store, f"message number {number:03}")
        await until(lambda: search(store)["found"] == "damaged, made anew")
        await followed(store.engine)
        assert await path_of(store, "message number 123") == "index"
        assert store.engine.status() == "ok"
    assert violations(tmp_path) == []


async def test_tables_of_another_store_or_of_an_earlier_day_lose_nothing(tmp_path: Path):
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        async with tools(tmp_path / name) as store:
            for number in range(120):
                await store.say(f"{name} number {number:03}")
            await followed(store.engine)
    ours, theirs = tmp_path / "ours" / "search-1.db", tmp_path / "theirs" / "search-1.db"
    earlier = ours.read_bytes()
    ours.write_bytes(theirs.read_bytes())
    async with tools(tmp_path / "ours") as store:
        for number in range(120):
            await path_of(store, f"ours number {number:03}")
        await followed(store.engine)
        assert search(store)["found"] == "of another store, made anew"
        for number in range(120, 180):
            await store.say(f"ours number {number:03}")
        await followed(store.engine)
    ours.write_bytes(earlier)
    async with tools(tmp_path / "ours") as store:
        for number in range(180):
            await path_of(store, f"ours number {number:03}")
        await followed(store.engine)
    assert violations(tmp_path / "ours") == []


async def test_tables_that_are_exchanged_under_a_running_daemon_are_noticed_when_it_rests(tmp_path: Path):
    async with tools(tmp_path) as store:
        for number in range(120):
            await store.say(f"message number {number:03}")
        await followed(store.engine)
        with closing(apsw.Connection(str(tmp_path / "search-1.db"))) as connection:
            connection.execute("DELETE FROM messages_gram WHERE rowid < 100")
        await store.say("one more")
        await until(lambda: search(store)["found"] == "not of this index, made anew")
        await followed(store.engine)
        assert await path_of(store, "message number 007") == "index"
    assert violations(tmp_path) == []


async def test_check_names_tables_that_say_otherwise_and_a_rebuild_heals_them(tmp_path: Path):
    async with tools(tmp_path) as store:
        for number in range(100):
            await store.say(f"message number {number}")
        await followed(store.engine)
    with closing(apsw.Connection(str(tmp_path / "search-1.db"))) as connection:
        connection.execute("DELETE FROM messages_gram WHERE rowid = 8")
        connection.execute("INSERT INTO messages_gram (rowid, body) VALUES (8, 'another')")
    assert violations(tmp_path) == [
        "the tables of search: the grams of messages are not those of the index; `convmem compact` makes them anew"
    ]
    async with tools(tmp_path) as store:
        await until(lambda: search(store)["in_use"])
        assert (await store.call("rebuild_index"))["rebuilt"] is True
        assert (await store.call("rebuild_index"))["rebuilt"] is False
    assert violations(tmp_path) == []


@pytest.mark.parametrize("damage", ["overwritten", "cut", "a directory", "a link to nothing"])
async def test_check_names_the_file_that_is_damaged(tmp_path: Path, damage: str):
    async with tools(tmp_path) as store:
        await store.say("a message")
        await followed(store.engine)
    path = tmp_path / "search-1.db"
    if damage in ("overwritten", "cut"):
        spoil(path, damage)
    else:
        path.unlink()
        path.mkdir() if damage == "a directory" else path.symlink_to(tmp_path / "nothing")
    found = violations(tmp_path)
    assert len(found) == 1
    assert found[0].startswith("search-1.db is damaged: ")
    assert found[0].endswith("; `convmem compact` makes them anew")


async def test_a_compaction_brings_its_tables_along(tmp_path: Path):
    async with tools(tmp_path) as store:
        said = [await store.say(f"message number {number}") for number in range(120)]
        for one in said[:20]:
            await store.call("delete_message", message_id=one["message_id"])
        assert (await store.call("rebuild_index"))["rebuilt"] is True
        assert await path_of(store, "message number 77") in ("index", "index+tail")
        await store.say("message afterwards")
        await followed(store.engine)
        assert await path_of(store, "message afterwards") == "index"
        assert search(store)["found"] == "kept"
        assert sorted(path.name for path in tmp_path.glob("*-[0-9].db")) == ["index-2.db", "search-2.db"]
    assert violations(tmp_path) == []


async def test_what_the_disk_refuses_is_said_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(indexer, "INDEXER_RETRY_MS", 0)
    make, is_full = search_index.make, True

    def refused(*arguments: Any) -> Any:
        if is_full:
            raise apsw.FullError("database or disk is full")
        return make(*arguments)

    monkeypatch.setattr(search_index, "make", refused)
    async with tools(tmp_path) as store:
        await store.say("found without")
        await until(lambda: store.engine.indexer.trouble)
        assert store.engine.status() == "degraded"
        assert "searches look at every message" in store.engine.reasons()[0]
        assert await path_of(store, "found without") == "scan"
        is_full = False
        await until(lambda: not store.engine.indexer.trouble)
        await followed(store.engine)
        assert store.engine.status() == "ok"


async def test_a_stop_in_the_middle_of_a_transaction_leaves_whole_tables(tmp_path: Path):
    for _ in range(4):
        async with tools(tmp_path) as store:
            await asyncio.gather(*(store.say(f"message number {number}") for number in range(150)))
    assert violations(tmp_path) == []


async def test_domains_without_anything_to_search_have_no_tables(tmp_path: Path):
    async with running(tmp_path) as engine:
        await engine.ready()
    assert not list(tmp_path.glob("search-*"))


async def test_between_two_records_the_writer_goes_first(tmp_path: Path):
    class Writer:
        def __init__(self) -> None:
            self.asked = 0
            self.facts = type("Facts", (), {"sequence": 5})()

        @property
        def has_work(self) -> bool:
            self.asked += 1
            return self.asked < 4

    worker, writer = Indexer(RealFiles(tmp_path), lambda: False), Writer()
    worker._pause(writer)  # type: ignore[arg-type]
    assert writer.asked == 4, "it waited for as long as there was work"
    writer.asked, writer.facts.sequence = 0, indexer.INDEXER_HURRY_CHANGES + 1
    worker._pause(writer)  # type: ignore[arg-type]
    assert writer.asked == 0, "so far behind it waits for nobody"


def test_files_that_another_generation_took_the_place_of_are_no_trouble(tmp_path: Path):
    """A compaction removes them when it takes over, which may be just when they are opened."""
    indexer = Indexer(RealFiles(tmp_path), lambda: False)
    writer: Any = SimpleNamespace(facts=SimpleNamespace(generation=2))
    reading: Any = SimpleNamespace(offer=lambda generation, has_search: None)
    indexer._open(writer, reading, 1)
    assert indexer.trouble is None
    indexer._open(writer, reading, 2)
    assert indexer.trouble is not None
    indexer._close()
    indexer._thread.shutdown()
