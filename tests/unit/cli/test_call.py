"""cli/call: one POST to a daemon, and every way in which it can go wrong said in one sentence."""

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from convmem.cli.asking import CallFailed
from convmem.cli.call import Place, call, call_explained
from convmem.errors import Busy, NotFound, StoreFailed


class Answering(http.server.BaseHTTPRequestHandler):
    """Says to every POST what the test has put here, and keeps what it was asked."""

    answer: ClassVar[tuple[int, bytes]] = (200, b"{}")
    asked: ClassVar[list[tuple[str, dict[str, str], Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, dict(self.headers), json.loads(body)))
        status, answer = self.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_request(self, *_: object) -> None:
        """Nothing: the test looks at what was asked."""


class OverASocket(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """HTTP on a Unix socket."""

    daemon_threads = True


@contextmanager
def answering(server: socketserver.BaseServer, status: int, answer: object) -> Iterator[None]:
    Answering.answer = (status, answer if isinstance(answer, bytes) else json.dumps(answer).encode())
    Answering.asked = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    with server:
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def over_tcp(status: int, answer: object) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    with answering(server, status, answer):
        yield f"http://127.0.0.1:{server.server_address[1]}"


def facts(value: dict[str, Any], *, is_error: bool = False) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": value, "isError": is_error}}


def test_a_call_is_one_request_over_the_local_socket(tmp_path: Path):
    path = tmp_path / "convmem.sock"
    with answering(OverASocket(str(path), Answering), 200, facts({"found": 1})):
        assert call(Place(socket=path), "search_messages", {"query": "é"}) == {"found": 1}
    ((asked, headers, request),) = Answering.asked
    assert asked == "/mcp/messages"
    assert request["method"] == "tools/call"
    assert request["params"] == {"name": "search_messages", "arguments": {"query": "é"}}
    assert "Authorization" not in headers


def test_what_a_call_took_is_asked_for_and_told_with_its_facts():
    answer = facts({"found": 1})
    answer["result"]["_meta"] = {"convmem/stages": [{"stage": "find", "ms": 3.5}, {"stage": "tail", "ms": 1}]}
    with over_tcp(200, answer) as url:
        assert call_explained(Place(url=url), "search_messages", {}) == ({"found": 1}, [("find", 3.5), ("tail", 1)])
    assert Answering.asked[0][2]["params"]["_meta"] == {"convmem/explain": True}


def test_a_daemon_that_does_not_tell_what_a_call_took_is_asked_all_the_same():
    with over_tcp(200, facts({"found": 1})) as url:
        assert call_explained(Place(url=url), "search_messages", {}) == ({"found": 1}, [])


def test_a_call_to_another_machine_sends_the_token():
    with over_tcp(200, facts({})) as url:
        assert call(Place(url=url, token=b"s3cr\xe9t"), "read_messages", {}) == {}
    assert Answering.asked[0][1]["Authorization"] == "Bearer s3cr\xe9t"


def test_a_path_in_the_url_is_the_path_asked():
    with over_tcp(200, facts({})) as url:
        call(Place(url=f"{url}/mcp/all/"), "read_messages", {})
    assert Answering.asked[0][0] == "/mcp/all"


@pytest.mark.parametrize(
    ("code", "details", "kind"),
    [
        ("NOT_FOUND", {"field": "message_id"}, NotFound),
        ("BUSY", {"retry_after_ms": 100}, Busy),
        ("STORE_FAILED", {}, StoreFailed),
    ],
)
def test_a_refusal_is_raised_as_the_error_that_has_its_code(code: str, details: dict[str, Any], kind: type[Exception]):
    error = {"code": code, "message": "no", "retryable": False, **details}
    with over_tcp(200, facts({"error": error}, is_error=True)) as url, pytest.raises(kind) as refused:
        call(Place(url=url), "read_messages", {})
    assert refused.value.message == "no"
    assert refused.value.details == details


@pytest.mark.parametrize(
    ("status", "answer", "sentence"),
    [
        (502, b"<html>bad gateway", "502 Bad Gateway, which is no answer of convmem"),
        (200, b"[]", "no answer of convmem"),
        (200, {"result": {}}, "without facts"),
        (401, {"error": {"code": "UNAUTHORIZED", "message": "a token is required"}}, "401: a token is required"),
        (200, {"error": {"code": -32602, "message": "Unknown tool"}}, "Unknown tool"),
        (200, facts({"error": {"code": "LATER_CODE", "message": "new"}}, is_error=True), "LATER_CODE: new"),
    ],
)
def test_any_other_answer_is_told_in_one_sentence(status: int, answer: object, sentence: str):
    with over_tcp(status, answer) as url, pytest.raises(CallFailed) as failed:
        call(Place(url=url, token=b"s3cret"), "read_messages", {})
    assert sentence in str(failed.value)
    assert "s3cret" not in str(failed.value)


@pytest.mark.parametrize(
    "url", ["", "localhost:8484", "ftp://x", "http://", "http://u:p@h", "http://h:port", "http://h?a"]
)
def test_what_is_no_url_of_a_daemon_is_refused(url: str):
    with pytest.raises(CallFailed, match="is not a URL like"):
        call(Place(url=url), "read_messages", {})


def test_nobody_at_the_socket_is_for_the_caller_to_act_on(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        call(Place(socket=tmp_path / "convmem.sock"), "read_messages", {})
    with pytest.raises(NotADirectoryError):
        call(Place(socket=Path(__file__) / "convmem.sock"), "read_messages", {})
    OverASocket(str(tmp_path / "left"), Answering).server_close()
    with pytest.raises(ConnectionRefusedError):
        call(Place(socket=tmp_path / "left"), "read_messages", {})


def test_nobody_at_the_url_is_a_failure():
    with over_tcp(200, {}) as url:
        pass
    with pytest.raises(CallFailed, match="no answer from http://127"):
        call(Place(url=url), "read_messages", {})
