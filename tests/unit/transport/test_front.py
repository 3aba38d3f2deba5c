"""Tests of MCP over HTTP, through a real server: bodies, forms of answers, both eras, no sessions."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from convmem.limits import BODY_BYTES_MAX, CONTENT_BYTES_MAX
from convmem.transport import http
from convmem.transport.front import Accepts, Reply, accepted, folded
from convmem.transport.gate import Settings
from tests.support.served import ENVELOPE, call, events, modern, post, request, served_in_thread
from tests.support.toy import Toy, toy_catalog

TOY = Toy()


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    application = http.build(toy_catalog, TOY, Settings(default_profile="messages"))
    with (
        served_in_thread(application) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        yield client


def refusal(response: httpx.Response) -> tuple[int, int, Any]:
    answer = response.json()
    assert response.headers["content-type"] == "application/json"
    return response.status_code, answer["error"]["code"], answer["id"]


def test_a_call_is_answered_with_facts_and_text(client: httpx.Client):
    response = post(client, call("toy_write", {"text": "é"}, "a"), mcp_protocol_version="2025-11-25")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in response.headers
    answer = response.json()
    facts = {"note_id": str(len(TOY.notes)), "text": "é"}
    assert answer == {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {
            "content": [{"type": "text", "text": f'{{"note_id":"{facts["note_id"]}","text":"é"}}'}],
            "structuredContent": facts,
            "isError": False,
        },
    }


def test_a_call_of_2026_says_also_that_it_is_complete_and_by_whom(client: httpx.Client):
    message, headers = modern(call("toy_read"))
    result = post(client, message, **headers).json()["result"]
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "convmem"
    assert result["content"] == [{"type": "text", "text": f"{len(TOY.notes)} notes"}]


def test_what_a_call_took_stands_beside_its_answer_and_changes_nothing_of_it(client: httpx.Client):
    plain = post(client, call("toy_read"))
    told = post(client, call("toy_read", None, 1, **{"convmem/explain": True}))
    stages = b',"_meta":{"convmem/stages":[{"stage":"look","ms":1.25}]}'
    assert told.content.count(stages) == 1
    assert told.content.replace(stages, b"") == plain.content
    assert post(client, call("toy_read", None, 1, **{"convmem/explain": False})).content == plain.content


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_version_of_the_initialize_era_is_served(client: httpx.Client, version: str | None):
    params = {
        "protocolVersion": version or "1999-01-01",
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
    }
    response = post(client, request("initialize", params))
    assert "mcp-session-id" not in response.headers
    result = response.json()["result"]
    assert result["protocolVersion"] == version or "2025-11-25"
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert post(client, {"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202
    assert post(client, request("ping"), mcp_protocol_version=version).json()["result"] == {}
    assert len(post(client, request("tools/list"), mcp_protocol_version=version).json()["result"]["tools"]) == 8


def test_a_session_that_arrives_is_ignored_and_none_is_made(client: httpx.Client):
    for session in ("stale", "00" * 16, ""):
        response = post(client, call("toy_read"), mcp_session_id=session)
        assert (response.status_code, response.json()["id"]) == (200, 1)
        assert "mcp-session-id" not in response.headers


def test_discovery_names_the_version_of_2026(client: httpx.Client):
    message, headers = modern(request("server/discover"))
    response = post(client, message, **headers)
    result = response.json()["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert result["resultType"] == "complete"
    assert "memory" in result["instructions"]
    assert {"ttlMs", "cacheScope"} <= set(result)


WRONG_ENVELOPES: dict[str, tuple[dict[str, Any], dict[str, str | None], int]] = {
    "no version header": ({}, {"mcp_protocol_version": None}, -32020),
    "another version header": ({}, {"mcp_protocol_version": "2025-11-25"}, -32020),
    "no method header": ({}, {"mcp_method": None}, -32020),
    "another method": ({}, {"mcp_method": "tools/list"}, -32020),
    "no name": ({}, {"mcp_name": None}, -32020),
    "another name": ({}, {"mcp_name": "toy_write"}, -32020),
    "a version nobody speaks": (
        {"io.modelcontextprotocol/protocolVersion": "2099-01-01"},
        {"mcp_protocol_version": "2099-01-01"},
        -32022,
    ),
    "capabilities of a wrong shape": ({"io.modelcontextprotocol/clientCapabilities": 5}, {}, -32602),
}


@pytest.mark.parametrize("name", WRONG_ENVELOPES)
def test_a_request_of_2026_that_contradicts_itself_is_refused(client: httpx.Client, name: str):
    meta, changed, code = WRONG_ENVELOPES[name]
    message, headers = modern(call("toy_read", None, 5, **meta))
    given = {**{key.replace("-", "_"): value for key, value in headers.items()}, **changed}
    assert refusal(post(client, message, **given)) == (400, code, 5)


def test_a_version_header_without_an_envelope_is_refused(client: httpx.Client):
    assert refusal(post(client, call("toy_read"), mcp_protocol_version="2026-07-28")) == (400, -32602, 1)
    assert refusal(post(client, call("toy_read"), mcp_protocol_version="1999-01-01"))[0] == 400


def test_doubled_protocol_headers_are_refused(client: httpx.Client):
    message, headers = modern(call("toy_read"))
    for name in headers:
        doubled = [*headers.items(), (name, headers[name]), ("content-type", "application/json")]
        assert refusal(client.post("/mcp", json=message, headers=doubled))[:2] == (400, -32020), name


@pytest.mark.parametrize("method", ["ping", "initialize", "subscriptions/listen", "resources/list", "no/such"])
def test_a_method_that_is_not_there_is_404_in_2026(client: httpx.Client, method: str):
    params = {"notifications": {}} if method == "subscriptions/listen" else {}
    message, headers = modern(request(method, params))
    assert refusal(post(client, message, **headers)) == (404, -32601, 1)


@pytest.mark.parametrize("method", ["server/discover", "resources/list", "prompts/list", "logging/setLevel", "no/such"])
def test_a_method_that_is_not_there_is_an_error_in_the_initialize_era(client: httpx.Client, method: str):
    params = {"level": "info"} if method == "logging/setLevel" else None
    assert refusal(post(client, request(method, params))) == (200, -32601, 1)


def test_an_unknown_tool_is_an_error_of_the_protocol(client: httpx.Client):
    assert refusal(post(client, call("no_such", None, 4))) == (200, -32602, 4)
    message, headers = modern(call("no_such", None, 4))
    response = post(client, message, **headers)
    assert refusal(response) == (400, -32602, 4)
    assert response.json()["error"]["message"] == "Unknown tool: no_such"


def test_a_tool_of_another_profile_is_unknown(client: httpx.Client):
    assert post(client, call("toy_steps"), "/mcp/messages").json()["result"]["isError"] is False
    assert refusal(post(client, call("toy_steps"), "/mcp/core")) == (200, -32602, 1)
    assert len(post(client, request("tools/list"), "/mcp/core").json()["result"]["tools"]) == 2


@pytest.mark.parametrize(
    "params", [None, {}, {"name": 5}, {"name": "toy_read", "arguments": []}, {"name": "toy_read", "_meta": 1}]
)
def test_a_call_of_a_wrong_shape_is_an_error_of_the_protocol(client: httpx.Client, params: Any):
    assert refusal(post(client, request("tools/call", params))) == (200, -32602, 1)


def test_a_call_without_arguments_has_none(client: httpx.Client):
    assert post(client, request("tools/call", {"name": "toy_read"})).json()["result"]["isError"] is False


def test_a_refusal_of_a_tool_is_a_result(client: httpx.Client):
    result = post(client, call("toy_refuse", {"how": "busy"})).json()["result"]
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "BUSY: too much to do"}]
    assert result["structuredContent"]["error"]["retry_after_ms"] == 100


@pytest.mark.parametrize("era", ["initialize", "2026"])
def test_a_fault_of_ours_tells_nothing(client: httpx.Client, era: str):
    message, headers = modern(call("toy_break", None, "f")) if era == "2026" else (call("toy_break", None, "f"), {})
    response = post(client, message, **headers)
    assert refusal(response) == (200, -32603, "f")
    assert response.json()["error"]["message"] == "Internal error"
    assert "data" not in response.json()["error"]
    assert post(client, request("ping")).json()["result"] == {}


def test_the_list_of_tools_is_the_same_to_the_byte(client: httpx.Client):
    message, headers = modern(request("tools/list"))
    for sent, more in ((request("tools/list"), {}), (message, headers)):
        assert post(client, sent, **more).content == post(client, sent, **more).content
    tools = post(client, message, **headers).json()["result"]["tools"]
    assert tools == post(client, request("tools/list")).json()["result"]["tools"]
    assert [tool["name"] for tool in tools] == list(toy_catalog().profiles["messages"])


def test_the_list_is_one_page(client: httpx.Client):
    assert refusal(post(client, request("tools/list", {"cursor": "2"}))) == (200, -32602, 1)


BODIES = {
    b"{nope": -32700,
    b"": -32700,
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud83d"}}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\\ud800":1}}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * 70 + b"]" * 70 + b"}}": -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"9" * 5000 + b"}}": -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xff"}}': -32700,
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]': -32600,
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}': -32600,
}


@pytest.mark.parametrize("body", BODIES, ids=lambda body: ascii(body[:60]))
def test_a_malformed_body_is_answered_and_the_next_one_served(client: httpx.Client, body: bytes):
    assert refusal(post(client, body)) == (400, BODIES[body], None)
    assert post(client, request("ping")).json()["result"] == {}


@pytest.mark.parametrize("body", [b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","method":"any/thing"}'])
def test_what_wants_no_answer_is_accepted(client: httpx.Client, body: bytes):
    response = post(client, body)
    assert (response.status_code, response.content) == (202, b"")


def escaped(text: str) -> bytes:
    """The text with every UTF-16 unit as an escape."""
    units = text.encode("utf-16-be")
    return b"".join(b"\\u%b" % units[at : at + 2].hex().encode() for at in range(0, len(units), 2))


@pytest.mark.slow
@pytest.mark.parametrize("character", ["\x01", "😀", "a"])
def test_the_largest_content_arrives_however_it_is_escaped(client: httpx.Client, character: str):
    text = character * (CONTENT_BYTES_MAX // len(character.encode()))
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"toy_write","arguments":{"text":"%b"}}}'
    answer = post(client, body % escaped(text)).json()
    assert answer["result"]["structuredContent"]["text"] == text
    assert TOY.notes.pop() == text


def test_a_body_over_the_limit_is_refused_while_it_comes(client: httpx.Client):
    def chunks(count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield b" " * 65536

    fitting = BODY_BYTES_MAX // 65536
    headers = {"content-type": "application/json"}
    too_much = client.post("/mcp", content=chunks(fitting + 40), headers=headers)
    assert too_much.status_code == 413
    assert too_much.json()["error"]["data"] == {"code": "CONTENT_TOO_LARGE"}
    assert client.post("/mcp", content=chunks(fitting), headers=headers).status_code == 400
    assert post(client, b" " * (BODY_BYTES_MAX + 1)).status_code == 413
    assert post(client, request("ping")).status_code == 200


@pytest.mark.parametrize(
    "content_type", [None, "", "text/plain", "application/jsonx", "application/x-www-form-urlencoded"]
)
def test_a_body_that_is_not_declared_as_json_is_refused(client: httpx.Client, content_type: str | None):
    assert post(client, request("ping"), content_type=content_type).status_code == 415


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; charset=utf-8", "application/json ;x=y"]
)
def test_json_may_be_declared_with_parameters_and_in_any_case(client: httpx.Client, content_type: str):
    assert post(client, request("ping"), content_type=content_type).status_code == 200


def test_a_compressed_body_is_refused(client: httpx.Client):
    assert post(client, request("ping"), content_encoding="gzip").status_code == 415


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "application/*;q=0.5", "text/event-stream, */*"])
def test_an_accept_that_admits_json_gets_json(client: httpx.Client, accept: str | None):
    response = post(client, request("ping"), accept=accept)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")


@pytest.mark.parametrize("accept", ["text/event-stream", "text/*", "text/event-stream, application/json;q=0"])
def test_an_accept_that_admits_only_a_stream_gets_a_stream(client: httpx.Client, accept: str):
    assert events(post(client, request("ping"), accept=accept)) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


@pytest.mark.parametrize("accept", ["text/html", "image/*", "application/json;q=0", ""])
def test_any_other_accept_is_not_acceptable(client: httpx.Client, accept: str):
    assert post(client, request("ping"), accept=accept).status_code == 406


def test_two_accept_headers_are_one_list():
    raw = [(b"accept", b"text/html"), (b"accept", b"application/json"), (b"x", b"1")]
    assert folded(raw) == {b"accept": b"text/html, application/json", b"x": b"1"}
    assert accepted(folded(raw)[b"accept"]) == Accepts(json=True, stream=False)


@pytest.mark.parametrize("token", ["t", 0, 7])
def test_a_call_that_reports_progress_turns_into_a_stream(client: httpx.Client, token: Any):
    *reports, answer = events(post(client, call("toy_steps", progressToken=token)))
    assert [report["params"]["progress"] for report in reports] == [0, 1, 2]
    assert {report["params"]["progressToken"] for report in reports} == {token}
    assert answer["result"]["structuredContent"] == {"steps": 2}


def test_a_stream_of_2026_is_one_too(client: httpx.Client):
    message, headers = modern(call("toy_steps", progressToken="t"))
    response = post(client, message, **headers)
    assert response.headers["x-accel-buffering"] == "no"
    assert events(response)[-1]["result"]["resultType"] == "complete"


def test_progress_without_a_token_or_without_a_stream_is_not_sent(client: httpx.Client):
    assert post(client, call("toy_steps")).json()["result"]["structuredContent"] == {"steps": 2}
    quiet = post(client, call("toy_steps", progressToken="t"), accept="application/json")
    assert quiet.json()["result"]["structuredContent"] == {"steps": 2}


def test_a_token_alone_makes_no_stream(client: httpx.Client):
    response = post(client, call("toy_read", progressToken="t"))
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/core"])
def test_only_post_is_taken(client: httpx.Client, method: str, path: str):
    response = client.request(method, path, headers={"accept": "text/event-stream"})
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_the_origin_says_who_called_and_how(client: httpx.Client):
    post(client, call("toy_read"), user_agent="codex/0.165")
    message, headers = modern(call("toy_read"))
    post(client, message, user_agent="other", **headers)
    nameless = {key: value for key, value in ENVELOPE.items() if not key.endswith("clientInfo")}
    post(client, {**message, "params": {**message["params"], "_meta": nameless}}, user_agent="ua", **headers)
    post(client, call("toy_read"), user_agent=None)
    found = [(origin.device, origin.transport, origin.client) for origin in TOY.origins[-4:]]
    assert found == [
        ("local", "http", "codex/0.165"),
        ("local", "http", "tester/9"),
        ("local", "http", "ua"),
        ("local", "http", None),
    ]


async def test_an_answer_waits_for_the_event_before_it_and_no_event_stands_in_its_way():
    sent: list[Any] = []
    may_send = asyncio.Event()

    async def send(message: Any) -> None:
        await may_send.wait()
        sent.append(message)

    reply = Reply(send, Accepts(json=True, stream=True))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(reply.event(b"first"))
        tasks.create_task(reply.event(b"second"))
        tasks.create_task(reply.end(200, b"{}"))
        for _ in range(9):
            await asyncio.sleep(0)
        may_send.set()
    assert [message.get("status", message.get("body")) for message in sent] == [200, b"{}"]
