"""Snapshots: whole copies of tables in use, as many as the settings say, and what could not be sent is named."""

import asyncio
from pathlib import Path

import apsw
import pytest

from convmem.tables.places import SNAPSHOTS
from tests.support.s3 import s3_server
from tests.support.tabled import put_table, tables
from tests.unit.tables.test_tools import refused

EQUAL = {"type": "eq", "field": "title", "value": "a"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("notes", "notes2"):
        put_table(tmp_path / "data" / "tables", name)
    return tmp_path / "data" / "tables"


def titles(path: Path) -> list[str]:
    """The rows of a copy, as any program reads it."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    return [row[0] for row in connection.execute("SELECT data ->> 'title' FROM rows ORDER BY 1")]


async def test_all_tables_are_copied_and_the_aliases_too(root: Path, tmp_path: Path):
    async with tables(tmp_path, snapshots_kept=2) as t:
        await t.add(title="a")
        await t.call("alias_create", table="notes", name="x", filter=EQUAL)
        dry = await t.call("data_snapshot", dry_run=True)
        assert (dry["dry_run"], len(dry["snapshotted"]), (root / SNAPSHOTS).exists()) == (True, 3, False)
        first = await t.call("data_snapshot")
        assert [one["table"] for one in first["snapshotted"]] == ["notes", "notes2", "_global"]
        for _ in range(2):
            later = await t.call("data_snapshot", table="notes")
        assert later["purged"] == [first["snapshotted"][0]["file"]]
        names = sorted(path.name for path in (root / SNAPSHOTS).iterdir())
        assert [name.split(".")[0] for name in names] == ["_global", "notes", "notes", "notes2"]
        copy = root / SNAPSHOTS / later["snapshotted"][0]["file"]
        assert (titles(copy), copy.stat().st_size) == (["a"], later["snapshotted"][0]["bytes"])


async def test_a_copy_under_load_holds_what_was_answered_before(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        for number in range(50):
            await t.add(title=f"before {number:03d}")
        is_over = asyncio.Event()

        async def write() -> None:
            while not is_over.is_set():
                await t.add(title="meanwhile", body="x" * 5_000)

        async def copy() -> dict[str, object]:
            done = await t.call("data_snapshot", table="notes")
            is_over.set()
            return done

        done, *_ = await asyncio.gather(copy(), write(), write())
        (one,) = done["snapshotted"]  # type: ignore[misc]
        found = titles(root / SNAPSHOTS / str(one["file"]))  # type: ignore[index]
        assert found[:50] == [f"before {number:03d}" for number in range(50)]


async def test_two_at_once_make_two_copies(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        done = await asyncio.gather(*(t.call("data_snapshot", table="notes") for _ in range(4)))
        assert len({one["snapshotted"][0]["file"] for one in done}) == 4


async def test_one_that_cannot_be_copied_stops_no_other(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        await t.add("notes2", title="a")
        for path in (root / "notes").glob("notes.db-*"):
            path.unlink()
        (root / "notes" / "notes.db").write_bytes(b"no database" * 1000)
        done = await t.call("data_snapshot")
        assert [one["table"] for one in done["snapshotted"]] == ["notes2"]
        assert [(one["table"], one["code"]) for one in done["failed"]] == [("notes", "STORAGE_ERROR")]
        alone = await refused(t, "data_snapshot", table="notes")
        assert (alone["code"], alone["table"]) == ("SNAPSHOT_ERROR", "notes")


async def test_an_upload_without_its_settings_copies_nothing(root: Path, tmp_path: Path):
    async with tables(tmp_path, upload={"bucket": "b"}) as t:
        found = await refused(t, "data_snapshot", upload=True)
        assert (found["code"], len(found["missing"])) == ("UPLOAD_NOT_CONFIGURED", 3)
        assert not (root / SNAPSHOTS).exists()


@pytest.mark.slow
async def test_a_copy_is_sent_and_one_that_is_not_stays(root: Path, tmp_path: Path):
    with s3_server() as s3:
        async with tables(tmp_path, upload=s3.settings) as t:
            await t.add(title="a")
            done = await t.call("data_snapshot", table="notes", upload=True)
            (name,) = done["uploaded"]
            assert s3.read(f"convmem-snapshots/{name}") == (root / SNAPSHOTS / name).read_bytes()
    async with tables(tmp_path, upload=s3.settings) as t:
        done = await t.call("data_snapshot", table="notes", upload=True)
        (error,) = done["upload_errors"]
        assert (error["code"], done["uploaded"]) == ("UPLOAD_FAILED", [])
        assert (root / SNAPSHOTS / error["file"]).exists()
