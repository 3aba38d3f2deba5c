"""http_client: what each way of answering, refusing and breaking off means, over real sockets."""

import asyncio
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from convmem.hooks.target import Address
from convmem.transport import http_client
from convmem.transport.http_client import Connection, Head, Lost, Unreachable, connect
from tests.support.raw_server import Asked, free_port, raw_server
from tests.support.scripted import chunked, head
from tests.support.waiting import PATIENCE_S, until

JSON = "Content-Type: application/json"
HEADERS = [(b"Host", b"localhost"), (b"X-Seen", b"\xe9")]


async def whole(connection: Connection) -> bytes:
    """The rest of the answer's body."""
    return b"".join([piece async for piece in connection.body()])


async def asked(connection: Connection, body: bytes = b"{}") -> tuple[Head, bytes]:
    """One request and its answer."""
    async with asyncio.timeout(PATIENCE_S):
        return await connection.post(b"/mcp", HEADERS, body), await whole(connection)


def saying(*pieces: bytes) -> Callable[[Asked], Awaitable[None]]:
    """A handler that says the same each time."""

    async def handle(request: Asked) -> None:
        request.say(*pieces)

    return handle


def hanging_up_behind(*pieces: bytes) -> Callable[[Asked], Awaitable[None]]:
    async def handle(request: Asked) -> None:
        request.say(*pieces)
        request.hang_up()

    return handle


async def test_a_request_goes_out_as_it_is_given():
    async with raw_server(saying(head("200 OK", "Content-Length: 0"))) as server:
        connection = await connect(server.address)
        await asked(connection, b'{"a":1}')
        connection.close()
    (request,) = server.asked
    assert (request.line, request.body) == ("POST /mcp HTTP/1.1", b'{"a":1}')
    assert request.headers == {"host": "localhost", "x-seen": "\xe9", "content-length": "7"}


ANSWERS = {
    "with a length": head("200 OK", "Content-Type: Application/JSON ; charset=utf-8", "Content-Length: 5") + b"hello",
    "in chunks": head("200 OK", JSON, "Transfer-Encoding: chunked") + chunked(b"he", b"llo"),
    "behind others": b"".join(
        [
            head("100 Continue"),
            head("103 Early Hints", "Link: <x>"),
            head("200 OK", JSON, "Content-Length: 5"),
            b"hello",
        ]
    ),
    "in lower case": b"HTTP/1.1 200 \r\ncontent-type:application/json\r\ncontent-length:5\r\n\r\nhello",
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("is_cut", [False, True])
async def test_an_answer_is_read_and_the_connection_used_again(answer: str, is_cut: bool):
    text = ANSWERS[answer]
    pieces = [bytes([byte]) for byte in text] if is_cut else [text]
    async with raw_server(saying(*pieces)) as server:
        connection = await connect(server.address)
        for _ in range(3):
            assert connection.is_usable
            assert await asked(connection) == (Head(200, b"application/json"), b"hello")
        connection.close()
        assert not connection.is_usable
    assert [request.connection for request in server.asked] == [1, 1, 1]


@pytest.mark.parametrize(
    "answer",
    [
        head("200 OK", JSON, "Content-Length: 5", "Connection: close") + b"hello",
        b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\nhello",
        head("200 OK", JSON) + b"hello",
    ],
)
async def test_an_answer_that_ends_the_connection_is_whole_and_the_last(answer: bytes):
    async with raw_server(hanging_up_behind(answer)) as server:
        connection = await connect(server.address)
        assert await asked(connection) == (Head(200, b"application/json"), b"hello")
        assert not connection.is_usable
        connection.close()


BROKEN = {
    b"": "hung up before its answer was complete",
    b"HTTP/1.1 200": "hung up before its answer was complete",
    head("200 OK", "Content-Length: 5"): "hung up before its answer was complete",
    head("200 OK", "Content-Length: 5") + b"hel": "hung up before its answer was complete",
    head("200 OK", "Transfer-Encoding: chunked"): "hung up before its answer was complete",
    head("200 OK", "Transfer-Encoding: chunked") + chunked(b"hel", is_ended=False): "hung up before its answer",
    head("100 Continue"): "hung up before its answer was complete",
    b"SSH-2.0-OpenSSH_9.6\r\n\r\n": "no HTTP",
    head("200 OK", "Content-Length: 5", "Content-Length: 6") + b"hello": "no HTTP",
    head("200 OK", "Transfer-Encoding: chunked") + b"zz\r\n": "no HTTP",
    head("200 OK", "X: " + "x" * 200_000): "no HTTP",
    head("101 Switching Protocols"): "no HTTP",
}


@pytest.mark.parametrize("answer", BROKEN, ids=lambda answer: ascii(answer[:60]))
async def test_what_is_no_whole_answer_is_lost_and_says_how(answer: bytes):
    async with raw_server(hanging_up_behind(answer)) as server:
        connection = await connect(server.address)
        with pytest.raises(Lost, match=BROKEN[answer]):
            await asked(connection)
        assert not connection.is_usable
        connection.close()


@pytest.mark.parametrize("said", [b"", head("200 OK", JSON), head("200 OK", "Content-Length: 9") + b"hel"])
async def test_a_connection_that_is_reset_is_lost(said: bytes):
    came = asyncio.Event()

    async def handle(request: Asked) -> None:
        request.say(said)
        if said:
            await came.wait()
        request.reset()

    async with raw_server(handle) as server:
        connection = await connect(server.address)

        async def ask() -> None:
            if said:
                await connection.post(b"/mcp", HEADERS, b"{}")
                came.set()
                await whole(connection)
            else:
                await connection.post(b"/mcp", HEADERS, b"{}")

        with pytest.raises(Lost, match="the connection broke: Connection reset by peer"):
            await asyncio.wait_for(ask(), PATIENCE_S)
        assert not connection.is_usable
        connection.close()


async def test_a_refusal_that_comes_before_the_body_is_taken_is_read_although_the_connection_breaks():
    refused = asyncio.Event()

    async def handle(request: Asked) -> None:
        # The body is megabytes, and none of it is read: what is closed then is reset.
        request.answer(b"too large", "Connection: close", status="413 Too Large")
        await request.writer.drain()
        request.hang_up()
        await request.writer.wait_closed()
        refused.set()

    async with raw_server(handle, reads_bodies=False) as server:
        connection = await connect(server.address)
        await until(lambda: server.connections)
        post = asyncio.create_task(connection.post(b"/mcp", HEADERS, b"x" * 20_000_000))
        async with asyncio.timeout(PATIENCE_S):
            await refused.wait()
            assert await post == Head(413, b"application/json")
            assert await whole(connection) == b"too large"
        assert not connection.is_usable
        connection.close()


async def test_what_came_before_a_break_is_still_read():
    reader = http_client.Arrivals()
    reader.feed_data(b"what came")
    reader.set_exception(ConnectionResetError("broken"))
    assert await reader.read(100) == b"what came"
    assert await reader.read(100) == b""
    assert isinstance(reader.breakage, ConnectionResetError)


async def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_client, "BRIDGE_ANSWER_BYTES_MAX", 100_000)
    pieces = [b"x" * 1000] * 100

    async with raw_server(saying(head("200 OK", JSON, "Transfer-Encoding: chunked"), chunked(*pieces))) as server:
        connection = await connect(server.address)
        assert (await asked(connection))[1] == b"".join(pieces)
        connection.close()
    async with raw_server(saying(head("200 OK", JSON, "Transfer-Encoding: chunked"), chunked(*pieces, b"x"))) as server:
        connection = await connect(server.address)
        with pytest.raises(Lost, match="larger than 100000 bytes"):
            await asked(connection)
        assert not connection.is_usable
        connection.close()


async def test_a_quiet_connection_is_of_no_use_once_the_other_end_has_hung_up():
    async with raw_server(saying(head("200 OK", "Content-Length: 0"))) as server:
        connection = await connect(server.address)
        await asked(connection)
        assert connection.is_usable
        server.close_all()
        async with asyncio.timeout(PATIENCE_S):
            await connection.ended()
        assert not connection.is_usable
        connection.close()


@pytest.mark.parametrize("is_at_once", [True, False])
async def test_what_is_said_on_a_quiet_connection_is_no_answer_to_the_next_request(is_at_once: bool):
    answer, unasked = head("200 OK", "Content-Length: 0"), head("408 Request Timeout", "Content-Length: 0")
    async with raw_server(saying(answer + unasked if is_at_once else answer)) as server:
        connection = await connect(server.address)
        assert (await asked(connection))[0].status == 200
        if not is_at_once:
            assert connection.is_usable
            server.connections[0].write(unasked)
        await until(lambda: not connection.is_usable)
        connection.close()


async def test_a_connection_ends_only_when_the_other_end_hangs_up():
    async with raw_server(saying()) as server:
        connection = await connect(server.address)
        ending = asyncio.create_task(connection.ended())
        await until(lambda: server.connections)
        server.connections[0].write(b"a word")
        for _ in range(50):
            await asyncio.sleep(0)
        assert not ending.done()
        server.close_all()
        async with asyncio.timeout(PATIENCE_S):
            await ending
        connection.close()


async def test_an_end_that_is_a_break_is_an_end():
    async def handle(request: Asked) -> None:
        request.reset()

    async with raw_server(handle) as server:
        connection = await connect(server.address)
        with pytest.raises(Lost):
            await connection.post(b"/", HEADERS, b"")
        await connection.ended()
        connection.close()


async def test_a_local_socket_serves_as_well(tmp_path: Path):
    path = tmp_path / "s"
    async with raw_server(saying(head("200 OK", "Content-Length: 1") + b"x"), unix=path) as server:
        connection = await connect(server.address)
        assert (await asked(connection))[1] == b"x"
        connection.close()


async def test_nobody_there_is_unreachable_and_named(tmp_path: Path):
    port = free_port()
    path = tmp_path / "s"
    left_behind = socket.socket(socket.AF_UNIX)
    left_behind.bind(str(tmp_path / "left"))
    left_behind.close()
    for address, sentence in {
        Address(
            host="127.0.0.1", port=port, authority=f"127.0.0.1:{port}"
        ): f"no connection to http://127.0.0.1:{port}",
        Address(host="no.such.host.invalid", port=80, authority="no.such.host.invalid"): "http://no.such.host.invalid",
        Address(host="a" * 70, port=80, authority="long"): "no connection to http://long",
        Address(socket=str(path)): f"{path}: No such file",
        Address(socket=str(tmp_path / "left")): "Connection refused",
        Address(socket="/" + "x" * 200): "too long",
    }.items():
        with pytest.raises(Unreachable, match=sentence):
            await connect(address)


async def test_one_that_never_answers_the_call_is_unreachable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_client, "BRIDGE_CONNECT_MS_MAX", 1)

    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
    with pytest.raises(Unreachable, match="no connection to http://x within 1 ms"):
        await connect(Address(host="127.0.0.1", port=80, authority="x"))


async def test_a_queue_that_is_full_is_no_connection(tmp_path: Path):
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        first = await connect(Address(socket=path))
        with pytest.raises(Unreachable, match="too many wait for it"):
            await connect(Address(socket=path))
        first.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that nobody has signed but itself, with its key."""
    path = tmp_path_factory.mktemp("tls") / "own.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*command, "-keyout", path, "-out", path.with_suffix(".crt")], check=True, capture_output=True)
    return path


def serving(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.with_suffix(".crt"), certificate)
    return context


@pytest.mark.slow
async def test_an_unknown_authority_is_unreachable_and_the_sentence_helps(certificate: Path):
    async with raw_server(saying(), tls=serving(certificate)) as server:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        with pytest.raises(Unreachable, match=r"is not trusted .*self-signed.*SSL_CERT_FILE"):
            await connect(server.address)


@pytest.mark.slow
async def test_a_known_authority_is_trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    async with raw_server(saying(head("200 OK", "Content-Length: 1") + b"x"), tls=serving(certificate)) as server:
        connection = await connect(server.address)
        assert (await asked(connection))[1] == b"x"
        connection.close()


async def test_one_that_speaks_no_tls_is_unreachable():
    async with raw_server(saying(head("400 Bad"))) as server:

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(head("400 Bad Request"))
            writer.close()

        plain = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = plain.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable, match=rf"no connection to https://x:{port}: .*(record|version|SSL)"):
            await connect(server.address._replace(port=port, is_tls=True, authority=f"x:{port}"))
        plain.close()
