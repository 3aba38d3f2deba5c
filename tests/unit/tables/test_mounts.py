"""Mounting: roots belong to one process, a reload takes all at once, and what is gone is gone."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.tabled import put_table, tables
from tests.unit.tables.test_tools import refused

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """Have another process hold the lock."""
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.stdin.close()


async def test_a_root_that_another_process_holds_is_skipped_and_said(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_table(root)
    put_table(tmp_path / "project", "mine")
    with held(root / ".lock"):
        async with tables(tmp_path, project=tmp_path / "project") as t:
            await t.add("mine", title="a")
            assert (await refused(t, "list", table="notes"))["code"] == "TABLE_NOT_FOUND"
            assert (await refused(t, "schema_create", table="x", fields=[]))["field"] == "scope"
            (broken,) = (await t.call("reload"))["broken"]
            assert (broken["scope"], broken["reason"]) == ("user", "another process holds this directory of tables")
            assert t.engine.status() == "degraded"
    async with tables(tmp_path) as t:
        await t.add(title="free again")


async def test_a_reload_finds_what_came_and_what_went(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_table(root)
    async with tables(tmp_path) as t:
        await t.add(title="a")
        put_table(root, "later")
        shutil.rmtree(root / "notes")
        assert await t.call("reload") == {"mounted": ["later"], "added": ["later"], "removed": ["notes"], "broken": []}
        assert (await refused(t, "list", table="notes"))["code"] == "TABLE_NOT_FOUND"
        put_table(root)
        await t.call("reload")
        assert (await t.call("list", table="notes"))["rows"] == []


async def test_rows_are_written_while_tables_are_reloaded(tmp_path: Path):
    put_table(tmp_path / "data" / "tables")
    async with tables(tmp_path) as t:
        is_over = asyncio.Event()

        async def write() -> int:
            count = 0
            while not is_over.is_set():
                await t.add(title=str(count))
                count += 1
            return count

        async def again() -> None:
            for _ in range(20):
                await t.call("reload")
            is_over.set()

        counts = await asyncio.gather(again(), *(write() for _ in range(4)))
        written = sum(count for count in counts if count is not None)
        assert (await t.call("info", table="notes"))["rows"] == written


async def test_a_directory_that_cannot_be_used_is_said_and_the_daemon_runs(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    async with tables(tmp_path, user=tmp_path / "file" / "tables") as t:
        (broken,) = t.mounts.facts()["broken"]
        assert "cannot be used" in broken["reason"]
        assert (await t.call("write_message", session_id="s", role="user", content="goes on"))["revision"] == 1


async def test_tables_that_cannot_be_used_are_among_the_reasons_a_few_by_name(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_table(root)
    async with tables(tmp_path) as t:
        await t.add(title="a")
        assert t.engine.status() == "ok"
        for name in "abcde":
            put_table(root, name, "table: notes\nfields: [\n")
        await t.call("reload")
        assert t.engine.status() == "degraded"
        *named, more = t.mounts.reasons()
        assert [reason.partition(" cannot be used: ")[0] for reason in named] == [f"the table {name}" for name in "abc"]
        assert more == "2 more tables cannot be used"
        for name in "abcde":
            shutil.rmtree(root / name)
        await t.call("reload")
        assert t.engine.status() == "ok"


async def test_a_table_whose_file_is_damaged_is_said_after_a_restart(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_table(root)
    async with tables(tmp_path) as t:
        await t.add(title="a")
    file = root / "notes" / "notes.db"
    file.write_bytes(bytes(byte ^ 0x55 for byte in file.read_bytes()))
    async with tables(tmp_path) as t:
        assert t.mounts.reasons() == ["the table notes cannot be used: the table's file is damaged"]
        assert t.engine.status() == "degraded"
