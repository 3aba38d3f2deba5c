"""A daemon that takes secrets out of everything stores none in a row, whichever way it comes in."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.tabled import put_table, tables

SECRET = "ghp_" + "a1B2" * 9
TEXT = f"use {SECRET} here"


@pytest.mark.parametrize("redacts", [True, False])
async def test_no_way_in_leaves_a_secret_in_a_file(tmp_path: Path, redacts: bool):
    root = tmp_path / "data" / "tables"
    put_table(root)
    async with tables(tmp_path, redacts=redacts) as t:
        row = await t.add(title=TEXT, extra={"deep": [{"er": TEXT}]}, unknown=TEXT)
        at = {"table": "notes", "id": row["id"]}
        await t.call("update", **at, data={"body": TEXT})
        await t.call("content_replace", **at, field="body", old_str="use", new_str=f"{SECRET} ")
        await t.call("content_insert", **at, field="body", line=0, content=TEXT)
        ops: list[dict[str, Any]] = [
            {"op": "create", "data": {"title": TEXT}},
            {"op": "replace", "match": {"title": "nothing"}, "items": [{"title": TEXT}]},
            {"op": "query", "sql": "UPDATE rows SET data = json_set(data, '$.body', ?)", "params": [TEXT]},
            {"op": "query", "sql": f'INSERT INTO rows VALUES (uuid(), \'{{"title": "{SECRET}"}}\', 1, 1)'},
        ]
        await t.call("schema_batch", table="notes", ops=ops)
        await t.call("data_snapshot")
        found = (await t.call("get", **at))["data"]
        assert (found["title"] == "use [REDACTED:github_token] here") == redacts
        assert (found["extra"]["deep"][0]["er"] == TEXT) == (not redacts)
    holding = [path.name for path in root.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert bool(holding) == (not redacts), holding
