"""What an operator does to tables, over a real engine: one table's trouble is its own, and what is purged is gone."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem import table_operations, table_reading
from convmem.errors import Invalid
from convmem.store.table_vacuum import rewrite
from convmem.tables.history import Keeping
from tests.support.engines import ORIGIN
from tests.support.tabled import Tables, put_table, tables

NEEDLE = "needle in the past"


async def silent(done: float, total: float, sentence: str) -> None:
    pass


async def purged(found: Tables, **arguments: Any) -> dict[str, Any]:
    """What a purge says of each table, by its name."""
    facts = await table_operations.purged(found.engine.access(ORIGIN), arguments, silent)
    return {table["table"]: table for table in facts["tables"]}


async def changed_often(found: Tables, times: int = 5, **more: Any) -> str:
    """A row with a past that holds the needle; its id."""
    row = await found.add(title="t", body=NEEDLE, **more)
    for number in range(times):
        await found.call("update", table="notes", id=row["id"], data={"body": f"{NEEDLE} {number}"})
    await found.call("update", table="notes", id=row["id"], data={"body": "kept"})
    return str(row["id"])


def holds_needles(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.is_file() and NEEDLE.encode() in path.read_bytes()]


def do(directory: Path, *statements: str) -> None:
    """What another program does to the file of the notes."""
    file = apsw.Connection(str(directory / "notes.db"))
    for sql in statements:
        file.execute(sql)
    file.close()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "data" / "tables"
    put_table(root, "other")
    return put_table(root)


async def test_nothing_that_was_purged_is_in_any_byte_while_the_file_stays_open(tmp_path: Path, notes: Path):
    async with tables(tmp_path) as found:
        row_id = await changed_often(found, 70)
        gone = await changed_often(found)
        await found.call("delete", table="notes", id=gone)
        await found.call("list", table="notes")
        assert holds_needles(notes)
        # 73 versions of one row and 8 of the other: one of each stays.
        assert (await purged(found, keep=0))["notes"]["entries"] == 71 + 8
        assert holds_needles(notes) == []
        assert (await found.call("get", table="notes", id=row_id))["data"] == {"title": "t", "body": "kept"}
        assert holds_needles(notes) == []


async def test_a_file_that_says_both_sides_of_each_change_says_nothing_of_what_went(tmp_path: Path, notes: Path):
    async with tables(tmp_path) as found:
        row_id = await changed_often(found)
        before = json.dumps({"title": "t", "body": NEEDLE})
        do(notes, f"UPDATE _row_history SET prev_data_json = '{before}'")
        await purged(found, keep=1)
        assert holds_needles(notes) == []
        versions = (await found.call("row_history", table="notes", id=row_id))["versions"]
        assert [version["version"] for version in versions] == [7]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE _row_history SET recorded_at = 'once' WHERE version = 2",
        "UPDATE _row_history SET version = 'two' WHERE version = 2",
        "UPDATE _row_history SET version = 9223372036854775807 WHERE version = 7",
        "INSERT INTO _row_history_archive SELECT NULL, 'notes', id, 'a', 'b', 'c', 'd', 'e', 'f', x'00' FROM rows",
        "UPDATE _row_history SET row_id = x'ff00', recorded_at = 'once' WHERE version IN (2, 3)",
        "UPDATE _row_history SET row_id = CAST(x'7b22ff7d' AS TEXT) WHERE version = 2",
        "DROP TABLE _row_history_archive",
        "DROP TABLE rows",
    ],
)
async def test_whatever_stands_in_one_file_the_store_and_the_other_tables_live(tmp_path: Path, notes: Path, sql: str):
    async with tables(tmp_path) as found:
        await changed_often(found)
        other = await found.add("other", title="one")
        for number in range(3):
            await found.call("update", table="other", id=other["id"], data={"title": f"{number}"})
        do(notes, sql)
        foreseen = await purged(found, keep=1, dry_run=True)
        done = await purged(found, keep=1)
        assert json.dumps(done)
        assert "error" in done["notes"] or done["notes"]["damaged"] == 1
        assert foreseen["notes"]["entries"] == done["notes"]["entries"]
        assert done["other"]["entries"] == 3
        await found.add("other", title="still there")


async def test_a_row_whose_history_holds_no_numbers_is_refused_a_change_and_nobody_else_is(tmp_path: Path, notes: Path):
    async with tables(tmp_path, keeping=Keeping(1, 1)) as found:
        await changed_often(found)
        do(notes, "UPDATE _row_history SET recorded_at = 'once'")
        (row,) = (await found.call("list", table="notes"))["rows"]
        for number in range(70):
            await found.call("update", table="notes", id=row["id"], data={"body": str(number)})
        await found.add(title="another")


async def test_a_program_that_locks_the_file_for_a_moment_does_not_end_a_purge(tmp_path: Path, notes: Path):
    async with tables(tmp_path) as found:
        await changed_often(found)
        other = apsw.Connection(str(notes / "notes.db"))
        other.execute("BEGIN IMMEDIATE")
        access = found.engine.access(ORIGIN)
        tried = 0
        write = access.write

        async def counted(command: Any) -> Any:
            nonlocal tried
            tried += 1
            if tried == 3:
                other.execute("COMMIT")
            return await write(command)

        access.write = counted  # type: ignore[method-assign]
        facts = await table_operations.purged(access, {"keep": 1, "table": "notes"}, silent)
        other.close()
    assert tried == 3
    assert facts["tables"][0]["entries"] == 6
    assert "error" not in facts["tables"][0]


async def test_what_one_purge_takes_while_another_writes_the_file_anew_is_taken_out_too(
    tmp_path: Path, notes: Path, monkeypatch: pytest.MonkeyPatch
):
    async with tables(tmp_path) as found:
        await changed_often(found)
        loop = asyncio.get_running_loop()
        rewritten = 0

        def and_meanwhile(path: Path, begin: Callable[[Any], Callable[[], object]], **more: Any) -> None:
            """The file is written anew; before that is written down, somebody purges what has come since."""
            nonlocal rewritten
            rewritten += 1
            if rewritten > 1:
                rewrite(path, begin, **more)
                return

            def begun(connection: Any) -> Callable[[], object]:
                finish = begin(connection)

                def finished() -> None:
                    asyncio.run_coroutine_threadsafe(changed_often(found), loop).result()
                    asyncio.run_coroutine_threadsafe(purged(found, keep=1, table="notes"), loop).result()
                    finish()

                return finished

            rewrite(path, begun, **more)

        monkeypatch.setattr(table_reading, "rewrite", and_meanwhile)
        await purged(found, keep=1, table="notes")
        assert rewritten == 2
        assert holds_needles(notes) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"keep": -1},
        {"keep": True},
        {"keep": "1"},
        {"older_than": "x"},
        {"keep": 1, "dry_run": 1},
        {"x": 1, "keep": 1},
    ],
)
async def test_what_cannot_be_meant_is_refused_before_anything_is_done(
    tmp_path: Path, notes: Path, arguments: dict[str, Any]
):
    async with tables(tmp_path) as found:
        with pytest.raises(Invalid):
            await purged(found, **arguments)
