"""Which directories are tables: what is broken is named with its reason and stops nothing else."""

import os
from pathlib import Path

import pytest

from convmem.tables.places import Places, Single
from tests.support.tabled import NOTES, put_table, tables
from tests.unit.tables.test_tools import raw, refused

LAUGHS = "table: notes\na: &a [x,x]\nb: &b [*a,*a]\nfields: []\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of the user's tables, with one good table in it."""
    put_table(tmp_path / "data" / "tables", "good")
    return tmp_path / "data" / "tables"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (LAUGHS, 2),
        ("table: notes\nfields: []\nfields: []\n", 3),
        ("table: notes\nfields:\n  - {name: a, type: string}\n  - {name: a, type: string}\n", 4),
        ("table: notes\nfields:\n  - name: a\n    type: String\n", 4),
        ("table: notes\nfields: !!python/object:os.system []\n", 2),
        ("table: notes\nfields:\n\t- name: a\n", 3),
        ('table: notes\nfields:\n  - {name: a, type: string, required: "false"}\n', 3),
        ("table: notes\nfields: []\nx: " + "a" * 5_000_000, 1),
        ("table: other\nfields: []\n", None),
        ("", 1),
    ],
)
async def test_a_broken_schema_is_named_with_its_place_and_stops_no_other(
    root: Path, tmp_path: Path, text: str, line: int | None
):
    (root / "notes").mkdir()
    (root / "notes" / "schema.yaml").write_text(text)
    async with tables(tmp_path) as t:
        await t.add("good", title="a")
        (broken,) = (await t.call("reload"))["broken"]
        assert (broken["table"], broken.get("line")) == ("notes", line)
        assert broken.get("code") == (None if line is None else "SCHEMA_ERROR")
        found = await refused(t, "list", table="notes")
        assert (found["code"], found["reason"]) == ("TABLE_NOT_FOUND", broken["reason"])
        assert t.engine.health()["tables"]["broken"] == [broken]
        put_table(root)
        assert (await t.call("reload"))["added"] == ["notes"]
        await t.add(title="mended")


@pytest.mark.parametrize("word", ["off", "no", "false", "False", '"off"'])
async def test_history_is_off_however_yaml_may_say_it(root: Path, tmp_path: Path, word: str):
    put_table(root, schema=NOTES + f"history: {word}\n")
    async with tables(tmp_path) as t:
        assert (await t.call("info", table="notes"))["history"] == "off"


async def test_bare_words_in_names_stay_text(root: Path, tmp_path: Path):
    text = "table: odd\ntitle: 12:30:45\nfields:\n" + "".join(
        f"  - {{name: {name}, type: string}}\n" for name in ("no", "y", "1.10", "0o17", "1e3")
    )
    put_table(root, "odd", text)
    async with tables(tmp_path) as t:
        found = await t.call("info", table="odd")
        assert found["title"] == "12:30:45"
        assert [field["name"] for field in found["fields"]] == ["no", "y", "1.10", "0o17", "1e3"]


async def test_links_fifos_and_what_is_no_file_are_broken_and_nobody_waits(root: Path, tmp_path: Path):
    outside = put_table(tmp_path / "outside", "linked")
    (root / "linked").symlink_to(outside)
    (root / "schema").mkdir()
    (root / "schema" / "schema.yaml").symlink_to(outside / "schema.yaml")
    put_table(root, "rows")
    (root / "rows" / "rows.db").symlink_to(outside / "linked.db")
    (root / "fifo").mkdir()
    os.mkfifo(root / "fifo" / "schema.yaml")
    put_table(root, "directory")
    (root / "directory" / "directory.db").mkdir()
    async with tables(tmp_path) as t:
        found = await t.call("reload")
        assert found["mounted"] == ["good"]
        assert {broken["table"] for broken in found["broken"]} == {"linked", "schema", "rows", "fifo", "directory"}
    assert sorted(path.name for path in outside.iterdir()) == ["schema.yaml"]


async def test_names_that_are_none_are_left_alone_or_broken(root: Path, tmp_path: Path):
    for name in ("_private", ".hidden", "empty"):
        (root / name).mkdir()
    (root / "file.yaml").write_text("x")
    for name in ("con", "a b", "é", "GOOD"):
        put_table(root, name)
    async with tables(tmp_path) as t:
        found = await t.call("reload")
        assert {broken["table"] for broken in found["broken"]} == {"con", "a b", "é", "good"}
        assert found["mounted"] == ["GOOD"], "of two that differ by case one is mounted"


async def test_one_table_may_be_the_default(tmp_path: Path):
    (tmp_path / "schema.yaml").write_text(NOTES)
    places = Places(
        user=tmp_path / "data" / "tables",
        single=Single(tmp_path / "schema.yaml", tmp_path / "my.db"),
        working_directory=tmp_path,
    )
    async with tables(tmp_path, places=places) as t:
        row = await t.call("create", data={"title": "a"})
        assert (await t.call("get", id=row["id"], table="notes"))["data"] == {"title": "a"}
        assert (await t.call("list"))["rows"][0]["id"] == row["id"]
        changed = await t.call("schema_update", table="notes", fields=[{"name": "title", "type": "string"}])
        assert "stars" in changed["fields_removed"]
        assert (await t.call("info"))["rows"] == 1
        assert {path.suffix for path in (tmp_path / "_backup").iterdir()} == {".yaml", ".db"}
    (tmp_path / "schema.yaml").write_text("table: [")
    async with tables(tmp_path, places=places) as t:
        assert (await refused(t, "list"))["code"] == "TABLE_NOT_FOUND"


async def test_a_file_that_holds_something_else_is_broken_and_stays_as_it_is(root: Path, tmp_path: Path):
    put_table(root)
    other = b"not a database, and longer than a page would need to be" * 100
    (root / "notes" / "notes.db").write_bytes(other)
    async with tables(tmp_path) as t:
        (broken,) = (await t.call("reload"))["broken"]
        assert (broken["table"], broken["code"]) == ("notes", "STORAGE_ERROR")
    assert (root / "notes" / "notes.db").read_bytes() == other


async def test_a_table_that_somebody_locks_for_a_moment_is_mounted_all_the_same(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        await t.add("good", title="a")
        lock = raw(tmp_path, "good")
        lock.execute("BEGIN IMMEDIATE")
        assert (await t.call("reload"))["mounted"] == ["good"]
        lock.execute("ROLLBACK")
        await t.add("good", title="b")
