"""answers: what a bridge reads of convmem's own answers, and that other shapes say nothing."""

from typing import Any

import msgspec
import pytest

from convmem.domain import Origin
from convmem.transport import answers, bodies, jsonrpc, requests
from convmem.transport.guard import refuse
from convmem.transport.loading import kernel
from tests.support.served import request
from tests.support.toy import TOOLS, Toy, toy_catalog

FOREIGN = [
    b"",
    b"[]",
    b"{}",
    b"\xff",
    b"<html>502</html>",
    b'{"result":null}',
    b'{"result":{}}',
    b'{"result":{"tools":[{"title":"nameless"}]}}',
    b'{"result":{"protocolVersion":7}}',
    b'{"error":{"code":-32600,"message":"no"}}',
    b'{"result":{"structuredContent":{"error":{"code":7}}}}',
]


async def answered(method: str, **params: Any) -> bytes:
    """What the real kernel answers to a request of the handshake era."""
    made = kernel(toy_catalog, Toy())()
    asked = jsonrpc.read(msgspec.json.encode(request(method, params)))
    assert isinstance(asked, jsonrpc.Request)
    origin = Origin("local", "stdio", None)
    result = await made.answer(asked, made.era(asked, None), profile="messages", origin=origin, progress=None)
    return jsonrpc.result(asked.id, result)


async def test_tools_that_only_read_are_known_from_their_list():
    listed = answers.read_only_tools(await answered("tools/list"))
    assert listed == {tool.name for tool in TOOLS if tool.reads_only}
    assert listed == kernel(toy_catalog, Toy())().read_only_tools


async def test_the_version_is_known_from_the_handshake():
    agreed = await answered(
        "initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "a", "version": "1"}
    )
    assert answers.agreed_version(agreed) == "2025-03-26"


@pytest.mark.parametrize("answer", FOREIGN, ids=ascii)
def test_other_shapes_say_nothing(answer: bytes):
    assert answers.read_only_tools(answer) is None
    assert answers.agreed_version(answer) is None
    assert not answers.says_stopping(answer)


async def test_a_daemon_that_is_going_down_is_understood_however_it_says_so():
    facts = {"error": requests.stopping().facts()}
    failed = {"content": [{"type": "text", "text": "x"}], "structuredContent": facts, "isError": True}
    assert answers.says_stopping(jsonrpc.result(1, failed))
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await refuse({"type": "http", "path": "/mcp/core"}, send, bodies.STOPPING)
    assert answers.says_stopping(sent[-1]["body"])


@pytest.mark.parametrize(
    "result",
    [
        {"structuredContent": {"content": 'she said "STOPPING"'}},
        {"structuredContent": {"code": "STOPPING"}},
        {"structuredContent": {"error": {"code": "BUSY", "message": "STOPPING"}}, "STOPPING": 1},
    ],
    ids=str,
)
def test_the_word_alone_does_not_count(result: Any):
    assert not answers.says_stopping(jsonrpc.result(1, result))
