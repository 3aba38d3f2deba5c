"""routing: the headers that repeat a request are those that the SDK's own client sends and its server checks."""

from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from convmem.transport import routing
from convmem.transport.jsonrpc import Request

VERSION = MODERN_PROTOCOL_VERSIONS[-1]
META = {"_meta": {types.PROTOCOL_VERSION_META_KEY: VERSION, types.CLIENT_CAPABILITIES_META_KEY: {}}}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def headers(method: str, params: dict[str, Any] | None, agreed: str | None = None) -> dict[str, str]:
    """By name as HTTP compares it."""
    found = routing.headers_of(Request(1, method, params), agreed)
    assert len({name.lower() for name, _ in found}) == len(found)
    return {name.decode().lower(): value.decode("ascii") for name, value in found}


def test_the_names_are_the_sdk_s():
    assert dict(routing.NAME_PARAMETERS) == dict(inbound.NAME_BEARING_METHODS)
    assert routing.VERSION_KEY == types.PROTOCOL_VERSION_META_KEY
    assert set(headers("tools/call", {"name": "x", **META})) == {
        inbound.MCP_PROTOCOL_VERSION_HEADER.lower(),
        inbound.MCP_METHOD_HEADER.lower(),
        inbound.MCP_NAME_HEADER.lower(),
    }


@given(st.one_of(TEXTS, TEXTS.map("=?base64?{}?=".format), TEXTS.map(" {} ".format), st.text("\t\n =?\x7f~")))
def test_a_value_is_written_as_the_sdk_writes_it_and_comes_back_whole(text: str):
    written = routing.value(text).decode("ascii")
    assert written == inbound.encode_header_value(text)
    assert inbound.decode_header_value(written) == text
    assert written == written.strip()


@given(st.sampled_from([*routing.NAME_PARAMETERS, "tools/list", "ping", "server/discover"]), TEXTS)
def test_the_sdk_s_own_ladder_lets_the_headers_pass(method: str, name: str):
    params = {routing.NAME_PARAMETERS.get(method, "name"): name, **META}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    found = inbound.classify_inbound_request(body, headers=headers(method, params, "2025-06-18"))
    assert isinstance(found, inbound.InboundModernRoute)
    assert found.protocol_version == VERSION


@pytest.mark.parametrize("agreed", [None, "2025-06-18"])
def test_a_version_in_the_request_counts_more_than_the_one_agreed_on(agreed: str | None):
    name = inbound.MCP_PROTOCOL_VERSION_HEADER.lower()
    assert headers("tools/list", META, agreed)[name] == VERSION
    assert headers("tools/list", {"_meta": {}}, agreed).get(name) == agreed
    assert headers("tools/list", None, agreed).get(name) == agreed
    assert headers("tools/list", {"_meta": {types.PROTOCOL_VERSION_META_KEY: 7}}, agreed).get(name) == agreed
    assert headers("tools/list", {"_meta": "text"}, agreed).get(name) == agreed


def test_the_handshake_itself_says_nothing_in_headers():
    for params in (None, {"protocolVersion": "2025-06-18"}, META):
        assert headers("initialize", params, "2025-06-18") == {}


@pytest.mark.parametrize("params", [{}, {"name": 7}, {"name": None}, {"uri": "x"}])
def test_a_name_that_is_none_is_left_out(params: dict[str, Any]):
    assert inbound.MCP_NAME_HEADER.lower() not in headers("tools/call", {**params, **META})
