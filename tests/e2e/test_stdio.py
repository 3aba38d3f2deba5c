"""`convmem stdio` as agent programs start it: every line answered, nothing else on stdout, no write lost at the end."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from convmem.daemon import catalog
from convmem.limits import BODY_BYTES_MAX, CONTENT_BYTES_MAX
from convmem.store.sqlite import connect_to_read
from tests.support.daemons import complaints
from tests.support.malformed import MALFORMED, PING
from tests.support.served import ENVELOPE
from tests.support.stdio_client import ANSWER_S, END_S, StdioClient, stdio, strictly, writing

pytestmark = pytest.mark.slow
EVERY_TOOL = set(catalog().tools)
INFO = {"name": "tester", "version": "1"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioClient]:
    """One process for all, in the noisiest mode that Python has; at its end all that it ever said is looked at."""
    with stdio(
        tmp_path_factory.mktemp("noisy"), "--profile", "all", environment={"PYTHONASYNCIODEBUG": "1"}
    ) as started:
        assert started.request("ping", END_S)["result"] == {}
        yield started
        assert started.stop() == 0
        for line in started.lines:
            assert set(strictly(line)) <= {"jsonrpc", "id", "result", "error"}
        assert b"Traceback" not in started.journal
        assert b"Warning" not in started.journal


def live(client: StdioClient) -> int:
    count: int = client.call("get_system_health")["live"]
    return count


@pytest.mark.parametrize("name", MALFORMED)
def test_every_malformed_line_is_answered_in_time_and_stores_nothing(client: StdioClient, name: str):
    before = live(client)
    line, code = MALFORMED[name]
    client.send(line + b"\n")
    answer = client.answer(ANSWER_S)
    assert answer["error"]["code"] == code
    assert answer["id"] in (None, "p")
    assert client.request("ping")["result"] == {}
    assert live(client) == before


@pytest.mark.parametrize("bad", ["NaN", "1e400", "9" * 5000, '{"tags":[],"tags":[]}', '"\\ud83d"', "[" * 100])
def test_an_object_that_comes_as_text_is_read_as_strictly(client: StdioClient, bad: str):
    refused = client.call(
        "write_message", session_id="s", role="user", content="x", metadata=f'{{"importance": 5, "x": {bad}}}'
    )
    assert (refused["error"]["code"], refused["error"]["field"]) == ("VALIDATION_ERROR", "metadata")


def test_byte_order_marks_line_ends_of_windows_and_blank_lines_are_no_obstacle(client: StdioClient):
    client.send(b"\n", b"\r\n", b" \t\r\n", b"\xef\xbb\xbf\n", b"\xef\xbb\xbf" + PING + b"\r\n", PING + b"\r\n", b"\n")
    assert [client.answer(), client.answer()] == [{"jsonrpc": "2.0", "id": "p", "result": {}}] * 2
    assert client.request("ping")["result"] == {}


def test_line_separators_of_other_formats_are_no_line_ends(client: StdioClient):
    text = "a\u2028b\u2029c\u0085d\u001ce\u000bf\u000cg\rh\ni"
    message_id = client.write(text, "separators")["message_id"]
    from_here = len(client.lines)
    views: list[dict[str, Any]] = [
        {"view": "history", "session_id": "separators"},
        {"view": "content", "message_id": message_id},
        {"view": "context", "message_id": message_id},
        {"view": "export"},
    ]
    history, content, context, export = (client.call("read_messages", **view) for view in views)
    found = client.call("search_messages", query="b\u2029c", session_id="separators")["results"][0]
    assert history["messages"][0]["content"] == content["content"] == context["target"]["content"] == text
    assert found["snippet"] == text
    assert [json.loads(line)["content"] for line in export["lines"] if "separators" in line] == [text]
    for line in client.lines[from_here:]:
        assert "\u2028" not in line.decode()
        assert "\u2029" not in line.decode()
        assert b"\r" not in line


@pytest.mark.parametrize("line_bytes", [65_535, 65_536, 65_537])
def test_a_line_may_be_longer_than_any_buffer(client: StdioClient, line_bytes: int):
    room = line_bytes - len(writing("w", ""))
    text = "x" * room
    line = writing("w", text)
    assert len(line) == line_bytes
    client.send(line)
    message_id = client.answer(END_S)["result"]["structuredContent"]["message_id"]
    piece = client.call("read_messages", view="content", message_id=message_id, limit=65_536, max_bytes=2**18)
    assert (piece["content"], piece["eof"]) == (text, True)


@pytest.mark.parametrize("character", ["a", "\x01", "😀"])
def test_the_largest_content_goes_in_and_comes_out(client: StdioClient, character: str):
    text = character * (CONTENT_BYTES_MAX // len(character.encode()))
    message_id = client.write(text, "large")["message_id"]
    whole = client.call(
        "read_messages", view="history", session_id="large", order="desc", limit=1, max_bytes=8 * 1024 * 1024
    )
    message = whole["messages"][0]
    assert message["message_id"] == message_id
    # U+0001 takes thirteen bytes of a reply, so that one is over its ceiling and shows as a preview.
    if "content" in message:
        assert message["content"] == text
    else:
        assert text.startswith(message["content_preview"])
        assert message["total_bytes"] == CONTENT_BYTES_MAX
    refused = client.write(text + "a", "large")["error"]
    assert (refused["code"], refused["bytes"]) == ("CONTENT_TOO_LARGE", CONTENT_BYTES_MAX + 1)


def test_a_line_beyond_the_bound_is_refused_and_skipped(client: StdioClient):
    client.send(b"x" * (2 * BODY_BYTES_MAX) + b"\n")
    assert client.answer(END_S)["error"]["code"] == -32600
    assert client.request("ping")["result"] == {}


def test_both_eras_are_spoken_on_one_line_after_another(client: StdioClient):
    hello = client.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=INFO)["result"]
    assert hello["protocolVersion"] == "2025-06-18"
    client.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    for envelope in ({}, {"_meta": ENVELOPE}):
        found = client.request("server/discover", **envelope)
        assert ("result" in found) is bool(envelope)
        listed = client.request("tools/list", **envelope)["result"]
        assert ("resultType" in listed) is bool(envelope)
        assert {tool["name"] for tool in listed["tools"]} == EVERY_TOOL
        arguments = {"session_id": "eras", "role": "user", "content": "x"}
        written = client.request("tools/call", name="write_message", arguments=arguments, **envelope)
        assert ("resultType" in written["result"]) is bool(envelope)
    history = client.call("read_messages", view="history", session_id="eras")["messages"]
    assert [message["origin"]["client"] for message in history] == ["tester/1", "tester/9"]
    assert (
        client.request("tools/list", _meta={**ENVELOPE, next(iter(ENVELOPE)): "2031-01-01"})["error"]["code"] == -32022
    )


def test_whoever_holds_the_store_serves_the_local_socket_too(client: StdioClient):
    written = client.write("from stdio", "shared")
    socket = client.data_dir / "convmem.sock"
    assert socket.stat().st_mode & 0o777 == 0o600
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket))) as local:
        asked = {"name": "read_messages", "arguments": {"view": "history", "session_id": "shared"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
        answer = local.post("http://any.name/mcp", json=body).json()
    (message,) = answer["result"]["structuredContent"]["messages"]
    assert (message["message_id"], message["origin"]["transport"]) == (written["message_id"], "stdio")


def test_a_write_is_finished_and_answered_although_the_input_ends_behind_it(tmp_path: Path):
    with stdio(tmp_path) as client:
        count = 300
        client.send(*(writing(number, f"number {number}") for number in range(count)))
        client.send(writing("last", "without a line end").removesuffix(b"\n"))
        answers = {answer["id"]: answer["result"]["structuredContent"] for answer in client.rest()}
        assert client.finish() == 0
        assert set(answers) == {*range(count), "last"}
        sequences = [int(answers[number]["sequence"]) for number in (*range(count), "last")]
        assert sequences == list(range(1, count + 2))
    assert complaints(tmp_path) == []
    assert stored(tmp_path) == count + 1


def stored(data_dir: Path) -> int:
    """How many messages a store holds that nobody has open."""
    connection = connect_to_read(data_dir / "index-1.db")
    (count,) = connection.execute("SELECT count(*) FROM messages_message").fetchone()
    connection.close()
    return int(count)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_answers_what_was_begun_and_ends_in_order(tmp_path: Path, number: signal.Signals):
    with stdio(tmp_path) as client:
        client.write("before")
        client.send(*(writing(number, "x" * 2000) for number in range(100)))
        client.answer(END_S)
        begun = time.monotonic()
        client.send_signal(number)
        assert client.finish() == 0
        assert time.monotonic() - begun < 5
        assert b"Traceback" not in client.journal
        assert not (tmp_path / "convmem.sock").exists()
        results = [strictly(line)["result"] for line in client.lines]
        done = [result for result in results if not result["isError"]]
        refused = [result["structuredContent"]["error"]["code"] for result in results if result["isError"]]
        assert set(refused) <= {"STOPPING"}
        assert len(done) == stored(tmp_path)


def test_a_program_that_never_reads_our_journal_is_served_on(tmp_path: Path):
    with stdio(tmp_path, reads_journal=False) as client:
        for number in range(1000):
            # Each refusal is a line of the journal; together they are more than any pipe holds.
            answer = client.request("tools/call", END_S, name="write_message", arguments={"content": str(number)})
            assert answer["result"]["isError"] is True
        assert client.write("still here")["sequence"] == "1"
        assert client.stop() == 0
    assert b"VALIDATION_ERROR" in client.journal


def test_an_end_without_warning_leaves_a_whole_store(tmp_path: Path):
    with stdio(tmp_path) as client:
        client.write("kept")
        client.send(*(writing(number, "x" * 2000) for number in range(50)))
        client.answer(END_S)
        client.process.kill()
        client.finish()
        acknowledged = sum(b'"message_id"' in line for line in client.lines)
    assert complaints(tmp_path) == []
    assert stored(tmp_path) >= acknowledged >= 2


def test_a_store_that_is_held_serves_a_second_program_through_its_holder(tmp_path: Path):
    with stdio(tmp_path) as first:
        assert first.write("mine")["sequence"] == "1"
        with stdio(tmp_path) as second:
            assert second.write("ours")["sequence"] == "2"
            assert second.stop() == 0
        assert first.write("still mine")["sequence"] == "3"
