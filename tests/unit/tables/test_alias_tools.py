"""Questions with a name, and questions to many rows: what they find, and that no parameter changes what is asked."""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.limits import REPLY_BYTES_DEFAULT
from convmem.reply_bytes import reply_bytes
from tests.support.tabled import put_table, tables
from tests.unit.tables.test_tools import refused

BY_STATE = '{"type": "eq", "field": "title", "value": "{{ title }}"}'
ONE = {"kind": "single", "value": "notes"}
EQUAL = {"type": "eq", "field": "title", "value": "a"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("notes", "notes2", "other"):
        put_table(tmp_path / "data" / "tables", name)
    return tmp_path / "data" / "tables"


async def test_an_alias_is_kept_run_listed_and_taken_away(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        for title in ("a", "b", "a"):
            await t.add(title=title)
        made = await t.call("alias_create", table="notes", name="as", filter=EQUAL, limit=1, description="d")
        assert made == {"created": "as", "table": "notes", "scope": "user"}
        assert (await refused(t, "alias_create", table="notes", name="as", filter=EQUAL))[
            "code"
        ] == "ALIAS_ALREADY_EXISTS"
        page = await t.call("alias_run", name="as")
        assert [row["data"] for row in page["rows"]] == [{"title": "a"}]
        rest = await t.call("alias_run", name="as", cursor=page["next_cursor"])
        assert (len(rest["rows"]), rest["next_cursor"]) == (1, None)
        assert len((await t.call("alias_run", name="as", table="notes", limit=5, offset=1))["rows"]) == 1
        (found,) = (await t.call("alias_list"))["aliases"]
        assert found == {
            "name": "as",
            "table": "notes",
            "scope": "user",
            "filter": EQUAL,
            "default_limit": 1,
            "description": "d",
            **dict.fromkeys(("filter_template", "params_schema", "order_by", "fields", "sources", "aggregator")),
        }
    async with tables(tmp_path) as t:
        assert len((await t.call("alias_run", name="as"))["rows"]) == 1, "after a restart"
        await t.call("alias_delete", name="as")
        for tool in ("alias_delete", "alias_run"):
            assert (await refused(t, tool, name="as"))["code"] == "ALIAS_NOT_FOUND"


@pytest.mark.parametrize(
    "hostile",
    [
        'a" , "field": "body',
        '"}',
        "{{ title }}",
        "{% raw %}",
        "a\\",
        '\\"',
        "\u2028",
        "a\0b",
        "'; DROP TABLE rows;--",
        "%",
        'ก"น',
    ],
)
async def test_a_parameter_is_data_whatever_it_holds(root: Path, tmp_path: Path, hostile: str):
    async with tables(tmp_path) as t:
        await t.add(title="innocent")
        row = await t.add(title=hostile)
        await t.call("alias_create", table="notes", name="by", filter_template=BY_STATE, params_schema=["title"])
        found = await t.call("alias_run", name="by", params={"title": hostile})
        assert [one["id"] for one in found["rows"]] == [row["id"]]


async def test_a_template_asks_for_what_it_needs_and_takes_nothing_else(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        await t.call("alias_create", table="notes", name="by", filter_template=BY_STATE, params_schema=["title"])
        missing = await refused(t, "alias_run", name="by")
        assert (missing["code"], missing["missing"]) == ("ALIAS_PARAMS_REQUIRED", ["title"])
        assert (await refused(t, "alias_run", name="by", params={"title": "a", "x": 1}))["code"] == "VALIDATION_ERROR"
        await t.call("alias_create", table="notes", name="free", filter_template=BY_STATE)
        assert (await refused(t, "alias_run", name="free"))["code"] == "ALIAS_TEMPLATE_ERROR"
        for template in ("{{", "{% include 'x' %}", "{{ title.__class__ }}"):
            found = await refused(t, "alias_create", table="notes", name="bad", filter_template=template)
            assert found["code"] == "ALIAS_TEMPLATE_ERROR", template
        await t.call("alias_create", table="notes", name="odd", filter_template='{"type": "eq", "field": "{{ f }}"}')
        assert (await refused(t, "alias_run", name="odd", params={"f": "title"}))["code"] == "VALIDATION_ERROR"


async def test_of_one_name_the_tables_own_comes_first_and_several_are_named(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        for table in ("notes", "notes2"):
            await t.call("alias_create", table=table, name="x", filter=EQUAL)
            await t.add(table, title="a", body=table)
        several = await refused(t, "alias_run", name="x")
        assert (several["code"], several["candidates"]) == ("AMBIGUOUS_ID", ["notes", "notes2"])
        sources = {"kind": "pattern", "value": "notes*"}
        await t.call("alias_create", name="x", sources=sources, filter=EQUAL)
        assert len((await t.call("alias_run", name="x", table="notes"))["rows"]) == 1
        both = await t.call("alias_run", name="x", table="other")
        assert sorted(row["table"] for row in both["rows"]) == ["notes", "notes2"]
        await t.call("alias_delete", name="x", table="notes")
        assert len((await t.call("alias_run", name="x", table="notes"))["rows"]) == 2


async def test_the_projects_alias_hides_the_users(root: Path, tmp_path: Path):
    async with tables(tmp_path, project=tmp_path / "project") as t:
        for scope, title in (("user", "a"), ("project", "b")):
            filter_ = {**EQUAL, "value": title}
            await t.call("alias_create", table="notes", name="x", filter=filter_, scope=scope)
            await t.add(title=title)
        assert [row["data"]["title"] for row in (await t.call("alias_run", name="x"))["rows"]] == ["b"]
        assert [alias["scope"] for alias in (await t.call("alias_list"))["aliases"]] == ["project"]
        assert [alias["scope"] for alias in (await t.call("alias_list", scope="user"))["aliases"]] == ["user"]
        await t.call("alias_delete", name="x")
        assert [row["data"]["title"] for row in (await t.call("alias_run", name="x"))["rows"]] == ["a"]


async def test_rows_of_several_tables_stand_in_one_order(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        for number in range(6):
            await t.add(("notes", "notes2")[number % 2], title=f"t{number}")
        sources = {"kind": "multi", "value": ["notes", "notes2"]}
        by_title = [{"field": "title"}]
        await t.call("alias_create", name="all", sources=sources, order_by=by_title, default_limit=4)
        first = await t.call("alias_run", name="all", fields={"mode": "list", "fields": ["title"]})
        assert [row["data"]["title"] for row in first["rows"]] == ["t0", "t1", "t2", "t3"]
        rest = await t.call("alias_run", name="all", offset=first["next_offset"])
        assert [(row["table"], row["data"]["title"]) for row in rest["rows"]] == [("notes", "t4"), ("notes2", "t5")]
        assert rest["next_offset"] is None


async def test_an_aggregate_counts_adds_and_groups(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        for number in range(10):
            await t.add(("notes", "notes2")[number % 2], title=str(number % 3), stars=number)
        both = {"kind": "pattern", "value": "notes*"}
        assert await t.call("query_aggregate", sources=both, aggregator={"kind": "count"}) == {
            "kind": "count",
            "value": 10,
        }
        one = {"kind": "single", "value": "notes"}
        for kind, value in (("sum", 20), ("avg", 4.0), ("min", 0), ("max", 8)):
            aggregator = {"kind": kind, "field": "stars"}
            assert (await t.call("query_aggregate", sources=one, aggregator=aggregator))["value"] == value
        groups = {
            "kind": "group_by",
            "by_field": "title",
            "inner": {"kind": "sum", "field": "stars"},
            "having": {"type": "gt", "field": "value", "value": 12},
            "order": [{"field": "value", "direction": "desc"}],
        }
        found = await t.call("query_aggregate", sources=both, aggregator=groups)
        assert found == {
            "kind": "groups",
            "value": [{"key": "0", "count": 4, "value": 18}, {"key": "2", "count": 3, "value": 15}],
        }
        await t.call("alias_create", name="sums", sources=both, aggregator=groups)
        assert await t.call("alias_run", name="sums") == found


async def test_what_cannot_be_added_up_is_refused_by_its_cause(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        for _ in range(2):
            await t.add(title="a", stars=2**63 - 1)
        one = {"kind": "single", "value": "notes"}
        for sources, aggregator, code in (
            (one, {"kind": "sum", "field": "stars"}, "AGGREGATOR_ERROR"),
            ({"kind": "pattern", "value": "nothing*"}, {"kind": "count"}, "AGGREGATOR_ERROR"),
            ({"kind": "single", "value": "nothing"}, {"kind": "count"}, "TABLE_NOT_FOUND"),
            (one, {"kind": "sum", "field": "title"}, "VALIDATION_ERROR"),
            (one, {"kind": "median", "field": "stars"}, "VALIDATION_ERROR"),
            ({"kind": "multi", "value": ["notes", "NOTES"]}, {"kind": "count"}, "VALIDATION_ERROR"),
        ):
            assert (await refused(t, "query_aggregate", sources=sources, aggregator=aggregator))["code"] == code
        for number in range(11):
            put_table(root, f"many{number}")
        await t.call("reload")
        many = {"kind": "pattern", "value": "many*"}
        assert (await refused(t, "query_aggregate", sources=many, aggregator={"kind": "count"}))[
            "code"
        ] == "AGGREGATOR_ERROR"


async def test_large_groups_are_cut_and_say_so(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        ops = [{"op": "create", "data": {"title": f"{number:03d}" + "x" * 2_000}} for number in range(100)]
        await t.call("schema_batch", table="notes", ops=ops)
        groups = {"kind": "group_by", "by_field": "title"}
        found = await t.call("query_aggregate", sources={"kind": "single", "value": "notes"}, aggregator=groups)
        assert found["truncated"]
        assert reply_bytes(found) <= REPLY_BYTES_DEFAULT


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        ({"table": "notes", "filter": EQUAL, "filter_template": BY_STATE}, "filter_template"),
        ({"table": "notes", "filter": {**EQUAL, "field": "x"}}, "filter.field"),
        ({"table": "notes", "sources": {"kind": "single", "value": "notes"}}, "sources"),
        ({"table": "notes", "filter": EQUAL, "params_schema": ["x"]}, "params_schema"),
        ({"table": "notes", "filter": EQUAL, "aggregator": {"kind": "count"}}, "aggregator"),
        ({"table": "notes", "filter": EQUAL, "order_by": [{"field": "tags"}]}, "order_by.0.field"),
        ({"table": "notes", "filter": EQUAL, "default_limit": 0}, "default_limit"),
        (
            {"sources": {"kind": "single", "value": "notes"}, "aggregator": {"kind": "sum", "field": "title"}},
            "aggregator.field",
        ),
        ({"table": "notes", "filter": EQUAL, "scope": "project"}, "scope"),
        ({"table": "notes"}, "filter"),
        ({"table": "notes", "order_by": [{"field": "title"}], "default_limit": 5}, "filter"),
    ],
)
async def test_an_alias_that_cannot_be_meant_names_what_is_wrong(
    root: Path, tmp_path: Path, ask: dict[str, Any], field: str
):
    async with tables(tmp_path) as t:
        found = await refused(t, "alias_create", name="x", **ask)
        assert (found["code"], found["field"]) == ("VALIDATION_ERROR", field)
        assert (await t.call("alias_list"))["aliases"] == []


async def test_an_alias_that_another_program_spoiled_hides_no_other(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        await t.call("alias_create", table="notes", name="good", filter=EQUAL)
        file = apsw.Connection(str(root / "_global.db"))
        for number, text in enumerate(("no json", "[]", '{"default_limit": "x"}', '{"a":1,"a":2}')):
            file.execute("INSERT INTO aliases VALUES ('notes', ?, ?, 1)", (f"bad{number}", text))
        file.execute("INSERT INTO aliases VALUES ('notes', 'utf', CAST(x'7bff7d' AS TEXT), 1)")
        file.execute("INSERT INTO aliases VALUES ('notes', CAST(x'ff' AS TEXT), '{}', 1)")
        file.execute("INSERT INTO aliases_taken_over VALUES (CAST(x'ff' AS TEXT))")
        found = await t.call("alias_list")
        assert [alias["name"] for alias in found["aliases"]] == ["good"]
        names = ["\\xff", *(f"bad{number}" for number in range(4)), "utf"]
        assert sorted(one["name"] for one in found["damaged"]) == names
        assert found["damaged"][0].keys() == {"name", "table", "scope"}
        assert "damaged" not in await t.call("alias_list", table="others")
        assert (await refused(t, "alias_run", name="bad0"))["code"] == "ALIAS_NOT_FOUND"
        await t.call("alias_create", table="notes", name="bad0", filter=EQUAL)
        assert (await refused(t, "alias_create", table="notes", name="bad0", filter=EQUAL))["code"] == (
            "ALIAS_ALREADY_EXISTS"
        )
        await t.call("reload")
        assert {alias["name"] for alias in (await t.call("alias_list"))["aliases"]} == {"good", "bad0"}


async def test_a_list_of_many_aliases_is_bounded(root: Path, tmp_path: Path):
    async with tables(tmp_path) as t:
        await t.call("alias_create", table="notes", name="first", filter=EQUAL)
        file = apsw.Connection(str(root / "_global.db"))
        with file:
            for number in range(300):
                text = json.dumps({"name": str(number), "filter": EQUAL, "description": "x" * 500})
                file.execute("INSERT INTO aliases VALUES ('notes', ?, ?, 1)", (str(number), text))
        found = await t.call("alias_list")
        assert found["truncated"]
        assert reply_bytes(found) <= REPLY_BYTES_DEFAULT
