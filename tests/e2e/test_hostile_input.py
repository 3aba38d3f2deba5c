"""Input that broke others, against a real daemon: kept exactly or refused by rule, and the next call is served."""

import json
import os
import random
import re
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from convmem.limits import BODY_BYTES_MAX, CONTENT_BYTES_MAX, REPLY_BYTES_DEFAULT, REPLY_BYTES_MAX
from tests.support.daemons import Daemon, RawClient, Refused, complaints, daemon, exchange, posting
from tests.support.malformed import MALFORMED, PING
from tests.support.source import REPOSITORY
from tests.support.stdio_client import stdio, strictly, writing

pytestmark = pytest.mark.slow
LOCAL = b"host: localhost"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for all: whatever one test did to it, the next must find it well."""
    with daemon(tmp_path_factory.mktemp("hostile"), "--profile", "messages") as started:
        yield started
        assert started.client().call("get_system_health")["status"] == "ok"
        assert complaints(started.data_dir) == []
        status, journal = started.stop()
        assert status == 0
        assert "Traceback" not in journal


@pytest.fixture
def client(running: Daemon) -> RawClient:
    return running.client()


def refused(client: RawClient, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error of a call that must be refused, in words that are ours and nobody else's."""
    with pytest.raises(Refused) as refusal:
        client.call(tool, **arguments)
    said = str(refusal.value.error)
    assert not re.search(r"sqlite|select |match|syntax|traceback|pydantic|python|\.py|0x", said, re.IGNORECASE), said
    return dict(refusal.value.error)


def found(client: RawClient, query: str, **more: Any) -> list[str]:
    return [result["message_id"] for result in client.call("search_messages", query=query, **more)["results"]]


def exported(client: RawClient, written: dict[str, Any]) -> dict[str, Any]:
    """The record of a message as the export shows it, one line without anything that could end it."""
    cursor: dict[str, str] = {}
    while True:
        page = client.call("read_messages", view="export", limit=500, **cursor)
        for line in page["lines"]:
            assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029]", line)
            if written["message_id"] in line:
                return dict(json.loads(line))
        cursor = {"cursor": page["next_cursor"]}


# Text.


def test_text_behind_a_nul_is_kept_found_and_exported(client: RawClient):
    text = "a\0bcdef after nul"
    written = client.write(text, session_id="nul", metadata={"summary": "s\0t"})
    (message,) = client.history("nul")
    piece = client.call("read_messages", view="content", message_id=written["message_id"])
    assert message["content"] == piece["content"] == exported(client, written)["content"] == text
    assert piece["total_bytes"] == 17
    for query in ("bcdef", "a\0b", "\0", "nul"):
        assert found(client, query, session_id="nul", match="exact") == [written["message_id"]], query
    assert found(client, "s\0t", session_id="nul") == [written["message_id"]]
    assert found(client, "a\0c", session_id="nul", match="exact") == []


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("session_id", "a\0b"),
        ("idempotency_key", "a\0b"),
        *(
            ("metadata", {name: value})
            for name, value in {"project": "a\0b", "tool_call_id": "\0", "tags": ["a\0b"]}.items()
        ),
    ],
)
def test_a_nul_in_a_name_is_refused_by_rule(client: RawClient, argument: str, value: Any):
    given = {"session_id": "s", "role": "user", "content": "x", argument: value}
    error = refused(client, "write_message", **given)
    assert error["code"] == "VALIDATION_ERROR"
    assert error["field"].startswith(argument)


def test_line_separators_of_other_formats_stay_inside_their_message(client: RawClient):
    text = "a\u2028b\u2029c\u0085d\u001ce\u000bf\ufeffg"
    written = client.write(text, session_id="separators")
    assert client.history("separators")[0]["content"] == text
    assert exported(client, written)["content"] == text


def test_folding_moves_no_range(client: RawClient):
    written = client.write("İİİ key ﬁn ＡＢＣ Éclair İstanbul Straße", session_id="folding")
    text = client.history("folding")[0]["content"]
    folded = {
        "KEY": ["key"],
        "fin": ["ﬁn"],
        "abc": ["ＡＢＣ"],
        "é": ["É"],
        "e\u0301clair": ["Éclair"],
        "STRASSE": ["Straße"],
    }
    for query, expected in folded.items():
        (result,) = client.call("search_messages", query=query, session_id="folding", match="exact")["results"]
        assert result["message_id"] == written["message_id"]
        assert [text[start:end] for start, end in result["match_ranges"]] == expected, query
    (result,) = client.call("search_messages", query="KEY", session_id="folding")["results"]
    assert result["match_ranges"] == [[4, 7]]


# Search.

NASTY = 'Ticket POL-358 2026-05-08 file.txt C++ node.js don\'t use "agents" AND OR NOT a^b (x) 100% my_tag C:\\tmp'
HITS = ("POL-358", "2026-05-08", "don't", "C++", "file.txt", "AND", "NOT", '"agents"', "a^b", "100%", '"', "'", "(")
HITS += ("-", "^", "%", "_", "\\", "C:\\tmp", "my_tag", "(x)", "NOT a^b (x)", ".", "+", ":", "358 2026")
NONE = ("nosuch:x", "content:x", "NEAR(", "NEAR(a b)", "*", "use*", "--", ";", "{}", "{", "[", "' OR 1=1 --", "50%")
NONE += ("my1tag", "%%", "file_txt", "\0", "\x01", "\u202e", "x" * 1024, "-x", '"" ""', "\\\\", "MATCH", "rowid:1")


@pytest.fixture(scope="module")
def nasty(running: Daemon) -> str:
    """The session with the one message that is searched."""
    running.client().write(NASTY, session_id="nasty")
    return "nasty"


@pytest.mark.parametrize("match", ["auto", "exact", "any"])
def test_a_query_is_plain_text_whatever_it_holds(client: RawClient, nasty: str, match: str):
    for query in (*HITS, *NONE):
        results = client.call("search_messages", query=query, session_id=nasty, match=match)["results"]
        if match == "exact":
            assert len(results) == (query in HITS), query


def test_the_parts_of_an_expression_are_words(client: RawClient, nasty: str):
    for query in ("POL-358", "2026-05-08", "don't", "C++", "file.txt", "AND", "NOT", '"agents"', "a^b", "100%"):
        assert len(found(client, query, session_id=nasty)) == 1, query
    for query in ("nosuch:q", "rowid:7", "NEAR("):
        assert found(client, query, session_id=nasty) == [], query


@pytest.mark.parametrize("query", ["", "a " * 5000, "語" * 400])
def test_a_query_out_of_its_bounds_is_refused(client: RawClient, query: str):
    error = refused(client, "search_messages", query=query)
    assert (error["code"], error["field"]) == ("VALIDATION_ERROR", "query")


def test_blanks_alone_are_text_too(client: RawClient, nasty: str):
    for query in (" ", "\t", "   ", "\n\n"):
        results = client.call("search_messages", query=query, session_id=nasty)["results"]
        assert len(results) == (query in NASTY), repr(query)


# JSON and arguments.


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_body_is_refused_and_stores_nothing(client: RawClient, name: str):
    before = client.call("get_system_health")["sequence"]
    body, code = MALFORMED[name]
    answer = client.http.post(client.url, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert strictly(answer.content)["error"]["code"] == code
    assert client.call("get_system_health")["sequence"] == before


def test_a_name_given_twice_is_refused_in_an_object_that_comes_as_text(client: RawClient):
    written = client.write("x")
    for metadata in ('{"project":"a","project":"b"}', '{"tags":["a"],"t\\u0061gs":["b"]}'):
        error = refused(client, "update_message", message_id=written["message_id"], metadata=metadata)
        assert (error["code"], error["field"]) == ("VALIDATION_ERROR", "metadata")


def test_an_argument_that_nobody_knows_is_refused_and_nothing_done(client: RawClient):
    written = client.write("kept as it is", session_id="misspelt")
    client.call("update_message", message_id=written["message_id"], metadata={"importance": 1})
    misspelt = {"expected_revison": 1}
    error = refused(client, "update_message", message_id=written["message_id"], content="x", **misspelt)
    assert (error["code"], error["field"]) == ("VALIDATION_ERROR", "expected_revison")
    error = refused(client, "update_message", message_id=written["message_id"], metadata={"tagz": ["x"]})
    assert (error["code"], error["field"]) == ("VALIDATION_ERROR", "metadata.tagz")
    (message,) = client.history("misspelt")
    assert (message["content"], message["revision"]) == ("kept as it is", 2)


def tools(client: RawClient) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = client.request("tools/list", {})["result"]["tools"]
    return listed


def test_every_tool_refuses_what_it_does_not_name(client: RawClient):
    for tool in tools(client):
        needed = dict.fromkeys(tool["inputSchema"].get("required", []), "x")
        error = refused(client, tool["name"], **needed, no_such=1)
        assert error["code"] == "VALIDATION_ERROR"


INTEGERS: dict[str, tuple[Any, bool]] = {
    "an integer": (10, True),
    "a whole fraction": (10.0, True),
    "a text": ("10", True),
    "an exponent": (1e1, True),
    "true": (True, False),
    "a fraction": (10.5, False),
    "a text with a fraction": ("10.5", False),
    "negative": (-1, False),
    "zero": (0, False),
    "64 bits": (2**63 - 1, False),
    "many digits as text": ("9" * 5000, False),
    "other digits": ("１０", False),
    "blanks": (" 10", False),
    "underscores": ("1_0", False),
    "hexadecimal": ("0x10", False),
    "a list": ([10], False),
    "an object": ({"limit": 10}, False),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_an_integer_is_one_or_is_refused(client: RawClient, name: str):
    value, is_taken = INTEGERS[name]
    if is_taken:
        client.call("search_messages", query="x", limit=value)
    else:
        error = refused(client, "search_messages", query="x", limit=value)
        assert (error["code"], error["field"]) == ("VALIDATION_ERROR", "limit")


def places(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of an answer with the name it stands under."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from places(inner, name)
    else:
        yield name, value


def test_what_a_client_must_send_back_exactly_is_a_string_in_every_answer(client: RawClient):
    first = client.write("identifiers", session_id="identifiers", metadata={"tool_call_id": "7"})
    relation = {"relations": [{"type": "t", "message_id": first["message_id"]}]}
    metadata = relation | {"source_message_ids": [first["message_id"]]}
    second = client.write("more", session_id="identifiers", metadata=metadata)
    answers = [
        first,
        client.call("update_message", message_id=first["message_id"], content="identifiers 2"),
        *(
            client.call("read_messages", **view)
            for view in (
                {"view": "history", "session_id": "identifiers", "limit": 1},
                {"view": "content", "message_id": first["message_id"]},
                {"view": "context", "message_id": second["message_id"], "relation_depth": 2},
                {"view": "sessions", "limit": 1},
                {"view": "export", "limit": 1},
            )
        ),
        client.call("search_messages", query="identifiers", context_after=1),
        client.call("get_system_health"),
        client.call("rebuild_index"),
        client.call("delete_message", message_id=second["message_id"]),
    ]
    named = [
        (name, value)
        for name, value in places(answers)
        if re.search(r"(^|_)(ids?|cursor|sequence|generation|from|to)$", name)
    ]
    expected = {"message_id", "session_id", "sequence", "next_cursor", "generation", "source_message_ids"}
    assert expected <= dict(named).keys()
    for name, value in named:
        assert isinstance(value, str) or (value is None and name == "next_cursor"), (name, value)


@pytest.mark.parametrize("cursor", ["", "x", "0", "é", "A" * 16, "a" * 1024, "a" * 1025, "../..", "' OR 1", "=", "\n"])
def test_a_cursor_of_somebody_elses_making_is_refused(client: RawClient, cursor: str):
    for view in ({"view": "history", "session_id": "s"}, {"view": "sessions"}, {"view": "export"}):
        assert refused(client, "read_messages", **view, cursor=cursor)["code"] in ("INVALID_CURSOR", "VALIDATION_ERROR")


# Many at once, and callers that vanish.


def test_writes_side_by_side_are_all_there_and_of_two_changes_one_wins(running: Daemon):
    contended = running.client().write("0", session_id="contended")["message_id"]
    wins: list[int] = []
    losses: list[tuple[str, bool]] = []

    def work(name: int) -> None:
        client = running.client()
        for number in range(20):
            client.write(f"{name} {number}", session_id="parallel")
            revision = client.history("contended")[0]["revision"]
            change = {"content": f"{name} {number}", "expected_revision": revision}
            try:
                wins.append(client.call("update_message", message_id=contended, **change)["revision"])
            except Refused as refusal:
                losses.append((refusal.code, refusal.error["current_revision"] > revision))

    with ThreadPoolExecutor(8) as threads:
        for outcome in [threads.submit(work, name) for name in range(8)]:
            outcome.result()
    client = running.client()
    written = [message["content"] for message in client.history("parallel")]
    assert sorted(written) == sorted(f"{name} {number}" for name in range(8) for number in range(20))
    assert sorted(wins) == list(range(2, len(wins) + 2))
    assert losses == [("CONFLICT", True)] * (160 - len(wins))
    assert client.history("contended")[0]["revision"] == len(wins) + 1


def keyed(number: int) -> bytes:
    """A write that may be repeated."""
    arguments = {"session_id": "vanishing", "role": "user", "content": f"number {number}"}
    arguments["idempotency_key"] = f"key {number}"
    params = {"name": "write_message", "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def reset(connection: socket.socket, after_s: float) -> None:
    """Break a connection off, when the answer comes or a time is over."""
    select.select([connection], [], [], after_s)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_a_caller_that_vanishes_at_any_moment_may_call_again_and_has_one_message(running: Daemon):
    dice = random.Random(1)
    count = 250
    for number in range(count):
        with socket.create_connection(("127.0.0.1", running.port)) as connection:
            connection.sendall(posting(keyed(number), LOCAL))
            # Gone before, while or after the answer comes.
            reset(connection, after_s=dice.random() * 0.004)
    client = running.client()
    answers = [
        client.http.post(client.url, content=keyed(number), headers={"content-type": "application/json"}).json()
        for number in range(count)
    ]
    ids = [answer["result"]["structuredContent"]["message_id"] for answer in answers]
    history = {message["message_id"]: message["content"] for message in client.history("vanishing")}
    assert history == {message_id: f"number {number}" for number, message_id in enumerate(ids)}
    assert complaints(running.data_dir) == []


# Sizes.


def escaped(text: str) -> bytes:
    """The JSON string with every UTF-16 unit as an escape."""
    units = text.encode("utf-16-be").hex()
    return b'"%b"' % "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)).encode()


def writing_escaped(text: str) -> bytes:
    return writing("w", "@", "large").strip().replace(b'"@"', escaped(text))


@pytest.mark.parametrize("character", ["\x01", "😀", "a"])
def test_the_content_limit_counts_utf_8_however_it_is_escaped(running: Daemon, character: str):
    text = character * (CONTENT_BYTES_MAX // len(character.encode()))
    status, _, body = exchange(running.port, posting(writing_escaped(text), LOCAL))
    assert status == 200
    message_id = strictly(body)["result"]["structuredContent"]["message_id"]
    whole, piece = "", {"eof": False, "next_offset": 0}
    client = running.client()
    while not piece["eof"]:
        piece = client.call(
            "read_messages",
            view="content",
            message_id=message_id,
            offset=piece["next_offset"],
            limit=65_536,
            max_bytes=REPLY_BYTES_MAX,
        )
        whole += piece["content"]
    assert whole == text
    status, _, body = exchange(running.port, posting(writing_escaped(text + "a"), LOCAL))
    error = strictly(body)["result"]["structuredContent"]["error"]
    assert (status, error["code"], error["bytes"]) == (200, "CONTENT_TOO_LARGE", CONTENT_BYTES_MAX + 1)


def chunked(*pieces: bytes) -> list[bytes]:
    head = posting(b"", LOCAL).replace(b"content-length: 0", b"transfer-encoding: chunked")
    return [head, *(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"]


def test_a_body_in_chunks_is_served_up_to_the_same_bound(running: Daemon):
    assert exchange(running.port, *chunked(PING[:7], PING[7:]))[0] == 200
    blank = b" " * 65_536
    fitting = BODY_BYTES_MAX // len(blank) - 1
    assert exchange(running.port, *chunked(*[blank] * fitting, PING))[0] == 200
    with httpx.Client() as client:
        answer = client.post(
            running.url, content=(blank for _ in range(fitting + 40)), headers={"content-type": "application/json"}
        )
    assert (answer.status_code, answer.json()["error"]["data"]) == (413, {"code": "CONTENT_TOO_LARGE"})


LENGTHS: dict[bytes, set[int]] = {
    b"5": {400},
    b"-1": {400},
    b"0": {400},
    b"99999999999999999999999": {400, 413},
    b"%d" % (BODY_BYTES_MAX + 1): {413},
    b"1e3": {400},
    b"0x10": {400},
    b"": {400},
    b"+%d" % len(PING): {400},
}


@pytest.mark.parametrize("length", LENGTHS, ids=lambda length: length.decode() or "empty")
def test_a_content_length_that_lies_is_refused(running: Daemon, length: bytes):
    request = posting(PING, LOCAL).replace(b"content-length: %d" % len(PING), b"content-length: " + length)
    assert exchange(running.port, request)[0] in LENGTHS[length]
    assert exchange(running.port, posting(PING, LOCAL))[0] == 200


def test_two_lengths_or_a_length_beside_chunks_smuggle_nothing(running: Daemon):
    two = posting(PING, b"content-length: 3", LOCAL)
    both = posting(PING, b"transfer-encoding: chunked", LOCAL)
    for request in (two, both):
        assert exchange(running.port, request)[0] == 400
    assert exchange(running.port, posting(PING, LOCAL))[0] == 200


def test_a_body_that_never_comes_whole_is_forgotten(running: Daemon):
    """The client says more than it sends, and goes."""
    with socket.create_connection(("127.0.0.1", running.port)) as connection:
        connection.sendall(posting(keyed(10_000), LOCAL).replace(b"content-length: ", b"content-length: 9"))
        connection.shutdown(socket.SHUT_WR)
        connection.makefile("rb").read()
    assert found(running.client(), "number 10000", session_id="vanishing", match="exact") == []


def test_a_compressed_body_is_refused_unread(running: Daemon):
    for encoding in (b"gzip", b"deflate", b"br", b"zstd", b"gzip, gzip"):
        assert exchange(running.port, posting(b"\x1f\x8b" * 100, b"content-encoding: " + encoding, LOCAL))[0] == 415


# Doors.

NAMES: dict[bytes, int] = {
    b"host: localhost": 200,
    b"Host: LOCALHOST:@": 200,
    b"host: 127.0.0.1": 200,
    b"host: 127.0.0.1:@": 200,
    b"host: [::1]:@": 200,
    b"host: memory.example": 200,
    b"host: Memory.Example:443": 200,
    b"host: other.example": 421,
    b"host: localhost.evil.com": 421,
    b"x: y": 400,
    b"host:": 400,
    b"host: localhost\r\nhost: localhost": 400,
    b"host: 127.0.0.1:1.evil.com": 400,
    b"host: localhost:@@evil.com": 400,
    b"host: [::1]x:@": 400,
    b"host: 127.0.0.1.:@": 400,
    b"host: localhost:": 400,
    b"host: localhost:99999": 400,
    b"host: other.example\r\nx-forwarded-host: localhost": 421,
    b"host: localhost\r\nx-forwarded-host: other.example": 200,
    b"host: localhost\r\norigin: http://localhost:3000": 200,
    b"host: localhost\r\norigin: https://memory.example": 200,
    b"host: localhost\r\norigin: null": 403,
    b"host: localhost\r\norigin: https://evil.com": 403,
    b"host: localhost\r\norigin: http://localhost:80.evil.com": 400,
}
TOKEN = "café-und-mehr"
BEARER = b"authorization: Bearer " + TOKEN.encode()
AUTHORIZATIONS: dict[bytes, int] = {
    BEARER: 200,
    BEARER.replace(b"Bearer", b"bearer"): 200,
    BEARER + b" \t": 200,
    BEARER.replace(b"Bearer", b"Bearer "): 401,
    BEARER.replace(b"Bearer", b"Basic"): 401,
    BEARER + b"x": 401,
    BEARER[:-1]: 401,
    b"authorization: Bearer \xff": 401,
    b"authorization: Bearer " + TOKEN.encode("latin-1"): 401,
    b"authorization: Bearer": 401,
    b"authorization:": 401,
    BEARER + b"\r\n" + BEARER: 401,
    b"x: y": 401,
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with a token, and with a name that a proxy gives it."""
    file = tmp_path_factory.mktemp("secret") / "token"
    file.write_bytes(TOKEN.encode() + b"\r\n")
    with daemon(
        tmp_path_factory.mktemp("guarded"), "--allowed-host", "memory.example", "--http-token-file", str(file)
    ) as started:
        assert "memory.example" in started.line
        assert "token required" in started.line
        yield started
        status, journal = started.stop()
        assert status == 0
        for secret in (TOKEN, TOKEN[:-1], "Traceback"):
            assert secret not in started.line + journal


@pytest.mark.parametrize("lines", NAMES, ids=lambda lines: lines.decode())
def test_a_name_is_read_to_its_last_byte(guarded: Daemon, lines: bytes):
    given = lines.replace(b"@", b"%d" % guarded.port, 1)
    status, headers, body = exchange(guarded.port, posting(PING, BEARER, given))
    assert status == NAMES[lines]
    assert not [name for name in headers if name.startswith(b"access-control")]
    if status in (421, 403) and b"null" not in given:
        assert "--allowed-host" in strictly(body)["error"]["message"]


@pytest.mark.parametrize("line", AUTHORIZATIONS, ids=ascii)
def test_a_token_is_compared_as_bytes(guarded: Daemon, line: bytes):
    status, headers, body = exchange(guarded.port, posting(PING, LOCAL, line))
    assert status == AUTHORIZATIONS[line]
    if status == 401:
        assert headers[b"www-authenticate"] == b'bearer realm="convmem"'
        assert TOKEN.encode() not in body


@pytest.mark.parametrize("text", [b"", b"\xef\xbb\xbf\n"])
def test_a_token_that_cannot_be_meant_refuses_the_start(tmp_path: Path, text: bytes):
    (tmp_path / "token").write_bytes(text)
    command = [sys.executable, "-m", "convmem", "serve", "--data-dir", str(tmp_path / "d"), "--bind", "127.0.0.1:0"]
    done = subprocess.run(
        [*command, "--http-token-file", str(tmp_path / "token")],
        cwd=REPOSITORY,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "token" in done.stderr


def test_a_path_is_served_or_not_there_and_the_token_comes_first(guarded: Daemon):
    served = {"/mcp", "/mcp/", "/mcp?x=1", "/mcp/core"}
    for path in (*served, "/mcp//", "/", "/MCP", "/mcp/nothing", "/mcp/core/"):
        for method, expected in {"POST": 200, "GET": 405, "DELETE": 405}.items():
            request = posting(PING, LOCAL, path=path).replace(b"POST", method.encode(), 1)
            assert exchange(guarded.port, request)[0] == 401, (method, path)
            status, headers, _ = exchange(guarded.port, request.replace(LOCAL, LOCAL + b"\r\n" + BEARER))
            assert status == (expected if path in served else 404), (method, path)
            assert b"location" not in headers
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server/mcp"):
        assert exchange(guarded.port, posting(b"", LOCAL, path=path).replace(b"POST", b"GET", 1))[0] == 404


# What a reply may weigh, and what strangers may cost.

CHARACTERS = ("x", "語", '"', "\x01", "😀", "\u2028", "\\", "\n")


def filled(character: str, size_bytes: int) -> str:
    return character * (size_bytes // len(character.encode()))


class Crowd(NamedTuple):
    """A daemon with many messages; of most, all in one session, the ids in the order in which they were written."""

    running: Daemon
    message_ids: list[str]


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    """5000 messages of 2 kB of all that grows when it is escaped."""
    data_dir = tmp_path_factory.mktemp("crowded")
    with stdio(data_dir) as client:
        for number in range(5000):
            character = CHARACTERS[number % len(CHARACTERS)]
            session_id = "s" if number < 4500 else filled(character, 250) + str(number % 100)
            client.send(writing(number, "common " + filled(character, 2000), session_id))
        answers = {answer["id"]: answer["result"]["structuredContent"] for answer in client.rest()}
        client.finish()
    with daemon(data_dir, "--profile", "messages") as started:
        yield Crowd(started, [answers[number]["message_id"] for number in range(4500)])
        assert "Traceback" not in started.stop()[1]


def laden(message_ids: Sequence[str], character: str) -> dict[str, Any]:
    """Metadata at every bound."""
    return {
        "summary": filled(character, 4096),
        "tags": [filled(character, 120) + str(number) for number in range(32)],
        "project": filled(character, 256),
        "tool_call_id": filled(character, 256),
        "relations": [{"type": filled(character, 64), "message_id": message_ids[number]} for number in range(32)],
        "source_message_ids": list(message_ids[:64]),
    }


def weighed(client: RawClient, tool: str, **arguments: Any) -> tuple[int, dict[str, Any]]:
    """How many bytes the serialised result takes on the wire, and its facts."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    answer = client.http.post(client.url, json=body)
    result = answer.json()["result"]
    assert not result["isError"], result
    envelope = len(b'{"jsonrpc":"2.0","id":1,"result":}')
    return len(answer.content) - envelope, result["structuredContent"]


def test_no_answer_to_a_plain_question_is_larger_than_promised(crowded: Crowd):
    client, known = crowded.running.client(), crowded.message_ids
    heavy = [
        client.write("common " + filled(character, 2000), session_id="heavy", metadata=laden(known, character))
        for character in CHARACTERS
        for _ in range(3)
    ]
    heavy.append(client.write(filled("\x01", CONTENT_BYTES_MAX), session_id="heavy", metadata=laden(known, "\x01")))
    named = [message["message_id"] for message in heavy]
    questions: list[tuple[str, dict[str, Any]]] = [
        *(("read_messages", {"view": view}) for view in ("sessions", "export")),
        *(
            ("read_messages", {"view": "history", "session_id": name})
            for name in ("s", "heavy", f"{filled('語', 250)}1")
        ),
        *(("read_messages", {"view": view, "message_id": one}) for view in ("context", "content") for one in named),
        ("read_messages", {"view": "context", "message_id": known[0]}),
        *(("search_messages", {"query": query}) for query in ("common", *CHARACTERS, "common \x01 語")),
        ("get_system_health", {}),
    ]
    for tool, arguments in questions:
        size, facts = weighed(client, tool, **arguments)
        assert size <= REPLY_BYTES_DEFAULT, (tool, arguments, size)
        if arguments.get("view") in ("history", "sessions", "export"):
            assert isinstance(facts["next_cursor"], str) or arguments["session_id"] not in ("s", "heavy")
        if "results" in facts and len(facts["results"]) < 10:
            assert facts["truncated"] is True, arguments


def test_what_is_cut_never_stands_under_its_own_name(crowded: Crowd):
    client = crowded.running.client()
    text = filled("語", CONTENT_BYTES_MAX)
    written = client.write(text, session_id="one large")
    history = client.call("read_messages", view="history", session_id="one large")
    context = client.call("read_messages", view="context", message_id=written["message_id"])
    for message in (*history["messages"], context["target"]):
        assert "content" not in message
        assert message["total_bytes"] == len(text.encode())
        assert text.startswith(message["content_preview"])
    piece = client.call("read_messages", view="content", message_id=written["message_id"])
    assert (piece["eof"], piece["next_offset"]) == (False, len(piece["content"].encode()))


def test_pages_follow_each_other_without_a_gap_in_both_directions(crowded: Crowd):
    client = crowded.running.client()
    for order, expected in {"asc": crowded.message_ids, "desc": crowded.message_ids[::-1]}.items():
        seen: list[str] = []
        cursor: dict[str, str] = {}
        for _ in range(20):
            page = client.call("read_messages", view="history", session_id="s", order=order, **cursor)
            seen += [message["message_id"] for message in page["messages"]]
            cursor = {"cursor": page["next_cursor"]}
        assert seen == expected[: len(seen)]
        assert len(seen) > 20


@pytest.mark.parametrize(
    "arguments",
    [
        {"view": "history", "session_id": "s", "limit": 500, "max_bytes": REPLY_BYTES_MAX},
        {"view": "export", "limit": 500, "max_bytes": REPLY_BYTES_MAX},
        {"view": "sessions", "limit": 500, "max_bytes": REPLY_BYTES_MAX},
        {"view": "history", "session_id": "s", "max_bytes": 1},
        {"view": "history", "session_id": "s", "max_bytes": 5000},
    ],
    ids=str,
)
def test_an_answer_asked_for_keeps_to_its_ceiling(crowded: Crowd, arguments: dict[str, Any]):
    size, facts = weighed(crowded.running.client(), "read_messages", **arguments)
    records = next(value for value in facts.values() if isinstance(value, list))
    assert records
    assert size <= max(arguments["max_bytes"], 40_000)


def resources(running: Daemon) -> tuple[int, int]:
    """Resident bytes and open descriptors of the daemon."""
    assert running.process is not None
    proc = Path("/proc", str(running.process.pid))
    pages = int((proc / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(list((proc / "fd").iterdir()))


HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
).encode()
STRANGERS = {
    "a handshake that is dropped": (HELLO, (LOCAL, BEARER), 200),
    "no token": (HELLO, (LOCAL,), 401),
    "another host": (HELLO, (b"host: evil.com",), 421),
    "no form that we speak": (HELLO, (LOCAL, BEARER, b"accept: text/html"), 406),
    "no JSON": (b"{", (LOCAL, BEARER), 400),
}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="nothing here tells how large a process is")
def test_thousands_who_come_and_go_leave_nothing_behind(guarded: Daemon):
    def come(count: int) -> None:
        for body, lines, status in STRANGERS.values():
            request = posting(body, *lines).replace(b"connection: close", b"x-client: 1")
            for number in range(count):
                with socket.create_connection(("127.0.0.1", guarded.port)) as connection:
                    connection.sendall(request)
                    if number % 2:
                        assert connection.recv(65_536).startswith(b"HTTP/1.1 %d " % status)
                    else:
                        reset(connection, after_s=0.001)

    come(300)
    rss_before, descriptors_before = resources(guarded)
    come(800)
    assert exchange(guarded.port, posting(PING, LOCAL, BEARER))[0] == 200
    rss_after, descriptors_after = resources(guarded)
    assert rss_after - rss_before < 6 * 1024 * 1024
    assert descriptors_after - descriptors_before < 16


# The list of tools.

FORBIDDEN = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "format", "const", "nullable", "prefixItems", "title"}


def keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every keyword of a schema, leaving out the names of properties."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            yield key, value
            for inner in value.values() if key == "properties" else [value]:
                yield from keywords(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from keywords(inner)


@pytest.mark.parametrize("profile", ["", "core", "messages", "all"])
def test_every_provider_takes_the_list_of_tools_as_it_is(running: Daemon, profile: str):
    listed = tools(running.client(profile))
    bytes_max = 36_000 if profile == "all" else 20_000
    assert len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode()) <= bytes_max
    assert len({tool["name"].lower() for tool in listed}) == len(listed)
    for tool in listed:
        assert re.fullmatch("[a-z_]{1,40}", tool["name"])
        assert len(f"mcp__convmem__{tool['name']}") <= 60
        assert "outputSchema" not in tool
        schema = tool["inputSchema"]
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert "properties" in schema
        for key, value in keywords(schema):
            assert key not in FORBIDDEN, tool["name"]
            assert key != "type" or isinstance(value, str), tool["name"]
            assert value not in (None, {}) or key == "properties", tool["name"]


def test_the_list_is_the_same_for_everybody_and_at_any_time(running: Daemon):
    lists = []

    def ask() -> None:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        client = running.client()
        lists.append(client.http.post(client.url, json=body).content)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lists) == 4
    assert len(set(lists)) == 1
