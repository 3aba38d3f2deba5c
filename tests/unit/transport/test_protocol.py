"""Tests of the MCP speaker with the official client, over HTTP and over stdio, in both eras."""

import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters

from convmem import __version__
from convmem.domain import Origin
from convmem.transport import http
from convmem.transport.gate import Settings
from convmem.transport.jsonrpc import Refused, Request
from convmem.transport.protocol import Era, Kernel
from tests.support.served import ENVELOPE, served_in_thread
from tests.support.source import REPOSITORY
from tests.support.toy import TOOLS, Toy, toy_catalog

TOY = Toy()
# What the client opens with, and the version that both sides then speak.
MODES = {"auto": "2026-07-28", "legacy": "2025-11-25"}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served_in_thread(http.build(toy_catalog, TOY, Settings())) as port:
        yield f"http://127.0.0.1:{port}/mcp/messages"


@pytest.fixture(params=["http", "stdio"])
def server(request: pytest.FixtureRequest) -> Any:
    if request.param == "http":
        return request.getfixturevalue("url")
    return StdioServerParameters(command=sys.executable, args=["-m", "tests.support.toy_stdio"], cwd=REPOSITORY)


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_finds_and_calls_tools(server: Any, mode: str):
    reports: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        reports.append((done, total, message))

    async with Client(server, mode=mode) as client:
        assert client.protocol_version == MODES[mode]
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("convmem", __version__)
        assert client.server_capabilities.model_dump(exclude_none=True) == {"tools": {"list_changed": False}}
        assert client.instructions
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == [tool.name for tool in TOOLS]
        assert listed[1].annotations is not None
        assert listed[1].annotations.read_only_hint is True
        written = await client.call_tool("toy_write", {"text": "a\u2028b\x00\r\n😀"})
        assert written.structured_content["text"] == "a\u2028b\x00\r\n😀"
        assert msgspec.json.decode(written.content[0].text) == written.structured_content
        refused = await client.call_tool("toy_refuse", {"how": "conflict"})
        assert refused.is_error
        assert refused.structured_content["error"]["current_revision"] == 7
        await client.call_tool("toy_steps", {}, progress_callback=progress)
        assert reports == [(0, 2, "step 0"), (1, 2, "step 1"), (2, 2, "step 2")]


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_call_took_is_told_to_whoever_asks_and_to_nobody_else(server: Any, mode: str):
    async with Client(server, mode=mode) as client:
        told = await client.call_tool("toy_read", {}, meta={"convmem/explain": True})
        assert (told.meta or {})["convmem/stages"] == [{"stage": "look", "ms": 1.25}]
        assert ("io.modelcontextprotocol/serverInfo" in (told.meta or {})) == (mode == "auto")
        wrote = await client.call_tool("toy_write", {"text": "x"}, meta={"convmem/explain": True})
        assert (wrote.meta or {})["convmem/stages"] == []
        refused = await client.call_tool("toy_refuse", {"how": "busy"}, meta={"convmem/explain": True})
        assert (refused.is_error, (refused.meta or {})["convmem/stages"]) == (True, [])
        for meta in (None, {"convmem/explain": False}, {"convmem/explain": 1}, {"convmem/explain": "true"}):
            silent = await client.call_tool("toy_read", {}, meta=meta)
            assert "convmem/stages" not in (silent.meta or {})


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_hears_of_errors_of_the_protocol(server: Any, mode: str):
    async with Client(server, mode=mode) as client:
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("no_such_tool", {})
        assert unknown.value.error.code == -32602
        with pytest.raises(MCPError) as fault:
            await client.call_tool("toy_break", {})
        assert (fault.value.error.code, fault.value.error.message) == (-32603, "Internal error")
        with pytest.raises(MCPError) as missing:
            await client.list_resources()
        assert missing.value.error.code == -32601
        assert (await client.call_tool("toy_read", {})).is_error is False


@pytest.mark.parametrize("mode", MODES)
async def test_an_old_client_goes_on_after_a_restart(mode: str):
    application = http.build(toy_catalog, Toy(), Settings(default_profile="messages"))
    again = http.build(toy_catalog, Toy(), Settings(default_profile="messages"))
    with served_in_thread(application) as port:
        client = await Client(f"http://127.0.0.1:{port}/mcp", mode=mode).__aenter__()
        await client.call_tool("toy_write", {"text": "before"})
    with served_in_thread(again, port=port):
        assert (await client.call_tool("toy_read", {})).structured_content == {"notes": []}
        await client.__aexit__(None, None, None)


def kernel() -> Kernel:
    return Kernel(toy_catalog(), TOY)


LEGACY = {"mcp-protocol-version": "2025-06-18"}
ERAS: list[tuple[dict[str, Any] | None, dict[str, str] | None, str | None, Era]] = [
    (None, {}, None, Era("2025-03-26", False, None)),
    (None, LEGACY, None, Era("2025-06-18", False, None)),
    ({"_meta": {"progressToken": 1}}, LEGACY, None, Era("2025-06-18", False, None)),
    (None, None, None, Era("2025-03-26", False, None)),
    (None, None, "2024-11-05", Era("2024-11-05", False, None)),
    ({"_meta": ENVELOPE}, None, None, Era("2026-07-28", True, "tester/9")),
    ({"_meta": ENVELOPE}, None, "2025-06-18", Era("2026-07-28", True, "tester/9")),
    (
        {"_meta": ENVELOPE},
        {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"},
        None,
        Era("2026-07-28", True, "tester/9"),
    ),
]


@pytest.mark.parametrize(("params", "headers", "agreed", "era"), ERAS)
def test_a_request_speaks_the_version_it_names_or_that_was_agreed_on(params: Any, headers: Any, agreed: Any, era: Era):
    assert kernel().era(Request(1, "tools/list", params), headers, agreed) == era


def test_an_initialize_is_of_its_own_era_whatever_envelope_it_carries():
    assert not kernel().era(Request(1, "initialize", {"_meta": ENVELOPE}), None).modern


def test_a_version_that_nobody_speaks_is_refused_with_those_that_are_spoken():
    meta = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    with pytest.raises(Refused) as refused:
        kernel().era(Request("x", "tools/list", {"_meta": meta}), None)
    assert refused.value.code == -32022
    assert refused.value.data == {"supported": ["2026-07-28"], "requested": "2099-01-01"}
    assert refused.value.request_id == "x"


def test_only_what_changes_nothing_may_be_cancelled():
    assert kernel().may_be_cancelled(Request(1, "ping", None), "messages") is True
    assert kernel().may_be_cancelled(Request(1, "tools/call", None), "messages") is True
    for name, may in {"toy_read": True, "toy_write": False, "toy_wait_write": False, "no_such": True}.items():
        assert kernel().may_be_cancelled(Request(1, "tools/call", {"name": name}), "messages") is may
    assert kernel().may_be_cancelled(Request(1, "tools/call", {"name": []}), "messages") is True


async def test_a_name_that_a_caller_made_up_is_shown_escaped_and_cut():
    request = Request(1, "tools/call", {"name": "\u202e\n" + "x" * 1000})
    with pytest.raises(Refused) as refused:
        await kernel().answer(
            request, Era("2025-11-25", False, None), profile="core", origin=Origin("local", "http"), progress=None
        )
    assert refused.value.message == r"Unknown tool: \u202e\n" + "x" * 62
