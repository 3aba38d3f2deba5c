"""Tables made, changed and taken away: what counts is the commit, whatever happens behind it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem import folders
from tests.support.tabled import NOTES, Refused, Tables, put_table, tables
from tests.unit.store.test_table_store import files_no_larger_than
from tests.unit.tables.test_tools import refused

FIELDS = [{"name": "title", "type": "string", "required": True}, {"name": "n", "type": "number"}]
MORE = [*FIELDS, {"name": "need", "type": "string", "required": True}]


def listing(directory: Path) -> list[str]:
    """Everything below a directory; of a data directory the tables alone."""
    found = (path.relative_to(directory) for path in directory.rglob("*"))
    return sorted(str(path) for path in found if path.parts[0] != "data" or path.parts[1:2] == ("tables",))


async def test_a_table_is_made_used_changed_and_taken_away(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    async with tables(tmp_path) as t:
        made = await t.call("schema_create", table="books", fields=FIELDS, title="Books", description="Read.")
        assert made == {"created": "books", "scope": "user"}
        row = await t.call("create", table="books", data={"title": "a"})
        changed = await t.call("schema_update", table="books", fields=[MORE[0], {**MORE[1], "type": "string"}, MORE[2]])
        assert changed == {
            "fields_added": ["need"],
            "fields_removed": [],
            "fields_type_changed": ["n"],
            "rows_failing": 1,
        }
        assert (await refused(t, "update", table="books", id=row["id"], data={"n": "1"}))["field"] == "data.need"
        gone = await t.call("schema_delete", table="books")
        assert (gone["deleted"], gone["rows"], len(gone["backup"])) == ("books", 1, 2)
        assert (await refused(t, "list", table="books"))["code"] == "TABLE_NOT_FOUND"
        assert (root / "books" / "books.db").exists()
        assert not (root / "books" / "schema.yaml").exists()
        backups = sorted(path.name.split(".", 1)[0] + path.suffix for path in (root / "_backup").iterdir())
        assert backups == ["books.db", "books.db", "books.yaml", "books.yaml"]


async def test_a_table_that_is_there_is_not_made_again(tmp_path: Path):
    put_table(tmp_path / "data" / "tables")
    async with tables(tmp_path) as t:
        assert (await refused(t, "schema_create", table="notes", fields=FIELDS))["code"] == "SCHEMA_EXISTS"
        twin = await refused(t, "schema_create", table="NOTES", fields=FIELDS)
        assert (twin["code"], twin["table"]) == ("SCHEMA_EXISTS", "notes")


async def test_old_rows_are_taken_over_only_if_that_is_said(tmp_path: Path):
    async with tables(tmp_path) as t:
        await t.call("schema_create", table="books", fields=FIELDS)
        await t.call("create", table="books", data={"title": "a"})
        await t.call("schema_delete", table="books")
        assert (await refused(t, "schema_create", table="books", fields=MORE))["code"] == "SCHEMA_EXISTS"
        dry = await t.call("schema_create", table="books", fields=MORE, adopt=True, dry_run=True)
        assert dry == {"created": "books", "scope": "user", "rows": 1, "rows_failing": 1, "dry_run": True}
        assert t.mounts.names() == []
        await t.call("schema_create", table="books", fields=FIELDS, adopt=True)
        assert (await t.call("info", table="books"))["rows"] == 1


async def test_a_dry_run_says_what_would_be_and_leaves_no_trace(tmp_path: Path):
    put_table(tmp_path / "data" / "tables")
    async with tables(tmp_path) as t:
        await t.add(title="a")
        before = listing(tmp_path)
        assert (await t.call("schema_create", table="books", fields=FIELDS, dry_run=True))["dry_run"]
        changed = await t.call("schema_update", table="notes", fields=MORE, dry_run=True)
        assert (changed["fields_added"], changed["rows_failing"]) == (["n", "need"], 1)
        assert (await t.call("schema_delete", table="notes", dry_run=True))["rows"] == 1
        assert listing(tmp_path) == before
        assert t.mounts.names() == ["notes"]


CREATING: dict[str, dict[str, Any]] = {
    "schema_create": {"table": "books", "fields": FIELDS},
    "schema_batch": {
        "table": "books",
        "ops": [{"op": "schema_create", "fields": FIELDS}, {"op": "create", "data": {"title": "a"}}],
    },
}


@pytest.mark.parametrize("tool", CREATING)
@pytest.mark.parametrize("has_directory", [True, False])
async def test_a_table_that_is_only_tried_leaves_its_place_as_it_was(tmp_path: Path, tool: str, has_directory: bool):
    async with tables(tmp_path) as t:
        if has_directory:
            (tmp_path / "data" / "tables" / "books").mkdir()
        before = listing(tmp_path)
        assert (await t.call(tool, **CREATING[tool], dry_run=True))["dry_run"]
        assert listing(tmp_path) == before


async def test_what_is_only_tried_leaves_the_rows_of_an_earlier_table_alone(tmp_path: Path):
    ops = [{"op": "schema_create", "fields": FIELDS, "adopt": True}, {"op": "data_insert", "data": {"title": "b"}}]
    async with tables(tmp_path) as t:
        await t.call("schema_create", table="books", fields=FIELDS)
        await t.add("books", title="a")
        await t.call("schema_delete", table="books")
        before = listing(tmp_path)
        assert (await t.call("schema_batch", table="books", ops=ops, dry_run=True))["affects"]["inserted"] == 1
        assert listing(tmp_path) == before
        await t.call("schema_batch", table="books", ops=ops)
        assert (await t.call("info", table="books"))["rows"] == 2


@pytest.mark.parametrize("tool", CREATING)
@pytest.mark.parametrize("has_directory", [True, False])
@pytest.mark.parametrize("room_bytes", [2 * 1024, 16 * 1024, 40 * 1024])
async def test_a_table_for_which_there_is_no_room_leaves_nothing(
    tmp_path: Path, tool: str, has_directory: bool, room_bytes: int
):
    async with tables(tmp_path) as t:
        if has_directory:
            (tmp_path / "data" / "tables" / "books").mkdir()
        before = listing(tmp_path)
        with files_no_larger_than(room_bytes):
            assert (await refused(t, tool, **CREATING[tool]))["code"] in ("STORAGE_FULL", "STORAGE_ERROR")
        assert listing(tmp_path) == before
        await t.call(tool, **CREATING[tool])
        await t.add("books", title="b")


async def test_history_and_dump_stay_unless_they_are_given(tmp_path: Path):
    put_table(tmp_path / "data" / "tables", schema=NOTES + "history: off\ndump:\n  body_field: body\nx-own: kept\n")
    async with tables(tmp_path) as t:
        await t.call("schema_update", table="notes", fields=FIELDS)
        found = await t.call("info", table="notes")
        assert (found["history"], found["dump"], found["x-own"]) == ("off", {"body_field": "body"}, "kept")
        await t.call("schema_update", table="notes", fields=FIELDS, history="full")
        assert (await t.call("info", table="notes"))["history"] == "full"


async def test_as_many_backups_are_kept_as_the_settings_say(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_table(root)
    put_table(root, "notes-2")
    async with tables(tmp_path, backups_kept=2) as t:
        for table in ("notes", "notes-2"):
            for number in range(4):
                await t.call("schema_update", table=table, fields=[*FIELDS, {"name": f"f{number}", "type": "string"}])
    names = [path.name for path in (root / "_backup").iterdir()]
    assert len([name for name in names if name.startswith("notes.")]) == 4
    assert len([name for name in names if name.startswith("notes-2.")]) == 4


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "..",
        ".",
        "a/../../b",
        "/etc/x",
        "C:\\x",
        "a\\b",
        "%2e%2e",
        "a\0b",
        "con",
        "x.",
        "x ",
        "-rf",
        "a" * 65,
        "é",
        "",
        "_x",
    ],
)
async def test_no_name_leads_out_of_the_root(tmp_path: Path, name: str):
    async with tables(tmp_path) as t:
        before = listing(tmp_path)
        asked: dict[str, dict[str, Any]] = {
            "schema_create": {"fields": FIELDS},
            "schema_batch": {"ops": [{"op": "schema_create", "fields": FIELDS}]},
            "schema_delete": {},
            "schema_update": {"fields": FIELDS},
            "data_snapshot": {},
        }
        for tool, more in asked.items():
            code = (await refused(t, tool, table=name, **more))["code"]
            assert code in ("VALIDATION_ERROR", "TABLE_NOT_FOUND", "TABLE_REQUIRED"), tool
        assert listing(tmp_path) == before


@pytest.mark.parametrize("place", ["directory", "file", "backups"])
async def test_a_link_in_the_place_of_ours_is_not_followed(tmp_path: Path, place: str):
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "data" / "tables"
    root.mkdir(parents=True)
    if place == "directory":
        (root / "books").symlink_to(outside)
    elif place == "file":
        (root / "books").mkdir()
        (root / "books" / "books.db").symlink_to(outside / "books.db")
    else:
        (root / "_backup").symlink_to(outside)
        put_table(root, "books")
    async with tables(tmp_path) as t:
        if place == "backups":
            found = await refused(t, "schema_update", table="books", fields=FIELDS)
            assert found["code"] == "IO_ERROR"
        else:
            found = await refused(t, "schema_create", table="books", fields=FIELDS)
            assert found["code"] == "VALIDATION_ERROR"
    assert not list(outside.iterdir())


async def test_no_row_is_ever_checked_by_a_schema_that_no_longer_counts(tmp_path: Path):
    put_table(tmp_path / "data" / "tables")
    async with tables(tmp_path) as t:
        is_over = asyncio.Event()
        outcomes: dict[str, int] = {}

        async def write(number: int) -> None:
            while not is_over.is_set():
                data = {"title": f"{number}", **({"need": "x"} if number % 2 else {})}
                try:
                    await t.call("create", table="notes", data=data)
                    outcome = "stored"
                except Refused as refusal:
                    outcome = refusal.code
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                await asyncio.sleep(0)

        async def change() -> None:
            for number in range(12):
                await t.call("schema_update", table="notes", fields=MORE if number % 2 == 0 else FIELDS)
                if number % 2 == 0:
                    # From here on no row without `need` may come in.
                    before = await count_without_need(t)
                    await asyncio.sleep(0.01)
                    assert await count_without_need(t) == before
            is_over.set()

        await asyncio.gather(change(), *(write(number) for number in range(4)))
        assert set(outcomes) <= {"stored", "VALIDATION_ERROR"}, outcomes
        assert outcomes["stored"] > 20


async def count_without_need(t: Tables) -> int:
    sources = {"kind": "single", "value": "notes"}
    lacks = {"type": "exists", "field": "need", "value": False}
    return int((await t.call("query_aggregate", sources=sources, filter=lacks, aggregator={"kind": "count"}))["value"])


async def test_a_schema_that_was_committed_counts_though_its_file_was_never_written(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_table(root)
    async with tables(tmp_path) as t:
        await t.add(title="a")
    connection = apsw.Connection(str(root / "notes" / "notes.db"))
    newer = NOTES.replace("title: Notes", "title: Newer")
    connection.execute("INSERT INTO _schema_pending VALUES (1, ?)", (newer.encode(),))
    connection.close()
    async with tables(tmp_path) as t:
        assert (await t.call("info", table="notes"))["title"] == "Newer"
        assert (root / "notes" / "schema.yaml").read_text() == newer
        pending = apsw.Connection(str(root / "notes" / "notes.db")).execute("SELECT * FROM _schema_pending").fetchall()
        assert pending == []


async def test_a_table_that_was_taken_away_stays_away_though_its_file_was_still_there(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_table(root)
    async with tables(tmp_path) as t:
        await t.add(title="a")
    connection = apsw.Connection(str(root / "notes" / "notes.db"))
    connection.execute("INSERT INTO _schema_pending VALUES (1, NULL)")
    connection.close()
    async with tables(tmp_path) as t:
        assert t.mounts.facts() == {"mounted": 0, "broken": []}
        assert not (root / "notes" / "schema.yaml").exists()


async def test_a_disk_that_does_not_take_the_file_changes_nothing_of_what_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root = tmp_path / "data" / "tables"
    put_table(root)
    async with tables(tmp_path) as t:
        await t.add(title="a")

        def full(path: Path, data: bytes) -> None:
            raise OSError(28, os.strerror(28), str(path))

        with monkeypatch.context() as patch:
            patch.setattr(folders, "write", full)
            await t.call("schema_update", table="notes", fields=MORE)
        assert (await refused(t, "create", table="notes", data={"title": "b"}))["field"] == "data.need"
        assert "need" not in (root / "notes" / "schema.yaml").read_text()
        await t.call("reload")
        assert "need" in (root / "notes" / "schema.yaml").read_text()
        assert (await refused(t, "create", table="notes", data={"title": "b"}))["field"] == "data.need"


async def test_an_edit_by_hand_is_not_written_over(tmp_path: Path):
    file = tmp_path / "data" / "tables" / "notes" / "schema.yaml"
    put_table(tmp_path / "data" / "tables")
    async with tables(tmp_path) as t:
        edited = NOTES.replace("title: Notes", "title: By hand")
        file.write_text(edited)
        ops = [{"op": "schema_update", "fields": MORE}]
        for tool, more in (("schema_update", {"fields": MORE}), ("schema_delete", {}), ("schema_batch", {"ops": ops})):
            assert (await refused(t, tool, table="notes", **more))["code"] == "CONFLICT", tool
        assert file.read_text() == edited
        await t.call("reload")
        await t.call("schema_update", table="notes", fields=MORE, title="By both")
        assert "By both" in file.read_text()


async def test_the_projects_table_hides_the_users_until_it_goes(tmp_path: Path):
    project = tmp_path / "project"
    put_table(tmp_path / "data" / "tables")
    async with tables(tmp_path, project=project) as t:
        await t.add(title="of the user")
        await t.call("schema_create", table="notes", scope="project", fields=FIELDS)
        assert (await t.call("info", table="notes"))["scope"] == "project"
        assert (await t.call("list", table="notes"))["rows"] == []
        assert (await refused(t, "schema_delete", table="notes", scope="nowhere"))["code"] == "VALIDATION_ERROR"
        await t.call("schema_update", table="notes", scope="user", fields=MORE)
        assert (await t.call("info", table="notes"))["scope"] == "project"
        await t.call("schema_delete", table="notes", scope="project")
        found = await t.call("info", table="notes")
        assert (found["scope"], found["rows"], json.dumps(found["fields"]).count("need")) == ("user", 1, 1)


async def test_without_a_directory_for_projects_nothing_is_made_there(tmp_path: Path):
    async with tables(tmp_path) as t:
        assert (await refused(t, "schema_create", table="a", scope="project", fields=FIELDS))["field"] == "scope"


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"fields": [{"name": "a", "type": "String"}]}, "fields.0.type"),
        ({"fields": [{"name": "a", "type": "string"}, {"name": "a", "type": "string"}]}, "fields.1.name"),
        ({"fields": [{"name": "a", "type": "string", "x": 1}]}, "fields.0.x"),
        ({"fields": [{"type": "string"}]}, "fields.0"),
        ({"fields": [], "history": "some"}, "history"),
        ({"fields": [], "dump": {"sync": "both"}}, "dump.sync"),
    ],
)
async def test_a_schema_that_cannot_be_meant_names_what_is_wrong(tmp_path: Path, more: dict[str, Any], field: str):
    async with tables(tmp_path) as t:
        found = await refused(t, "schema_create", table="a", **more)
        assert (found["code"], found["field"]) == ("VALIDATION_ERROR", field)
        assert not (tmp_path / "data" / "tables" / "a").exists()
