"""Tests of what operators ask over HTTP: streamed verbs, exports and imports, over a real server with a toy behind."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from convmem.errors import Busy, Conflict, StorageFull, StoreFailed
from convmem.limits import BODY_BYTES_MAX, IMPORT_BYTES_MAX
from convmem.transport import http, operations
from convmem.transport.gate import Settings
from tests.support.served import served, served_in_thread
from tests.support.toy import Toy, toy_catalog
from tests.support.waiting import until

TOY = Toy()
BEARER = {"authorization": "Bearer geheim"}
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def unix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "convmem.sock"


@pytest.fixture(scope="module")
def port(unix: Path) -> Iterator[int]:
    application = http.build(toy_catalog, TOY, Settings(token=b"geheim"))
    with served_in_thread(application, unix) as port:
        yield port


@pytest.fixture
def toy() -> Toy:
    TOY.refusal = TOY.export_ends_with = None
    for kept in (TOY.notes, TOY.asked, TOY.ended):
        kept.clear()
    return TOY


@pytest.fixture(scope="module")
def client(port: int) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=BEARER, trust_env=False) as client:
        yield client


@pytest.fixture(scope="module")
def local(port: int, unix: Path) -> Iterator[httpx.Client]:
    with httpx.Client(base_url="http://any.name", transport=httpx.HTTPTransport(uds=str(unix))) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_is_a_fault(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever callers do, the server finds no fault in us; a test that makes one takes its lines away."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@asynccontextmanager
async def serving(toy: Toy) -> AsyncIterator[tuple[http.Server, int]]:
    """A server in this loop, for tests that watch what happens inside."""
    async with served(http.build(toy_catalog, toy, Settings())) as found:
        yield found


@asynccontextmanager
async def opened(
    port: int, request: bytes, *headers: bytes, body: bytes = b""
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that has sent a request and reads nothing of itself: its buffers are small."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=raw, limit=1)
    writer.write(b"\r\n".join([request + b" HTTP/1.1", b"host: localhost", *headers, b"", body]))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection ends, in whatever way."""
    found = b""
    try:
        while piece := await reader.read(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def lines(response: httpx.Response) -> list[Any]:
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.text.endswith("\n")
    return [json.loads(line) for line in response.text.split("\n")[:-1]]


def refused(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert error["message"]
    return response.status_code, error["code"]


# --- verbs


def test_a_verb_answers_one_result(client: httpx.Client, toy: Toy):
    response = client.post("/admin/echo", json={"a": [1, None, "ü"]})
    assert (response.status_code, lines(response)) == (200, [{"result": {"echo": {"a": [1, None, "ü"]}}}])


def test_no_body_is_an_empty_object(client: httpx.Client, toy: Toy):
    assert lines(client.post("/admin/echo")) == [{"result": {"echo": {}}}]
    assert lines(client.post("/admin/echo", content=b"", headers={"content-type": "application/json"}))
    assert toy.asked == [{}, {}]


def test_progress_comes_before_the_result_and_not_too_often(client: httpx.Client, toy: Toy):
    *told, last = lines(client.post("/admin/steps"))
    assert last == {"result": {"counted": 1000}}
    assert told[0] == {"progress": {"done": 0, "total": 1000, "message": "counting"}}
    # A thousand steps take less than half a second.
    assert 1 <= len(told) <= 5


def test_the_same_over_the_local_socket_without_a_token(local: httpx.Client, toy: Toy):
    toy.notes[:] = ["one"]
    assert lines(local.post("/admin/path", json={"to": "/x"})) == [{"result": {"echo": {"to": "/x"}}}]
    assert local.get("/export").content == b"one\n"
    assert local.post("/import", content=b"two\n").json() == {"taken": 1}


def test_a_verb_that_names_paths_is_for_this_machine_only(client: httpx.Client, toy: Toy):
    assert refused(client.post("/admin/path", json={"to": "/x"})) == (403, "FORBIDDEN")
    assert toy.asked == []


REFUSED: dict[str, tuple[str, str, dict[str, Any], tuple[int, str]]] = {
    "no such verb": ("POST", "/admin/nothing", {}, (404, "NOT_FOUND")),
    "no verb": ("POST", "/admin/", {}, (404, "NOT_FOUND")),
    "a verb of another case": ("POST", "/admin/ECHO", {}, (404, "NOT_FOUND")),
    "a verb and more": ("POST", "/admin/echo/more", {}, (404, "NOT_FOUND")),
    "another method": ("GET", "/admin/echo", {}, (405, "VALIDATION_ERROR")),
    "another type": ("POST", "/admin/echo", {"data": {"a": "b"}}, (415, "VALIDATION_ERROR")),
    "no type": ("POST", "/admin/echo", {"content": b"{}"}, (415, "VALIDATION_ERROR")),
    "compressed": ("POST", "/admin/echo", {"headers": {"content-encoding": "gzip"}}, (415, "VALIDATION_ERROR")),
    "no JSON": ("POST", "/admin/echo", {"json": float("1e999")}, (400, "VALIDATION_ERROR")),
    "no object": ("POST", "/admin/echo", {"json": [1]}, (400, "VALIDATION_ERROR")),
    "a query": ("POST", "/admin/echo?x=1", {}, (400, "VALIDATION_ERROR")),
    "POST of an export": ("POST", "/export", {}, (405, "VALIDATION_ERROR")),
    "HEAD of an export": ("HEAD", "/export", {}, (405, "")),
    "an export of a part": ("GET", "/export?project=x", {}, (400, "VALIDATION_ERROR")),
    "GET of an import": ("GET", "/import", {}, (405, "VALIDATION_ERROR")),
    "an unknown argument": ("POST", "/import?polizy=reject", {}, (400, "VALIDATION_ERROR")),
    "an argument twice": ("POST", "/import?policy=reject&policy=overwrite", {}, (400, "VALIDATION_ERROR")),
    "an argument without a value": ("POST", "/import?dry_run", {}, (400, "VALIDATION_ERROR")),
    "an import as a form": ("POST", "/import", {"data": {"a": "b"}}, (415, "VALIDATION_ERROR")),
    "an import compressed": ("POST", "/import", {"headers": {"content-encoding": "gzip"}}, (415, "VALIDATION_ERROR")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused_by_status_before_anything_is_begun(client: httpx.Client, toy: Toy, case: str):
    method, path, more, expected = REFUSED[case]
    if case == "no JSON":
        more = {"content": b'{"a": 1, "a": 2}', "headers": {"content-type": "application/json"}}
    response = client.request(method, path, **more)
    if method == "HEAD":
        assert response.status_code == expected[0]
    else:
        assert refused(response) == expected
    assert (toy.asked, toy.ended) == ([], [])


@pytest.mark.parametrize("path", ["/admin/echo", "/export", "/import", "/admin/nothing"])
def test_without_the_token_nothing_is_told(client: httpx.Client, toy: Toy, path: str):
    for method in ("GET", "POST"):
        response = client.request(method, path, headers={"authorization": "Bearer x"})
        assert response.status_code == 401
    assert toy.asked == []


def test_a_page_of_another_origin_may_not_ask(client: httpx.Client, toy: Toy):
    assert client.post("/admin/echo", headers={"origin": "http://evil.com"}).status_code == 403


STATUSES = {
    "busy": (Busy("somebody is at it", retry_after_ms=2_500), 503, {"retry-after": "3"}),
    "full": (StorageFull("the disk is full", retry_after_ms=5_000), 507, {"retry-after": "5"}),
    "failed": (StoreFailed("the disk is gone"), 500, {}),
    "conflict": (Conflict("another content", line=7), 409, {}),
}


@pytest.mark.parametrize("case", STATUSES)
@pytest.mark.parametrize(("method", "path"), [("POST", "/admin/refuse"), ("GET", "/export"), ("POST", "/import")])
def test_a_refusal_before_the_first_line_has_a_status_of_its_own(
    client: httpx.Client, toy: Toy, case: str, method: str, path: str
):
    toy.refusal, status, headers = STATUSES[case]
    response = client.request(method, path)
    assert response.status_code == status
    assert response.json() == {"error": toy.refusal.facts()}
    assert headers.items() <= dict(response.headers).items()


def test_a_refusal_behind_progress_is_the_last_line(client: httpx.Client, toy: Toy):
    toy.refusal = Conflict("somebody was faster", current_revision=7)
    response = client.post("/admin/refuse-late")
    assert response.status_code == 200
    assert lines(response)[1:] == [{"error": toy.refusal.facts()}]


def test_a_fault_of_ours_breaks_off_without_a_word_of_it(
    client: httpx.Client, toy: Toy, caplog: pytest.LogCaptureFixture
):
    text = b""

    def read(response: httpx.Response) -> None:
        nonlocal text
        for piece in response.iter_raw():
            text += piece

    with client.stream("POST", "/admin/break") as response, pytest.raises(httpx.RemoteProtocolError):
        read(response)
    assert b"going well" in text
    assert b"secret" not in text
    assert "a secret of the inside" in caplog.text
    caplog.clear()
    assert client.post("/admin/echo").status_code == 200


# In every single line more than a connection takes.
FLOOD = b'{"lines": 20, "bytes": 16000000}'
FLOODING = (b"POST /admin/flood", b"content-type: application/json", b"content-length: %d" % len(FLOOD))


@pytest.mark.slow
async def test_a_reader_that_is_slow_holds_up_no_verb(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operations, "PROGRESS_INTERVAL_MS_MIN", 0)
    toy = Toy()
    async with serving(toy) as (_, port), opened(port, *FLOODING, body=FLOOD) as (reader, _):
        # It ends although nobody reads.
        await until(lambda: toy.ended)
        assert (await reader.readexactly(15)) == b"HTTP/1.1 200 OK"


@pytest.mark.slow
async def test_an_answer_that_nobody_reads_is_dropped_in_the_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operations, "BODY_SILENCE_S_MAX", 0.05)
    toy = Toy()
    async with serving(toy) as (server, port), opened(port, *FLOODING, body=FLOOD):
        await until(lambda: toy.ended)
        await until(lambda: not server.server_state.connections)


@pytest.mark.slow
async def test_a_silent_verb_says_that_it_is_still_at_work(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operations, "PROGRESS_SILENCE_S_MAX", 0.01)
    toy = Toy()
    async with (
        serving(toy) as (_, port),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
        client.stream("POST", "/admin/wait") as response,
    ):
        told = response.aiter_lines()
        for _ in range(3):
            assert json.loads(await anext(told)) == {"progress": {"done": 1, "total": 2, "message": "waiting"}}
        toy.released.set()
        assert [json.loads(line) async for line in told][-1] == {"result": {"waited": True}}


async def test_progress_that_comes_behind_the_result_is_dropped():
    toy = Toy()
    async with (
        serving(toy) as (_, port),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        for _ in range(2):
            assert (await client.post("/admin/echo")).text == '{"result":{"echo":{}}}\n'
            assert toy.progress is not None
            await toy.progress(1, 1, "late")


async def test_a_client_that_goes_away_does_not_undo_a_verb():
    toy = Toy()
    async with serving(toy) as (server, port):
        async with opened(port, b"POST /admin/wait", b"content-length: 0"):
            await toy.waiting.wait()
        await until(lambda: not server.server_state.connections)
        toy.released.set()
        await until(lambda: toy.ended)


@pytest.mark.slow
async def test_a_verb_that_does_not_end_is_answered_when_the_grace_of_a_stop_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(http, "STOP_GRACE_S", 0.05)
    toy = Toy()
    asking = (b"POST /admin/wait", b"content-length: 0")
    async with serving(toy) as (server, port), opened(port, *asking) as (reader, _):
        await toy.waiting.wait()
        server.stop()
        answer = await rest(reader)
    assert b'"STOPPING"' in answer
    assert answer.endswith(b"0\r\n\r\n")
    assert "Exception" not in caplog.text
    caplog.clear()  # uvicorn says that it had to cancel


# --- export


def test_an_export_is_the_lines_of_the_store(client: httpx.Client, toy: Toy):
    toy.notes[:] = ["one", "zwei", "三"]
    response = client.get("/export")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/x-ndjson")
    assert response.content == "one\nzwei\n三\n".encode()
    assert toy.ended == ["export"]


def test_an_empty_export_is_an_empty_body(client: httpx.Client, toy: Toy):
    assert client.get("/export").content == b""


@pytest.mark.parametrize("error", [StoreFailed("the index is gone"), Busy("no", retry_after_ms=1)])
def test_an_export_that_fails_in_the_middle_is_seen_to_be_broken(client: httpx.Client, toy: Toy, error: Exception):
    toy.notes[:] = ["x" * 1000] * 10
    toy.export_ends_with = error
    with pytest.raises(httpx.TransportError):
        client.get("/export")
    assert toy.ended == ["export"]


@pytest.mark.slow
async def test_a_reader_that_stops_is_cut_off_and_the_export_let_go(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operations, "BODY_SILENCE_S_MAX", 0.05)
    toy = Toy()
    toy.notes[:] = ["x" * MIB] * 32
    async with serving(toy) as (server, port), opened(port, b"GET /export") as (reader, _):
        await until(lambda: toy.ended)
        await until(lambda: not server.server_state.connections)
        # It may read on now: what comes is not the whole, and says so.
        answer = await rest(reader)
        assert 0 < len(answer) < 32 * MIB
        assert not answer.endswith(b"0\r\n\r\n")


@pytest.mark.slow
async def test_a_reader_that_goes_away_ends_the_export():
    toy = Toy()
    toy.notes[:] = ["x" * MIB] * 1000
    async with serving(toy) as (server, port):
        async with opened(port, b"GET /export") as (reader, _):
            await reader.readexactly(1000)
        await until(lambda: toy.ended)
        await until(lambda: not server.server_state.tasks)
    assert toy.given < 1000


@pytest.mark.slow
async def test_a_stop_breaks_an_export_off(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.setattr(http, "STOP_GRACE_S", 0.05)
    toy = Toy()
    toy.notes[:] = ["x" * MIB] * 32
    async with serving(toy) as (server, port), opened(port, b"GET /export") as (reader, _):
        await reader.readexactly(1000)
        server.stop()
        await until(lambda: toy.ended)
        assert not (await rest(reader)).endswith(b"0\r\n\r\n")
    assert "Exception" not in caplog.text
    caplog.clear()


# --- import


def test_an_import_hands_on_its_arguments_and_answers_the_facts(client: httpx.Client, toy: Toy):
    response = client.post("/import?policy=overwrite&dry_run=true", content=b"one\ntwo\n")
    assert (response.status_code, response.json()) == (200, {"taken": 2})
    assert toy.asked == [{"policy": "overwrite", "dry_run": "true"}]
    assert toy.notes == ["one", "two"]


@pytest.mark.parametrize("content_type", ["application/x-ndjson", "application/jsonl; charset=utf-8", None])
def test_an_import_may_say_what_its_lines_are(client: httpx.Client, toy: Toy, content_type: str | None):
    headers = {} if content_type is None else {"content-type": content_type}
    assert client.post("/import", content=b"one\n", headers=headers).json() == {"taken": 1}


def test_an_import_may_be_larger_than_any_other_body_and_come_in_chunks(client: httpx.Client, toy: Toy):
    def pieces() -> Iterator[bytes]:
        for _ in range(8):
            yield (b"x" * 1023 + b"\n") * 1024

    assert 8 * MIB > BODY_BYTES_MAX
    response = client.post("/import", content=pieces())
    assert response.request.headers["transfer-encoding"] == "chunked"
    assert response.json() == {"taken": 8 * 1024}


def test_an_import_is_refused_as_soon_as_a_line_is_bad(client: httpx.Client, toy: Toy):
    response = client.post("/import", content=b"one\nbad\n" + b"x" * 4 * MIB)
    assert refused(response) == (409, "CONFLICT")
    assert response.json()["error"]["line"] == 2
    assert toy.notes == []
    assert client.post("/import", content=b"one\n").json() == {"taken": 1}, "the connection serves on"


FRAMINGS = [b"content-length: 1000", b"transfer-encoding: chunked"]
BEGINNING = b"4\r\none\n\r\n"


@pytest.mark.parametrize("framing", FRAMINGS)
async def test_a_sender_that_goes_away_in_the_middle_has_imported_nothing(framing: bytes):
    toy = Toy()
    async with serving(toy) as (server, port):
        async with opened(port, b"POST /import", framing, body=BEGINNING):
            await toy.waiting.wait()
        await until(lambda: not server.server_state.connections and not server.server_state.tasks)
    assert toy.notes == []


@pytest.mark.parametrize("framing", FRAMINGS)
async def test_a_sender_that_falls_silent_is_let_go_with_408(monkeypatch: pytest.MonkeyPatch, framing: bytes):
    monkeypatch.setattr(operations, "BODY_SILENCE_S_MAX", 0.05)
    toy = Toy()
    async with serving(toy) as (_, port), opened(port, b"POST /import", framing, body=BEGINNING) as (reader, _):
        assert (await rest(reader)).startswith(b"HTTP/1.1 408 ")
    assert toy.notes == []


async def test_an_import_over_its_bound_is_refused_while_it_comes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operations, "IMPORT_BYTES_MAX", 4)
    toy = Toy()
    chunked = (b"POST /import", b"transfer-encoding: chunked", b"connection: close")
    async with serving(toy) as (_, port), opened(port, *chunked, body=b"5\r\none2\n\r\n0\r\n\r\n") as (reader, _):
        assert (await rest(reader)).startswith(b"HTTP/1.1 413 ")
    assert toy.notes == []


@pytest.mark.slow
async def test_an_import_that_says_it_is_too_large_is_refused_before_it_comes():
    toy = Toy()
    headers = (b"POST /import", b"content-length: %d" % (IMPORT_BYTES_MAX + 1))
    async with serving(toy) as (_, port), opened(port, *headers) as (reader, _):
        assert (await reader.readexactly(13)) == b"HTTP/1.1 413 "
    assert toy.asked == []


@pytest.mark.slow
async def test_a_stop_ends_an_import_that_is_still_coming(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(http, "STOP_GRACE_S", 0.05)
    toy = Toy()
    beginning = (b"POST /import", b"content-length: 1000")
    async with serving(toy) as (server, port), opened(port, *beginning, body=b"one\n") as (reader, _):
        await toy.waiting.wait()
        server.stop()
        answer = await rest(reader)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b'"STOPPING"' in answer
    assert toy.notes == []
    assert "Exception" not in caplog.text
    caplog.clear()
