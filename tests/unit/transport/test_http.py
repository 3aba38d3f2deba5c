"""Tests of the HTTP side put together: paths, health, tokens over the wire, the local socket, start and stop."""

import asyncio
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from convmem.transport import http, loading
from convmem.transport.gate import Settings
from tests.support.served import call, post, request, served, served_in_thread
from tests.support.toy import Toy, toy_catalog
from tests.support.waiting import until

TOY = Toy()
BEARER = {"authorization": "Bearer geheim"}


@pytest.fixture(scope="module")
def port(unix: Path) -> Iterator[int]:
    application = http.build(toy_catalog, TOY, Settings(default_profile="core", token=b"geheim"))
    with served_in_thread(application, unix) as port:
        yield port


@pytest.fixture(scope="module")
def unix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "convmem.sock"


@pytest.fixture
def client(port: int) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client


@pytest.fixture
def local(port: int, unix: Path) -> Iterator[httpx.Client]:
    with httpx.Client(base_url="http://any.name", transport=httpx.HTTPTransport(uds=str(unix))) as client:
        yield client


STATUSES = {"ok": 200, "degraded": 200, "stopping": 503, "failed": 503}


@pytest.mark.parametrize("status", STATUSES)
def test_health_says_how_the_daemon_is_without_a_token(client: httpx.Client, status: Any):
    TOY.status_now = status
    response = client.get("/healthz")
    TOY.status_now = "ok"
    assert (response.status_code, response.json()) == (STATUSES[status], {"status": status})


def test_health_takes_no_other_method(client: httpx.Client):
    response = client.post("/healthz")
    assert (response.status_code, response.json()["error"]["code"]) == (405, "VALIDATION_ERROR")
    assert client.head("/healthz").status_code == 200


PATHS = {
    "/mcp": 200,
    "/mcp/": 200,
    "/mcp?x=1": 200,
    "/mcp/core": 200,
    "/mcp/messages": 200,
    "/mcp/all": 200,
    "/%6dcp": 404,
    "/mcp//": 404,
    "/mcp/core/": 404,
    "/mcp/memory": 404,
    "/mcp/tables": 404,
    "/mcp/nothing": 404,
    "/mcp/..": 404,
    "/MCP": 404,
    "/": 404,
    "/healthz/": 404,
    "/docs": 404,
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_served_or_not_there_and_never_elsewhere(port: int, path: str):
    # A raw request: clients tidy paths.
    with socket.create_connection(("127.0.0.1", port)) as connection:
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer geheim\r\nconnection: close\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 %d " % PATHS[path])
    assert b"location:" not in answer.lower()


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["/mcp", "/nothing", "/mcp/nothing"])
def test_without_the_token_nothing_is_told(client: httpx.Client, method: str, path: str):
    response = client.request(method, path)
    assert (response.status_code, response.headers["www-authenticate"]) == (401, 'Bearer realm="convmem"')


def test_with_the_token_a_call_comes_from_the_device_of_the_environment(client: httpx.Client):
    assert post(client, call("toy_read"), **BEARER).status_code == 200
    assert (TOY.origins[-1].device, TOY.origins[-1].transport) == ("env", "http")


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
def test_no_sign_in_is_offered(client: httpx.Client, path: str):
    assert client.get(path).status_code == 404


def test_the_local_socket_serves_the_same_paths_without_token_and_host(local: httpx.Client):
    assert local.get("/healthz").json() == {"status": "ok"}
    assert post(local, call("toy_read")).json()["result"]["isError"] is False
    assert (TOY.origins[-1].device, TOY.origins[-1].transport) == ("local", "socket")
    assert len(post(local, request("tools/list"), "/mcp/messages").json()["result"]["tools"]) == 8
    assert local.get("/nothing").status_code == 404


@pytest.mark.slow
async def test_health_answers_while_the_sdk_is_still_being_imported():
    toy, may_load = Toy(), threading.Event()
    made = loading.kernel(toy_catalog, toy)

    def load() -> Any:
        assert may_load.wait(5)
        return made()

    application = http.build(toy_catalog, toy, Settings(), load)
    async with (
        served(application) as (_, port),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
        asyncio.TaskGroup() as tasks,
    ):
        early = tasks.create_task(client.post("/mcp", json=call("toy_read")))
        assert (await client.get("/healthz")).status_code == 200
        assert not early.done()
        may_load.set()
        assert (await early).json()["result"]["isError"] is False


@pytest.mark.slow
async def test_a_stop_finishes_and_answers_what_is_in_hand_and_takes_nothing_more():
    toy = Toy()
    application = http.build(toy_catalog, toy, Settings(default_profile="messages"))
    before = signal.getsignal(signal.SIGTERM)
    async with (
        served(application) as (server, port),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
        asyncio.TaskGroup() as tasks,
    ):
        begun = tasks.create_task(client.post("/mcp", json=call("toy_wait_write", {"name": "last"})))
        await toy.waiting.wait()
        assert signal.getsignal(signal.SIGTERM) is before
        server.stop()
        await until(lambda: not server.servers[0].is_serving())
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert not begun.done()
        toy.released.set()
        assert (await begun).json()["result"]["structuredContent"] == {"waited": "last"}
    assert toy.notes == ["last"]


@pytest.mark.slow
async def test_a_client_that_goes_away_does_not_undo_its_write():
    toy = Toy()
    application = http.build(toy_catalog, toy, Settings(default_profile="messages"))
    body = msgspec.json.encode(call("toy_wait_write", {"name": "kept"}))
    async with served(application) as (server, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        await toy.waiting.wait()
        writer.close()
        await until(lambda: not server.server_state.connections)
        assert toy.ended == []
        toy.released.set()
        await until(lambda: toy.notes)
    assert toy.notes == ["kept"]


@pytest.mark.slow
async def test_a_client_that_does_not_read_holds_up_nobodys_progress():
    toy = Toy()
    application = http.build(toy_catalog, toy, Settings(default_profile="messages"))
    body = msgspec.json.encode(call("toy_flood", progressToken="t"))
    async with served(application) as (_, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        # The tool reports far more than the connection takes; it comes to its end although nobody reads.
        await until(lambda: "flood" in toy.ended)
        writer.transport.abort()
