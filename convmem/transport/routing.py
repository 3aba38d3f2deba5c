"""What a request over HTTP says in its headers of what its body says already (MCP 2026-07-28, "Standard headers").

Proxies route by it and servers compare it. The names and the encoding are the protocol's; tests hold them equal to the
SDK's, which is too slow to import for the bridge.
"""

import base64
import re
from collections.abc import Mapping

from convmem.transport.jsonrpc import Request

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
# The parameter that a method's request is routed by.
NAME_PARAMETERS: Mapping[str, str] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
PLAIN = re.compile(r"[\x20-\x7e]*")
ENCODED = re.compile(r"=\?base64\?.*\?=")


def headers_of(request: Request, agreed: str | None) -> list[tuple[bytes, bytes]]:
    """The headers that repeat a request. `agreed` is the version that `initialize` agreed on, None before."""
    meta = (request.params or {}).get("_meta")
    version = meta.get(VERSION_KEY) if type(meta) is dict and request.method != "initialize" else None
    if type(version) is not str:
        is_agreed = agreed is not None and request.method != "initialize"
        return [(b"MCP-Protocol-Version", value(agreed))] if is_agreed and agreed else []
    headers = [(b"MCP-Protocol-Version", value(version)), (b"Mcp-Method", value(request.method))]
    name = (request.params or {}).get(NAME_PARAMETERS.get(request.method, ""))
    return [*headers, (b"Mcp-Name", value(name))] if type(name) is str else headers


def value(text: str) -> bytes:
    """A text as the value of a header: as it is if every proxy lets it through unchanged, else in base64."""
    if PLAIN.fullmatch(text) and text == text.strip() and not ENCODED.fullmatch(text):
        return text.encode("ascii")
    return b"=?base64?%b?=" % base64.b64encode(text.encode())
