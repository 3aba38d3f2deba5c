"""Tests of the bound on the head of a request, byte by byte through real sockets."""

import json
import socket
from collections.abc import Iterator

import pytest

from convmem.limits import HEADERS_BYTES_MAX
from convmem.transport import http
from convmem.transport.gate import Settings
from convmem.transport.wire import without_upgrade
from tests.support.served import served_in_thread
from tests.support.toy import Toy, toy_catalog


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served_in_thread(http.build(toy_catalog, Toy(), Settings())) as port:
        yield port


@pytest.fixture
def connection(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        yield connection


def refused(answer: bytes) -> str:
    """The sentence of an answer that is one whole error body."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % len(body) in head
    error = json.loads(body)["error"]
    assert (error["code"], error["retryable"], set(error)) == (
        "VALIDATION_ERROR",
        False,
        {"code", "message", "retryable"},
    )
    return str(error["message"])


HEAD = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"


def status(connection: socket.socket) -> bytes:
    return connection.makefile("rb").readline()


@pytest.mark.parametrize("beginning", [HEAD + b"x: ", b"GET /", HEAD + b"x", b"GET / HTTP/1.1\r\n"])
def test_a_head_that_does_not_end_is_given_up(connection: socket.socket, beginning: bytes):
    connection.sendall(beginning)
    endless = b"a: b\r\n" * 1000 if beginning.endswith(b"\n") else b"y" * 6000
    try:
        for _ in range(100):
            connection.sendall(endless)
    except (BrokenPipeError, ConnectionResetError):
        return
    assert status(connection).startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))


def test_a_head_just_over_the_limit_is_answered(connection: socket.socket):
    connection.sendall(HEAD + b"x: " + b"y" * HEADERS_BYTES_MAX)
    answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"\r\nconnection: close\r\n" in answer
    assert refused(answer) == f"the headers are larger than {HEADERS_BYTES_MAX} bytes"


def test_a_head_in_small_pieces_is_served(connection: socket.socket):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in HEAD + b"connection: close\r\n\r\n":
        connection.sendall(bytes([byte]))
    assert status(connection) == b"HTTP/1.1 200 OK\r\n"


def test_bodies_and_earlier_requests_are_not_counted_as_head(connection: socket.socket):
    body = b" " * (HEADERS_BYTES_MAX * 3)
    head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    answers = connection.makefile("rb")
    for _ in range(3):
        connection.sendall(head % len(body) + body)
        assert answers.readline() == b"HTTP/1.1 400 Bad Request\r\n"
        while (line := answers.readline()) != b"\r\n":
            if line.startswith(b"content-length: "):
                length = int(line.split()[1])
        assert b"-32700" in answers.read(length)


def test_many_small_requests_in_a_row_are_served(connection: socket.socket):
    count = HEADERS_BYTES_MAX // len(HEAD) * 2
    connection.sendall((HEAD + b"\r\n") * count + HEAD + b"connection: close\r\n\r\n")
    assert connection.makefile("rb").read().count(b"HTTP/1.1 200 OK") == count + 1


def test_what_is_no_http_is_answered(connection: socket.socket):
    connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
    assert status(connection).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("target", [b"http://evil.example/healthz", b"http://localhost/healthz", b"*", b"healthz"])
def test_a_target_that_is_no_path_is_refused_whatever_the_host_header_says(connection: socket.socket, target: bytes):
    connection.sendall(b"GET " + target + b" HTTP/1.1\r\nhost: localhost\r\n\r\n")
    answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    refused(answer)


POST = b"POST /admin/echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        POST + b"content-length: -1\r\n\r\n{}",
        POST + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
    ids=["chunk", "negative", "doubled", "tls"],
)
def test_what_cannot_be_read_is_refused_like_anything_else_and_the_connection_ends(
    connection: socket.socket, request_: bytes
):
    connection.sendall(request_)
    answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert answer.count(b"HTTP/1.1") == 2  # the sentence names it too
    assert "no request of HTTP/1.1" in refused(answer)


def test_an_upgrade_that_is_not_taken_is_served_and_nothing_is_said(
    connection: socket.socket, caplog: pytest.LogCaptureFixture
):
    connection.sendall(HEAD + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n")
    assert status(connection) == b"HTTP/1.1 200 OK\r\n"
    assert caplog.text == ""


@pytest.mark.parametrize("offer", [b"h2c", b"websocket", b"H2C, foo/2"])
def test_a_call_that_offers_another_protocol_keeps_its_body(connection: socket.socket, offer: bytes):
    body = b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"\\r\\nUpgrade: y"}}'
    connection.sendall(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: "
        + offer
        + b"\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    answer = connection.makefile("rb")
    assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
    while answer.readline() != b"\r\n":
        pass
    beginning = b'{"jsonrpc":"2.0","id":7,"result":'
    assert answer.read(len(beginning)) == beginning


def test_only_the_head_of_a_request_loses_its_offer():
    request = b"POST / HTTP/1.1\r\nUPGRADE: h2c\r\n\r\nbody\r\nUpgrade: stays"
    assert without_upgrade(request) == b"POST / HTTP/1.1\r\nx-offered: h2c\r\n\r\nbody\r\nUpgrade: stays"
