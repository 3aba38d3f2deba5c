"""Preferences, lessons and sections in a store on a real disk: files of records, restarts, compaction, erasure."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from convmem import checking, exchange
from convmem.domain import Origin
from convmem.errors import Conflict
from convmem.files import regular
from convmem.memory.inputs import WriteSection
from convmem.messages.inputs import CaptureEvent
from tests.support.engines import ORIGIN, Tools, followed, tools
from tests.support.filed import message, records_of, written
from tests.support.remembered import LESSON, PREFERENCE, lesson_record, preference_record, section_record

OTHER_ID = "01BX5ZZKBK000000000000000B"


async def untold(done: float, total: float, sentence: str) -> None:
    """Nobody asked."""


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[Tools]:
    directory.mkdir(exist_ok=True)
    async with tools(directory) as store:
        yield store


async def bring(store: Tools, path: Path, policy: Any = "reject") -> Any:
    file = regular(path)
    try:
        return await exchange.bring(store.engine, file, policy, dry_run=False, progress=untold)
    finally:
        file.close()


async def exported(store: Tools) -> bytes:
    return b"".join([piece async for piece in exchange.export(store.engine)])


async def test_numbers_go_on_behind_those_that_a_file_was_given(tmp_path: Path):
    file = tmp_path / "memory.jsonl"
    file.write_bytes(written([lesson_record(), preference_record(id=OTHER_ID), section_record()]))
    async with opened(tmp_path / "data") as store:
        assert (await store.call("remember", **PREFERENCE))["number"] == 1
        await bring(store, file)
        assert (await store.call("remember", **PREFERENCE, project="p"))["number"] == 3
        assert (await store.call("save_lesson", **LESSON))["number"] == 4
        await store.call("forget", target_id=4)
        await store.call("rebuild_index")
    async with opened(tmp_path / "data") as store:
        assert (await store.call("save_lesson", **LESSON))["number"] == 5
        assert (await store.call("save_lesson", **LESSON, project="p"))["number"] == 2


async def test_what_went_out_comes_in_byte_for_byte(tmp_path: Path):
    file = tmp_path / "memory.jsonl"
    async with opened(tmp_path / "first") as store:
        for number in range(5):
            await store.call("remember", **PREFERENCE | {"key": f"key {number % 3}", "value": f"v\u2028{number}\0"})
            await store.say(f"message {number}")
            await store.call("save_lesson", **LESSON | {"mistake": f"é\x7f{number}"}, project="p")
        await store.engine.access(ORIGIN).write(WriteSection(section="goals", content="ship\nit"))
        file.write_bytes(await exported(store))
    async with opened(tmp_path / "second") as store:
        await bring(store, file)
        again = await exported(store)
        assert again.split(b"\n")[1:] == file.read_bytes().split(b"\n")[1:]
        answer = await bring(store, file)
        assert (answer["new"], answer["unchanged"]) == (0, len(records_of(again)))
    tags = [record["type"] for record in records_of(again)]
    assert tags == ["preference", "message", "lesson"] * 3 + ["message", "lesson"] * 2 + ["profile"]


async def test_what_hooks_captured_on_one_machine_is_stored_once_on_another(tmp_path: Path):
    file = tmp_path / "memory.jsonl"
    events: list[dict[str, Any]] = [
        {"event_id": str(number), "kind": "prompt", "session_id": "s"} for number in range(3)
    ]
    async with opened(tmp_path / "first") as store:
        for number, event in enumerate(events):
            await store.engine.access(ORIGIN).write(CaptureEvent(**event, content=f"prompt {number}"))
        file.write_bytes(await exported(store))
    # A file that somebody worked on: the last event is there twice, under another id.
    records = records_of(file.read_bytes())
    file.write_bytes(written([*records, records[-1] | {"message_id": OTHER_ID}]))

    async def sent(store: Tools, event: dict[str, Any]) -> bool:
        answer = await store.engine.access(ORIGIN).write(CaptureEvent(**event, content="said otherwise"))
        return bool(answer["replayed"])

    directory = tmp_path / "second"
    async with opened(directory) as store:
        await store.engine.access(ORIGIN).write(CaptureEvent(**events[0], content="here before"))
        assert (await bring(store, file))["new"] == 4
        assert [await sent(store, event) for event in events] == [True] * 3
        assert len((await store.call("get_recent_interactions"))["interactions"]) == 5
        assert (await checking.check(store.engine, untold))["violations"] == []
        await store.call("forget", target_id=OTHER_ID)
        assert (await store.call("rebuild_index"))["rebuilt"]
        assert [await sent(store, event) for event in events] == [True] * 3
    for index in directory.glob("index-*"):
        index.unlink()
    async with opened(directory) as store:
        assert [await sent(store, event) for event in events] == [True] * 3


async def test_the_same_lesson_learned_on_two_machines_refuses_no_file(tmp_path: Path):
    file = tmp_path / "memory.jsonl"
    async with opened(tmp_path / "first") as store:
        await store.call("save_lesson", **LESSON)
        await store.call("remember", **PREFERENCE)
        await store.engine.access(ORIGIN).write(WriteSection(section="goals", content="ship it"))
        file.write_bytes(await exported(store))
    async with opened(tmp_path / "second") as store:
        await store.say("a message before")
        learned = await store.call("save_lesson", **LESSON)
        await store.call("remember", **PREFERENCE)
        await store.engine.access(Origin("phone", "http")).write(WriteSection(section="goals", content="ship it"))
        before = await exported(store)
        answer = await bring(store, file)
        assert (answer["new"], answer["unchanged"], answer["overwritten"]) == (0, 3, 0)
        assert (await exported(store)).split(b"\n")[1:] == before.split(b"\n")[1:]
        assert (await store.call("save_lesson", **LESSON))["id"] == learned["id"]


async def test_an_id_removes_one_thing_whatever_files_came_in(tmp_path: Path):
    file = tmp_path / "memory.jsonl"
    async with opened(tmp_path / "data") as store:
        said = await store.say("a message")
        saved = await store.call("remember", **PREFERENCE)
        for record in (lesson_record(id=saved["id"]), lesson_record(id=said["message_id"])):
            file.write_bytes(written([preference_record(), record]))
            with pytest.raises(Conflict, match="line 3: another record in the store bears this id"):
                await bring(store, file)
        for record in (message(1, message_id=saved["id"]), preference_record(id=saved["id"], key="other")):
            file.write_bytes(written([record]))
            with pytest.raises(Conflict, match="line 2"):
                await bring(store, file, "overwrite")
        assert len(records_of(await exported(store))) == 2
        assert len((await store.call("forget", target_id=saved["id"]))["removed"]) == 1
        assert (await store.call("forget", target_id=saved["id"]))["removed"] == []


async def test_what_was_forgotten_is_in_no_byte_of_any_file_after_a_compaction(tmp_path: Path):
    hidden = ("HIDDENKEY", "HIDDENVALUE", "HIDDENLESSON", "HIDDENSECTION", "HIDDENBEFORE")
    async with opened(tmp_path) as store:
        access = store.engine.access(ORIGIN)
        await store.call("remember", **PREFERENCE | {"key": hidden[0], "value": hidden[1]})
        await store.call("save_lesson", **LESSON | {"mistake": hidden[2]})
        await access.write(WriteSection(section="goals", content=hidden[3]))
        await store.call("remember", **PREFERENCE | {"value": hidden[4]})
        for value in ("next", "last"):
            await store.call("remember", **PREFERENCE | {"value": value})
        await store.call("forget", target_id="1")
        await store.call("forget", target_id="2")
        await access.write(WriteSection(section="goals", content="other"))
        assert (await store.call("rebuild_index"))["rebuilt"]
        await followed(store.engine)
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {"convmem.log"} < {path.name for path in files}
        for path in files:
            data = path.read_bytes().lower()
            assert not [text for text in hidden if text.lower().encode() in data], path.name
    async with opened(tmp_path) as store:
        assert await store.call("get_profile")
        assert not (await store.call("rebuild_index"))["rebuilt"]
