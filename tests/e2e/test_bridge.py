"""`convmem stdio` beside a holder of the store: a bridge that no restart of anybody is noticed through."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from convmem.limits import CONTENT_BYTES_MAX
from tests.support import commands
from tests.support.daemons import Daemon, complaints, daemon
from tests.support.malformed import MALFORMED, PING
from tests.support.served import ENVELOPE
from tests.support.stdio_client import END_S, StdioClient, request, stdio, writing

pytestmark = pytest.mark.slow
PATIENCE_S = 30
HISTORY = {"name": "read_messages", "arguments": {"view": "history", "session_id": "s"}}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, StdioClient]]:
    data_dir = tmp_path_factory.mktemp("pair")
    with daemon(data_dir) as running, stdio(data_dir, "--profile", "all") as client:
        assert client.request("ping", END_S)["result"] == {}
        yield running, client
        assert client.stop() == 0
        assert b"Traceback" not in client.journal
        assert b"Warning" not in client.journal


@pytest.mark.parametrize("name", MALFORMED)
def test_every_malformed_line_is_answered_by_the_bridge_as_by_a_store(pair: tuple[Daemon, StdioClient], name: str):
    _, client = pair
    line, code = MALFORMED[name]
    client.send(line + b"\n")
    answer = client.answer(END_S)
    assert (answer["error"]["code"], answer["id"] in (None, "p")) == (code, True)
    assert client.request("ping")["result"] == {}


@pytest.mark.parametrize("character", ["a", "\x01", "😀"])
def test_the_largest_content_passes_the_bridge(pair: tuple[Daemon, StdioClient], character: str):
    _, client = pair
    text = character * (CONTENT_BYTES_MAX // len(character.encode()))
    written = client.write(text, "large")
    pieces, offset = "", 0
    while True:
        piece = client.call(
            "read_messages",
            view="content",
            message_id=written["message_id"],
            offset=offset,
            limit=65_536,
            max_bytes=1024 * 1024,
        )
        pieces, offset = pieces + piece["content"], piece.get("next_offset") or 0
        if piece["eof"]:
            break
    assert pieces == text
    assert client.write(text + "a", "large")["error"]["code"] == "CONTENT_TOO_LARGE"


def test_many_requests_at_once_are_all_answered(pair: tuple[Daemon, StdioClient]):
    _, client = pair
    count = 500
    client.send(*(writing(number, f"number {number}", "many") for number in range(count)))
    answers = [client.answer(END_S) for _ in range(count)]
    assert {answer["id"] for answer in answers} == set(range(count))
    assert all(answer["result"]["isError"] is False for answer in answers)


def test_line_separators_of_other_formats_are_escaped_by_the_bridge_too(pair: tuple[Daemon, StdioClient]):
    _, client = pair
    text = "a\u2028b\u2029c\u0085d"
    client.write(text, "separators")
    history = client.call("read_messages", view="history", session_id="separators")
    assert history["messages"][0]["content"] == text
    assert not any(mark.encode() in line for line in client.lines for mark in "\u2028\u2029")


def test_the_client_is_named_in_what_it_writes_although_the_daemon_saw_no_handshake(
    pair: tuple[Daemon, StdioClient],
):
    _, client = pair
    info = {"name": "Schreibmaschine", "version": "3"}
    hello = client.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)["result"]
    assert hello["protocolVersion"] == "2025-06-18"
    client.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    client.write("old era", "eras")
    arguments = {"session_id": "eras", "role": "user", "content": "new era"}
    client.request("tools/call", name="write_message", arguments=arguments, _meta=ENVELOPE)
    history = client.call("read_messages", view="history", session_id="eras")["messages"]
    assert [message["origin"]["client"] for message in history] == ["Schreibmaschine/3", "tester/9"]


def test_a_cancelled_request_is_not_answered_and_the_next_one_is(pair: tuple[Daemon, StdioClient]):
    running, client = pair
    running.send(signal.SIGSTOP)
    client.send(request("slow", "tools/call", **HISTORY))
    client.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}\n', PING + b"\n")
    running.send(signal.SIGCONT)
    assert client.answer(END_S)["id"] == "p"
    assert client.request("ping")["result"] == {}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Daemon]:
    with daemon(tmp_path / "data") as started:
        yield started


Connected = Callable[[Daemon], StdioClient]


@pytest.fixture(params=["socket", "url"])
def connected(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connected]:
    """A bridge to a daemon, through the local socket or by its URL."""
    with ExitStack() as stack:

        def connect(running: Daemon) -> StdioClient:
            is_by_url = request.param == "url"
            where = ("--url", running.url) if is_by_url else ()
            client = stack.enter_context(stdio(None if is_by_url else running.data_dir, "--profile", "all", *where))
            stack.callback(client.stop)
            assert client.request("ping", END_S)["result"] == {}
            return client

        yield connect


def test_a_restart_is_not_noticed(running: Daemon, connected: Connected):
    client = connected(running)
    client.write("before")
    running.kill()
    client.send(
        *(writing(number, f"meanwhile {number}") for number in range(20)), request("r", "tools/call", **HISTORY)
    )
    running.start()
    answers = {answer["id"]: answer["result"] for answer in (client.answer(PATIENCE_S) for _ in range(21))}
    assert set(answers) == {*range(20), "r"}
    assert not any(result["isError"] for result in answers.values())
    # None of them had reached the daemon that was killed, so each is there once.
    written = [message["content"] for message in running.client("all").history()]
    assert sorted(written) == sorted(["before", *(f"meanwhile {number}" for number in range(20))])


def stopped_with(running: Daemon, client: StdioClient, *lines: bytes) -> None:
    """Have the daemon killed while these requests are on their way to it."""
    running.send(signal.SIGSTOP)
    client.send(*lines)
    # Answered by the bridge alone, and in order: so the lines before were read, and sent on.
    client.send(b"{nope\n")
    assert client.answer(END_S)["error"]["code"] == -32700
    client.send(b"{nope\n")
    assert client.answer(END_S)["error"]["code"] == -32700
    running.kill()


def test_a_call_that_may_be_done_is_not_repeated_and_its_caller_is_told(running: Daemon, connected: Connected):
    client = connected(running)
    # On a connection that is known: a new one could not be opened while the daemon stands still.
    client.write("before")
    stopped_with(running, client, writing("w", "perhaps"))
    running.start()
    lost = client.answer(PATIENCE_S)
    assert (lost["id"], lost["error"]["data"]) == ("w", {"code": "OUTCOME_UNKNOWN", "retryable": False})
    assert "nobody knows" in lost["error"]["message"]
    assert [message["content"] for message in running.client("all").history()] == ["before"]
    assert client.write("after")["sequence"] == "2"


@pytest.mark.parametrize(
    "method",
    ["ping", "tools/list", "a tool that only reads"],
)
def test_what_only_reads_is_asked_again(running: Daemon, connected: Connected, method: str):
    client = connected(running)
    client.write("kept")
    line = request("r", "tools/call", **HISTORY) if method.startswith("a tool") else request("r", method)
    stopped_with(running, client, line)
    running.start()
    answer = client.answer(PATIENCE_S)
    assert (answer["id"], "result" in answer) == ("r", True)


def test_a_call_with_an_idempotency_key_is_asked_again_and_done_once(running: Daemon, connected: Connected):
    client = connected(running)
    client.write("before")
    arguments = {"session_id": "s", "role": "user", "content": "once", "idempotency_key": "k"}
    stopped_with(running, client, request("w", "tools/call", name="write_message", arguments=arguments))
    running.start()
    answer = client.answer(PATIENCE_S)
    assert answer["result"]["structuredContent"]["sequence"] == "2"
    assert client.call("write_message", **arguments)["replayed"] is True
    assert [message["content"] for message in running.client("all").history()] == ["before", "once"]


def test_malformed_lines_are_answered_while_nobody_is_there(running: Daemon, connected: Connected):
    client = connected(running)
    running.kill()
    client.send(request("waits", "ping"), b"[]\n", b"\xff\n")
    assert [client.answer(END_S)["error"]["code"] for _ in range(2)] == [-32600, -32700]
    running.start()
    assert client.answer(PATIENCE_S)["id"] == "waits"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_bridge_that_waits_and_each_request_is_answered(
    running: Daemon, connected: Connected, number: signal.Signals
):
    client = connected(running)
    running.kill()
    client.send(request("waits", "ping"), b"{nope\n")
    assert client.answer(END_S)["error"]["code"] == -32700
    client.send_signal(number)
    answer = client.answer(END_S)
    assert (answer["id"], answer["error"]["data"]) == ("waits", {"code": "UNREACHABLE", "retryable": True})
    assert client.finish() == 0


def test_the_next_process_takes_the_store_when_its_holder_ends(tmp_path: Path):
    with ExitStack() as stack:
        # One after the other: the first one holds the store.
        clients, written = list[StdioClient](), list[str]()
        for number in range(3):
            clients.append(stack.enter_context(stdio(tmp_path)))
            written.append(clients[-1].write(str(number))["sequence"])
        first, second, third = clients
        first.process.kill()
        first.finish()
        assert second.call("read_messages", view="history", session_id="s")["messages"][0]["content"] == "0"
        written += [client.write(str(3 + number))["sequence"] for number, client in enumerate((second, third))]
        second.send_signal(signal.SIGTERM)
        assert second.finish() == 0
        written.append(third.write("5")["sequence"])
        assert written == ["1", "2", "3", "4", "5", "6"]
        assert third.stop() == 0
    assert complaints(tmp_path) == []


def test_a_store_whose_daemon_ended_is_taken_over_with_all_that_waited(running: Daemon):
    with stdio(running.data_dir, "--profile", "all") as client:
        client.write("before")
        assert running.stop()[0] == 0
        client.send(*(writing(number, f"waited {number}") for number in range(5)), request("r", "tools/list"))
        client.process.stdin.close()  # type: ignore[union-attr]
        answers = {answer["id"]: answer["result"] for answer in (client.answer(PATIENCE_S) for _ in range(6))}
        assert len(answers["r"]["tools"]) == 38
        assert sorted(int(answers[number]["structuredContent"]["sequence"]) for number in range(5)) == [2, 3, 4, 5, 6]
        assert client.finish() == 0
    assert complaints(running.data_dir) == []


def test_a_daemon_that_starts_is_given_the_store_by_an_agent_program(tmp_path: Path):
    with stdio(tmp_path, "--profile", "all") as first:
        first.write("0")
        with stdio(tmp_path, "--profile", "all") as second:
            second.write("1")
            with daemon(tmp_path) as running:
                client = running.client("all")
                assert client.write("2")["sequence"] == "3"
                assert [first.write("3")["sequence"], second.write("4")["sequence"]] == ["4", "5"]
                origins = [message["origin"]["transport"] for message in client.history()]
                assert origins == ["stdio", "socket", "http", "socket", "socket"]
                assert (first.stop(), second.stop(), running.stop()[0]) == (0, 0, 0)
    assert complaints(tmp_path) == []


def test_a_daemon_keeps_its_store_from_another_daemon(running: Daemon):
    refused = commands.ran("serve", "--data-dir", str(running.data_dir), "--bind", "127.0.0.1:0")
    assert refused.returncode == 10
    assert str(running.process.pid) in refused.stderr  # type: ignore[union-attr]
    asked = running.client().http.post(f"http://127.0.0.1:{running.port}/admin/hand-over", json={})
    assert asked.status_code == 404


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--url", "ftp://host/mcp"), "the URL is not one like"),
    (("--url", "http://user:secret@host/mcp"), "the URL is not one like"),
    (("--url", "http://host/mcp?token=secret"), "the URL is not one like"),
    (("--url", "http://127.0.0.1:1/mcp", "--token-file", "nowhere"), "token file"),
    (("--url", "http://127.0.0.1:1/mcp/memory", "--profile", "core"), "the URL names memory"),
    (("--token-file", "token"), "--token-file goes with --url"),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG)
def test_what_cannot_be_meant_is_refused_at_the_start(tmp_path: Path, arguments: tuple[str, ...], sentence: str):
    refused = commands.ran("stdio", *arguments, directory=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert sentence in refused.stderr
    assert "secret" not in refused.stderr


def test_another_program_behind_the_url_is_named_in_the_answer(tmp_path: Path):
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        Thread(target=server.serve_forever).start()
        with stdio(None, "--url", f"http://127.0.0.1:{server.server_port}/mcp") as client:
            answer = client.request("tools/list", END_S)
            assert answer["error"]["data"]["code"] == "NO_ANSWER"
            assert "501" in answer["error"]["message"]
            assert client.stop() == 0
        server.shutdown()


def test_a_token_that_is_none_is_refused_and_one_that_is_mended_counts_without_a_restart(tmp_path: Path):
    token_file = tmp_path / "token"
    token_file.write_text("wrong\n")
    with (
        daemon(tmp_path / "data", environment={"CONVMEM_HTTP_TOKEN": "right"}) as running,
        stdio(None, "--url", running.url, "--token-file", str(token_file)) as client,
    ):
        refused = client.request("tools/list", END_S)
        assert refused["error"]["data"]["code"] == "FORBIDDEN"
        token_file.write_text("right\n")
        assert client.request("tools/list")["result"]["tools"]
        assert client.stop() == 0
        assert b"right" not in client.journal
        assert b"wrong" not in client.journal
