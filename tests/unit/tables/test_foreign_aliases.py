"""What mini-app-mcp left: its directory mounts in place, its aliases are taken over once, nothing of it is changed."""

import json
from pathlib import Path

import apsw

from tests.support.tabled import put_table, tables

EQUAL = {"type": "eq", "field": "title", "value": "old"}
TEMPLATE = '{"type": "eq", "field": "title", "value": "{{ title }}"}'
FIRST = '{"title": "first"}'
ROW = "0a0a0a0a-0000-4000-8000-000000000001"


def put_foreign(root: Path) -> None:
    """A table and aliases as that program lays them out."""
    directory = put_table(root)
    file = apsw.Connection(str(directory / "notes.db"))
    file.execute(
        """
        CREATE TABLE rows (id TEXT PRIMARY KEY, data TEXT NOT NULL, created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL);
        CREATE TABLE _row_history (id INTEGER PRIMARY KEY AUTOINCREMENT, table_name TEXT NOT NULL, row_id TEXT NOT NULL,
            version INTEGER NOT NULL, recorded_at INTEGER NOT NULL,
            op TEXT NOT NULL CHECK(op IN ('create','update','delete')), data_json TEXT, prev_data_json TEXT);
        CREATE TABLE _aliases (name TEXT PRIMARY KEY, filter TEXT, default_limit INTEGER, description TEXT,
            params_schema TEXT);
        """
    )
    file.execute("INSERT INTO rows VALUES (?, ?, 100, 200)", (ROW, '{"title": "old", "stars": 5}'))
    file.execute(
        "INSERT INTO _row_history VALUES (1, 'notes', ?, 1, 100, 'create', ?, NULL)", (ROW, '{"title": "first"}')
    )
    file.execute(
        "INSERT INTO _row_history VALUES (2, 'notes', ?, 2, 200, 'update', ?, ?)",
        (ROW, '{"title": "old", "stars": 5}', '{"title": "first"}'),
    )
    file.execute("INSERT INTO _aliases VALUES ('olds', ?, 7, 'old ones', NULL)", (json.dumps(EQUAL),))
    file.execute("INSERT INTO _aliases VALUES ('by', ?, NULL, NULL, ?)", (TEMPLATE, '["title"]'))
    file.execute("INSERT INTO _aliases VALUES ('broken', 'no json', NULL, NULL, NULL)")
    file.close()
    common = apsw.Connection(str(root / "_global.db"))
    common.execute(
        "CREATE TABLE _global_aliases (name TEXT PRIMARY KEY, sources_json TEXT, aggregator_json TEXT, filter TEXT,"
        " default_limit INTEGER, description TEXT, params_schema TEXT)"
    )
    sources = '{"kind": "pattern", "value": "*"}'
    common.execute(
        "INSERT INTO _global_aliases VALUES ('count', ?, '{\"kind\": \"count\"}', NULL, NULL, NULL, NULL)", (sources,)
    )
    common.close()


async def test_a_directory_of_mini_app_mcp_works_in_place(tmp_path: Path):
    put_foreign(tmp_path / "data" / "tables")
    async with tables(tmp_path) as t:
        assert (await t.call("get", table="notes", id=ROW))["data"] == {"title": "old", "stars": 5}
        changed = await t.call("update", table="notes", id=ROW, data={"stars": 6})
        assert (changed["version"], changed["created_at"]) == (3, 100)
        back = await t.call("row_restore", table="notes", id=ROW, at_unix_secs=150)
        assert (back["data"], back["created_at"]) == ({"title": "first"}, 100)
        versions = (await t.call("row_history", table="notes", id=ROW))["versions"]
        assert [version["version"] for version in versions] == [4, 3, 2, 1]


async def test_its_aliases_are_taken_over_once(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_foreign(root)
    async with tables(tmp_path) as t:
        names = {alias["name"]: alias["table"] for alias in (await t.call("alias_list"))["aliases"]}
        assert names == {"olds": "notes", "by": "notes", "count": None}
        assert len((await t.call("alias_run", name="olds"))["rows"]) == 1
        assert len((await t.call("alias_run", name="by", params={"title": "old"}))["rows"]) == 1
        assert (await t.call("alias_run", name="count"))["value"] == 1
        await t.call("alias_delete", name="olds")
    async with tables(tmp_path) as t:
        assert {alias["name"] for alias in (await t.call("alias_list"))["aliases"]} == {"by", "count"}
    kept = apsw.Connection(str(root / "notes" / "notes.db")).execute("SELECT count(*) FROM _aliases").fetchall()
    assert kept == [(3,)], "theirs stay as they are"


async def test_tables_of_other_programs_with_the_same_names_are_left_alone(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    directory = put_table(root)
    apsw.Connection(str(directory / "notes.db")).execute("CREATE TABLE _aliases (something TEXT)")
    async with tables(tmp_path) as t:
        assert (await t.call("alias_list"))["aliases"] == []
        assert t.mounts.names() == ["notes"]
