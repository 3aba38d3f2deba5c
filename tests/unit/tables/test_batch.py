"""Batches: all of them or none, their schema too, and every row that changes has its entry of history."""

from pathlib import Path
from typing import Any, get_args

import pytest

from convmem.tables import batch, batch_ops
from tests.support.tabled import Refused, Tables, put_table, tables
from tests.unit.tables.test_schema_changes import FIELDS, MORE, listing
from tests.unit.tables.test_tools import raw, refused

SET_BODY = "UPDATE rows SET data = json_set(data, '$.body', 'x') WHERE data->>'title' = ?"


def added(title: Any) -> dict[str, Any]:
    return {"op": "create", "data": {"title": title}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put_table(tmp_path / "data" / "tables")
    return tmp_path / "data" / "tables"


async def aborted(t: Tables, ops: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The facts of a batch that was refused."""
    with pytest.raises(Refused) as caught:
        await t.call("schema_batch", ops=ops, **{"table": "notes", **more})
    assert caught.value.code == "BATCH_ABORTED"
    return dict(caught.value.facts)


async def everything(t: Tables, tmp_path: Path) -> list[Any]:
    """All that the file holds of rows and their past."""
    connection = raw(tmp_path)
    return [
        *connection.execute("SELECT id, data FROM rows ORDER BY id"),
        *connection.execute("SELECT row_id, version, op, data_json FROM _row_history ORDER BY id"),
    ]


def test_every_operation_has_something_that_does_it():
    assert set(batch.OPERATIONS) == set(get_args(batch_ops.Op))


async def test_a_batch_does_all_of_it_in_order(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        row = await t.add(title="a", stars=1)
        done = await t.call(
            "schema_batch",
            ops=[
                {"op": "data_insert", "table": "notes", "data": {"title": "b"}},
                {"op": "update", "id": row["id"][:13], "data": {"stars": 2}},
                {"op": "replace", "match": {"title": "b", "stars": None}, "items": [{"title": "c"}, {"title": "d"}]},
                {
                    "op": "query",
                    "sql": "UPDATE rows SET data = json_set(data, '$.body', 'x') WHERE data->>'title' = ?",
                    "params": ["c"],
                },
                {"type": "delete", "id": row["id"]},
            ],
        )
        assert (done["committed"], done["ops_executed"]) == (True, 5)
        assert done["affects"] == {"inserted": 3, "updated": 2, "deleted": 2}
        assert done["results"][2]["affects"] == {"deleted": 1, "inserted": 2}
        page = await t.call("list", table="notes", order_by=[{"field": "title"}])
        assert [found["data"] for found in page["rows"]] == [{"title": "c", "body": "x"}, {"title": "d"}]
        versions = (await t.call("row_history", table="notes", id=page["rows"][0]["id"]))["versions"]
        assert [version["op"] for version in versions] == ["update", "create"]


@pytest.mark.parametrize(
    ("op", "code"),
    [
        ({"op": "create", "data": {"title": 1}}, "VALIDATION_ERROR"),
        ({"op": "update", "id": "ffffffff", "data": {}}, "NOT_FOUND"),
        ({"op": "delete", "id": "ffffffff-ffff-4fff-bfff-ffffffffffff"}, "NOT_FOUND"),
        ({"op": "replace", "match": {}, "items": []}, "VALIDATION_ERROR"),
        ({"op": "replace", "match": {"unknown": 1}, "items": []}, "VALIDATION_ERROR"),
        ({"op": "replace", "match": {"title": 1}, "items": []}, "VALIDATION_ERROR"),
        ({"op": "replace", "match": {"title": "a"}, "items": [{"stars": 1}]}, "VALIDATION_ERROR"),
        ({"op": "query", "sql": "DELETE FROM _row_history"}, "VALIDATION_ERROR"),
        ({"op": "schema_create", "fields": FIELDS}, "SCHEMA_EXISTS"),
        ({"op": "schema_update", "fields": [{"name": "a"}]}, "VALIDATION_ERROR"),
    ],
)
async def test_what_is_refused_undoes_all_and_says_where_and_why(
    root: Path, tmp_path: Path, op: dict[str, Any], code: str
):
    async with tables(tmp_path) as t:
        await t.add(title="a")
        before, files = await everything(t, tmp_path), (root / "notes" / "schema.yaml").read_text()
        found = await aborted(
            t, [{"op": "create", "data": {"title": "b"}}, {"op": "schema_update", "fields": MORE}, op]
        )
        assert (found["op_index"], found["cause"]["code"]) == (2, code)
        assert await everything(t, tmp_path) == before
        assert (root / "notes" / "schema.yaml").read_text() == files
        await t.add(title="c")


async def test_the_schema_changes_with_the_rows_or_not_at_all(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        row = await t.add(title="a")
        ops = [
            {"op": "schema_update", "fields": MORE},
            {"op": "update", "id": row["id"], "data": {"need": "x"}},
            {"op": "create", "data": {"title": "b", "need": "y"}},
        ]
        await t.call("schema_batch", table="notes", ops=ops)
        assert (await refused(t, "create", table="notes", data={"title": "c"}))["field"] == "data.need"
        assert len(list((root / "_backup").iterdir())) == 2
        await t.call("schema_batch", table="notes", ops=[{"op": "schema_delete"}])
        assert t.mounts.names() == []
        made = await t.call(
            "schema_batch",
            table="notes",
            ops=[{"op": "schema_create", "fields": FIELDS, "adopt": True}, {"op": "create", "data": {"title": "d"}}],
        )
        assert made["affects"]["inserted"] == 1
        assert (await t.call("info", table="notes"))["rows"] == 3


async def test_a_table_that_comes_to_nothing_leaves_nothing(tmp_path: Path):
    ops = [{"op": "schema_create", "fields": FIELDS}, {"op": "create", "data": {"title": 1}}]
    async with tables(tmp_path) as t:
        before = listing(tmp_path)
        await aborted(t, ops, table="fresh")
        done = await t.call(
            "schema_batch", table="fresh", ops=[ops[0], {"op": "create", "data": {"title": "a"}}], dry_run=True
        )
        assert (done["committed"], done["affects"]["inserted"]) == (False, 1)
        assert listing(tmp_path) == before
        assert t.mounts.names() == []


async def test_a_dry_run_counts_truly_and_changes_nothing(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        row = await t.add(title="a")
        before = await everything(t, tmp_path)
        ops = [
            {"op": "delete", "id": row["id"]},
            {"op": "create", "data": {"title": "b"}},
            {"op": "query", "sql": "DELETE FROM rows"},
        ]
        done = await t.call("schema_batch", table="notes", ops=ops, dry_run=True)
        assert (done["affects"], done["dry_run"]) == ({"inserted": 1, "updated": 0, "deleted": 2}, True)
        assert await everything(t, tmp_path) == before


async def test_a_thousand_operations_are_one_change_and_their_results_are_cut(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        done = await t.call(
            "schema_batch", table="notes", ops=[{"op": "create", "data": {"title": str(n)}} for n in range(1000)]
        )
        assert (done["ops_executed"], done["truncated"], 0 < len(done["results"]) < 1000) == (1000, True, True)
        too_many = [
            {"op": "create", "data": {"title": "x"}},
            {"op": "replace", "match": {"title": "x"}, "items": [{"title": "y"}] * 1000},
        ]
        assert (await refused(t, "schema_batch", table="notes", ops=too_many))["code"] == "VALIDATION_ERROR"
        assert (await t.call("info", table="notes"))["rows"] == 1000


async def test_a_batch_is_about_one_table(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        ops = [{"op": "create", "table": "notes", "data": {"title": "a"}}, {"op": "create", "table": "x", "data": {}}]
        assert (await refused(t, "schema_batch", ops=ops))["code"] == "VALIDATION_ERROR"
        assert (await refused(t, "schema_batch", ops=[{"op": "create", "data": {}}]))["code"] == "TABLE_REQUIRED"
        assert (await refused(t, "schema_batch", table="x", ops=[{"op": "create", "data": {}}]))[
            "code"
        ] == "TABLE_NOT_FOUND"
        assert (await refused(t, "schema_batch", table="x", ops=ops[:1]))["field"] == "table"
