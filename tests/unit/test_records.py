"""Records that an importer sends: each has an outcome, none keeps another out, and a dry run writes nothing."""

from pathlib import Path
from typing import Any

import pytest

from convmem import records
from convmem.daemon import domains
from convmem.errors import Busy, Invalid
from convmem.limits import IMPORT_BATCH_RECORDS
from convmem.records import given, taken
from tests.support.engines import ORIGIN, running

SECRET = "AKIA" + "IOSFODNN7EXAMPLE"


def message(message_id: str, content: str = "said", **more: Any) -> dict[str, Any]:
    facts = {"type": "message", "format": "toy", "conversation": "c", "session_id": "toy:c", "role": "user"}
    return {**facts, "id": message_id, "content": content, "at": 1_000, **more}


PREFERENCE = {"type": "preference", "category": "other", "key": "k", "value": "v"}


async def outcomes(engine: Any, *sent: Any, **more: Any) -> list[str]:
    answer = await taken(engine.access(ORIGIN), given({"records": list(sent), **more}))
    return [one["outcome"] for one in answer["outcomes"]]


async def test_each_record_has_its_outcome_in_its_place(tmp_path: Path):
    async with running(tmp_path, domains) as engine:
        sent = [message("1"), {"type": "none"}, PREFERENCE, 5, message("2", role="nobody"), message("1"), message("3")]
        assert await outcomes(engine, *sent) == ["stored", "refused", "stored", "refused", "refused", "same", "stored"]
        answer = await taken(engine.access(ORIGIN), given({"records": [message("x", at=-5)]}))
        assert answer["outcomes"][0].items() >= {"code": "VALIDATION_ERROR", "field": "at"}.items()


async def test_a_dry_run_says_what_would_be_and_writes_nothing(tmp_path: Path):
    async with running(tmp_path, domains) as engine:
        await outcomes(engine, message("1"))
        assert engine.writer is not None
        before = engine.writer.facts.sequence
        sent = [message("1"), message("1", "otherwise"), message("2"), PREFERENCE, {"type": "none"}]
        expected = ["same", "updated", "stored", "stored", "refused"]
        assert await outcomes(engine, *sent, dry_run=True) == expected
        assert engine.writer.facts.sequence == before


async def test_where_everything_is_redacted_records_are_too(tmp_path: Path):
    async with running(tmp_path, domains) as engine:
        engine.redacts_everything = True
        await outcomes(engine, message("1", f"key {SECRET}"))
    assert all(SECRET.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


async def test_what_finds_no_room_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with running(tmp_path, domains) as engine:
        refused = 2
        await engine.ready()
        assert engine.writer is not None
        write_all = engine.writer.write_all

        async def crowded(commands: Any, origin: Any) -> Any:
            nonlocal refused
            found = await write_all(commands[: len(commands) if not refused else 2], origin)
            busy = [Busy("too many", retry_after_ms=1)] * (len(commands) - len(found))
            refused -= bool(refused)
            return [*found, *busy]

        monkeypatch.setattr(engine.writer, "write_all", crowded)
        assert await outcomes(engine, *(message(str(number)) for number in range(7))) == ["stored"] * 7


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"records": []},
        {"records": {}},
        {"records": [{}] * (IMPORT_BATCH_RECORDS + 1)},
        {"records": [{}], "dry_run": "yes"},
        {"records": [{}], "more": 1},
    ],
)
def test_what_is_no_batch_is_refused(wrong: dict[str, Any]):
    with pytest.raises(Invalid):
        given(wrong)


def test_a_batch_leaves_room_for_others():
    assert records.AT_ONCE <= IMPORT_BATCH_RECORDS
