"""Tables through the official client, in both eras: all tools, the resources, and what a restart leaves."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from convmem.catalog import PROFILES
from convmem.limits import REPLY_BYTES_DEFAULT
from tests.support.daemons import Daemon, daemon
from tests.support.tabled import put_table

pytestmark = pytest.mark.slow
MODES = ("legacy", "2026-07-28")
FIELDS = [
    {"name": "title", "type": "string", "required": True},
    {"name": "body", "type": "string"},
    {"name": "n", "type": "number"},
]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Daemon]:
    with daemon(tmp_path / "data", environment={"CONVMEM_PROJECT_DIR": str(tmp_path / "project")}) as started:
        yield started


class Caller:
    """The official client: `ask` gives the facts of an answer, `refused` the code of a refusal."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.used: set[str] = set()
        self.codes: set[str] = set()

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self._client.call_tool(tool, arguments)
        facts = result.structured_content or {}
        assert not result.is_error, facts
        (block,) = result.content
        assert json.loads(block.text) == facts
        self.used.add(tool)
        return facts

    async def refused(self, tool: str, **arguments: Any) -> str:
        result = await self._client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        code = str((result.structured_content or {})["error"]["code"])
        assert result.content[0].text.startswith(f"{code}: ")
        self.codes.add(code)
        return code


@pytest.mark.parametrize("mode", MODES)
async def test_every_tool_does_what_it_says(running: Daemon, mode: str, tmp_path: Path):
    async with Client(f"{running.url}/tables", mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(PROFILES["tables"])
        caller = Caller(client)
        await journey(caller, f"t{MODES.index(mode)}")
        assert caller.used == set(PROFILES["tables"])
        assert caller.codes >= {
            *("VALIDATION_ERROR", "NOT_FOUND", "CONFLICT", "TABLE_REQUIRED", "TABLE_NOT_FOUND", "AMBIGUOUS_ID"),
            *("SCHEMA_EXISTS", "BATCH_ABORTED", "TYPE_ERROR", "STRING_NOT_FOUND", "AMBIGUOUS_MATCH", "OUT_OF_RANGE"),
            *("ALIAS_NOT_FOUND", "ALIAS_ALREADY_EXISTS", "ALIAS_PARAMS_REQUIRED", "ALIAS_TEMPLATE_ERROR"),
            *("AGGREGATOR_ERROR", "UPLOAD_NOT_CONFIGURED", "INVALID_CURSOR", "CONTENT_TOO_LARGE"),
        }


async def journey(caller: Caller, table: str) -> None:
    ask, refused = caller.ask, caller.refused
    assert await ask("schema_create", table=table, fields=FIELDS) == {"created": table, "scope": "user"}
    assert await refused("schema_create", table=table, fields=FIELDS) == "SCHEMA_EXISTS"
    await ask("schema_create", table=f"{table}-project", scope="project", fields=FIELDS)
    row = await ask("create", table=table, data={"title": "a", "body": "one\ntwo\ntwo", "n": 2**53 + 1})
    other = await ask("create", table=table, data={"title": "b"}, idempotency_key="k")
    assert (await ask("create", table=table, data={"title": "b"}, idempotency_key="k"))["id"] == other["id"]
    assert await refused("create", table=table, data={"title": "c"}, idempotency_key="k") == "CONFLICT"
    assert await refused("create", table=table, data={}) == "VALIDATION_ERROR"
    assert await refused("create", table=table, data={"title": "x" * 1_100_000}) == "CONTENT_TOO_LARGE"
    assert await refused("create", data={"title": "x"}) == "TABLE_REQUIRED"
    assert await refused("create", table="nowhere", data={"title": "x"}) == "TABLE_NOT_FOUND"
    assert (await ask("get", table=table, id=row["id"][:20]))["data"]["n"] == 2**53 + 1
    assert await refused("get", table=table, id="0" * 35) == "NOT_FOUND"
    page = await ask("list", table=table, filter={"type": "eq", "field": "title", "value": "b"}, with_total=True)
    assert (page["rows"][0]["id"], page["total"]) == (other["id"], 1)
    assert await refused("list", table=table, cursor="x") == "INVALID_CURSOR"
    changed = await ask("update", table=table, id=row["id"], data={"n": 1}, expected_sha256=row["sha256"])
    assert await refused("update", table=table, id=row["id"], data={}, expected_sha256=row["sha256"]) == "CONFLICT"
    at = {"table": table, "id": row["id"], "field": "body"}
    assert (await ask("content_view", **at))["total_lines"] == 3
    assert await refused("content_view", **{**at, "field": "n"}) == "TYPE_ERROR"
    assert await refused("content_replace", **at, old_str="two", new_str="2") == "AMBIGUOUS_MATCH"
    assert await refused("content_replace", **at, old_str="three", new_str="3") == "STRING_NOT_FOUND"
    assert (await ask("content_replace", **at, old_str="one", new_str="1"))["matches"] == 1
    assert (await ask("content_insert", **at, line=0, content="zero"))["inserted_lines"] == 1
    assert await refused("content_insert", **at, line=99, content="x") == "OUT_OF_RANGE"
    await ask("delete", table=table, id=row["id"])
    back = await ask("row_restore", table=table, id=row["id"], version=changed["version"])
    assert back["data"]["n"] == 1
    assert (await ask("row_history", table=table, id=row["id"]))["versions"][0]["version"] == back["version"]
    ops = [{"op": "create", "data": {"title": f"{number:03d}"}} for number in range(300)]
    assert (await ask("schema_batch", table=table, ops=ops))["affects"]["inserted"] == 300
    assert await refused("schema_batch", table=table, ops=[{"op": "create", "data": {}}]) == "BATCH_ABORTED"
    assert await refused("get", table=table, id=await common_start(caller, table)) == "AMBIGUOUS_ID"
    await questions(caller, table)
    assert (await ask("info", table=table))["rows"] == 302
    changes = await ask("schema_update", table=table, fields=[*FIELDS, {"name": "more", "type": "array"}])
    assert changes["fields_added"] == ["more"]
    assert len((await ask("data_snapshot", table=table))["snapshotted"]) == 1
    assert await refused("data_snapshot", upload=True) == "UPLOAD_NOT_CONFIGURED"
    await ask("schema_delete", table=table)
    assert table not in (await ask("reload"))["mounted"]


async def common_start(caller: Caller, table: str) -> str:
    """A beginning that several ids have: of three hundred random ones there always are some."""
    rows = (await caller.ask("list", table=table, limit=400))["rows"]
    starts = [row["id"][:1] for row in rows]
    return max(set(starts), key=starts.count)


async def questions(caller: Caller, table: str) -> None:
    ask, refused = caller.ask, caller.refused
    template = '{"type": "like", "field": "title", "pattern": "{{ start }}%"}'
    alias = {"table": table, "name": "starts", "filter_template": template, "params_schema": ["start"]}
    await ask("alias_create", **alias)
    assert await refused("alias_create", **alias) == "ALIAS_ALREADY_EXISTS"
    found = await ask("alias_run", name="starts", table=table, params={"start": "29"})
    assert len(found["rows"]) == 10
    assert await refused("alias_run", name="starts", table=table) == "ALIAS_PARAMS_REQUIRED"
    bad = {**alias, "name": "bad", "filter_template": "{{ start"}
    assert await refused("alias_create", **bad) == "ALIAS_TEMPLATE_ERROR"
    assert "starts" in [one["name"] for one in (await ask("alias_list", table=table))["aliases"]]
    await ask("alias_delete", name="starts", table=table)
    assert await refused("alias_run", name="starts", table=table) == "ALIAS_NOT_FOUND"
    sources = {"kind": "pattern", "value": f"{table}*"}
    assert await ask("query_aggregate", sources=sources, aggregator={"kind": "count"}) == {
        "kind": "count",
        "value": 302,
    }
    nowhere = {"kind": "pattern", "value": "nowhere*"}
    assert await refused("query_aggregate", sources=nowhere, aggregator={"kind": "count"}) == "AGGREGATOR_ERROR"


@pytest.mark.parametrize("mode", MODES)
async def test_the_resources_are_listed_once_for_each_table_and_read(running: Daemon, mode: str, tmp_path: Path):
    put_table(tmp_path / "data" / "tables", "notes")
    put_table(tmp_path / "data" / "tables", "more")
    async with Client(f"{running.url}/tables", mode=mode) as client:
        await client.call_tool("reload", {})
        uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert len(uris) == 3 * 2 + 5
        for uri in uris:
            (content,) = (await client.read_resource(uri)).contents
            assert content.text
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == [
            f"schema://{form}{{?table}}" for form in ("yaml", "json", "json-schema")
        ]
        for uri in ("schema://yaml", "schema://yaml?table=nowhere", "docs://nothing", "docs://errors?table=notes"):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            assert (caught.value.error.code, caught.value.error.data) == (-32602, {"uri": uri})
    async with Client(running.url, mode=mode) as client:
        with pytest.raises(MCPError):
            await client.list_resources()


def test_no_answer_is_larger_than_a_reply_may_be(running: Daemon):
    client = running.client("tables")
    client.call("schema_create", table="big", fields=FIELDS)
    ops = [{"op": "create", "data": {"title": '\u2028\x01"' * 200}} for _ in range(150)]
    client.call("schema_batch", table="big", ops=ops)
    row = client.call("create", table="big", data={"title": '"\\\u2028' * 60_000})
    for tool, arguments in {
        "list": {},
        "get": {"id": row["id"]},
        "row_history": {"id": row["id"]},
        "info": {},
        "content_view": {"id": row["id"], "field": "title"},
    }.items():
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": {"table": "big", **arguments}},
        }
        answer = httpx.post(f"{running.url}/tables", json=body, trust_env=False)
        assert answer.json()["result"]["isError"] is False, tool
        assert len(answer.content) <= REPLY_BYTES_DEFAULT, (tool, len(answer.content))


def test_everything_is_there_after_a_kill(running: Daemon):
    client = running.client("tables")
    client.call("schema_create", table="notes", fields=FIELDS)
    row = client.call("create", table="notes", data={"title": "kept"})
    client.call("alias_create", table="notes", name="all", filter={"type": "exists", "field": "title"})
    running.kill()
    running.start()
    client = running.client("tables")
    assert client.call("get", table="notes", id=row["id"])["data"] == {"title": "kept"}
    assert len(client.call("alias_run", name="all")["rows"]) == 1
    health = running.client("all").call("get_system_health")
    assert (health["status"], health["tables"]) == ("ok", {"mounted": 1, "broken": []})
