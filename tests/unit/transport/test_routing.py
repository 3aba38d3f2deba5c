"""transport/routing: the headers are those that the protocol's own SDK would send and read."""

import mcp_types
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from convmem.transport import routing
from convmem.transport.jsonrpc import Request
from tests.support.served import ENVELOPE, VERSION_2026


def test_the_names_are_the_protocols():
    assert routing.VERSION_KEY == mcp_types.PROTOCOL_VERSION_META_KEY
    assert routing.NAME_PARAMETERS == inbound.NAME_BEARING_METHODS
    names = {name.decode().lower() for name, _ in routing.headers_of(call("x"), None)}
    assert names == {inbound.MCP_PROTOCOL_VERSION_HEADER, inbound.MCP_METHOD_HEADER, inbound.MCP_NAME_HEADER}


@given(st.text())
def test_a_value_is_encoded_as_the_sdk_does_and_read_back_as_it_was(text: str):
    if any(0xD800 <= ord(character) < 0xE000 for character in text):
        return
    encoded = routing.value(text).decode("ascii")
    assert encoded == inbound.encode_header_value(text)
    assert inbound.decode_header_value(encoded) == text


def call(name: str) -> Request:
    return Request(1, "tools/call", {"name": name, "_meta": ENVELOPE})


def test_a_request_of_2026_passes_the_ladder_of_the_sdk():
    for request in (
        call("write_message"),
        call("味噌"),
        Request(1, "tools/list", {"_meta": ENVELOPE}),
        Request(1, "resources/read", {"uri": "docs://tools é", "_meta": ENVELOPE}),
    ):
        headers = {name.decode().lower(): value.decode() for name, value in routing.headers_of(request, "2025-06-18")}
        verdict = inbound.classify_inbound_request(
            {"method": request.method, "params": request.params}, headers=headers
        )
        assert isinstance(verdict, inbound.InboundModernRoute), request
        assert verdict.protocol_version == VERSION_2026


def test_before_2026_only_the_version_that_was_agreed_on_is_said():
    plain = Request(1, "tools/call", {"name": "x"})
    assert routing.headers_of(plain, None) == []
    assert routing.headers_of(plain, "2025-06-18") == [(b"MCP-Protocol-Version", b"2025-06-18")]
    assert routing.headers_of(Request(1, "initialize", {"protocolVersion": "2025-06-18"}), "2024-11-05") == []


def test_what_is_no_text_makes_no_header():
    odd = Request(1, "tools/call", {"name": 7, "_meta": {routing.VERSION_KEY: 7}})
    assert routing.headers_of(odd, None) == []
    assert routing.headers_of(Request(1, "tools/call", {"_meta": []}), None) == []
