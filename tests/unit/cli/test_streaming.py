"""cli/streaming: verbs with progress, files that come and go, and every way in which a stream can break off."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from convmem.cli import call, streaming
from convmem.cli.asking import CallFailed
from convmem.cli.call import Place
from convmem.cli.streaming import PIECE_BYTES, ask, download, upload
from convmem.errors import Busy, Conflict, Forbidden, StoreFailed
from convmem.transport import http
from convmem.transport.gate import Settings
from tests.support.scripted import chunked, head, scripted
from tests.support.served import served_in_thread
from tests.support.toy import Toy, toy_catalog

TOY = Toy()
MIB = 1024 * 1024
Told = list[tuple[float, float, str]]


@pytest.fixture(scope="module")
def unix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "convmem.sock"


@pytest.fixture(scope="module")
def url(unix: Path) -> Iterator[str]:
    with served_in_thread(http.build(toy_catalog, TOY, Settings(token=b"caf\xe9")), unix) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=["the socket", "a URL", "the URL of /mcp"])
def place(request: pytest.FixtureRequest, url: str, unix: Path) -> Place:
    TOY.refusal = TOY.export_ends_with = None
    TOY.notes.clear()
    TOY.asked.clear()
    if request.param == "the socket":
        return Place(socket=unix)
    return Place(url=url if request.param == "a URL" else f"{url}/mcp/all", token=b"caf\xe9")


@pytest.fixture
def told() -> Told:
    return []


def tell(told: Told) -> Any:
    return lambda done, total, sentence: told.append((done, total, sentence))


def silent(done: float, total: float, sentence: str) -> None:
    pass


def test_a_verb_is_asked_with_its_arguments(place: Place):
    assert ask(place, "echo", {"a": "ü"}, silent) == {"echo": {"a": "ü"}}


def test_a_verb_s_progress_is_told_and_its_result_returned(place: Place, told: Told):
    assert ask(place, "steps", {}, tell(told)) == {"counted": 1000}
    assert told[0] == (0, 1000, "counting")


@pytest.mark.parametrize("verb", ["refuse", "refuse-late"])
def test_a_refusal_is_the_error_of_that_code_whenever_it_comes(place: Place, verb: str):
    TOY.refusal = Conflict("somebody was faster", current_revision=7)
    with pytest.raises(Conflict, match="somebody was faster") as refused:
        ask(place, verb, {}, silent)
    assert refused.value.details == {"current_revision": 7}


def test_a_verb_that_breaks_off_has_an_unknown_outcome(place: Place):
    with pytest.raises(CallFailed, match="broke off in the middle"):
        ask(place, "break", {}, silent)


def test_without_the_token_nothing_is_answered(url: str):
    with pytest.raises(Forbidden):
        ask(Place(url=url), "echo", {}, silent)
    with pytest.raises(Forbidden):
        download(Place(url=url), "/export")
    with pytest.raises(Forbidden):
        upload(Place(url=url), "/import", [b"one\n"], 4, silent)


def test_a_download_is_the_body_in_pieces(place: Place):
    TOY.notes[:] = ["x" * MIB, "ü", ""]
    *pieces, last = download(place, "/export")
    assert b"".join([*pieces, last]) == b"x" * MIB + b"\n\xc3\xbc\n\n"
    assert {len(piece) for piece in pieces} == {PIECE_BYTES}
    assert 0 < len(last) < PIECE_BYTES


def test_an_empty_download_is_whole(place: Place):
    assert b"".join(download(place, "/export")) == b""


def test_a_download_is_refused_before_its_first_piece(place: Place):
    TOY.refusal = Busy("an import is at work", retry_after_ms=1_000)
    with pytest.raises(Busy, match="an import is at work"):
        download(place, "/export")


def test_a_download_that_breaks_off_is_not_taken_for_whole(place: Place):
    TOY.notes[:] = ["one", "two"]
    TOY.export_ends_with = StoreFailed("the index is gone")
    with pytest.raises(CallFailed):
        list(download(place, "/export"))


def test_an_upload_is_told_by_bytes_and_answered_with_facts(place: Place, told: Told):
    pieces = [b"x" * 99 + b"\n"] * 3
    assert upload(place, "/import?policy=overwrite", pieces, 300, tell(told)) == {"taken": 3}
    assert TOY.asked == [{"policy": "overwrite"}]
    assert told == [
        (100, 300, "sending"),
        (200, 300, "sending"),
        (300, 300, "sending"),
        (0, 0, "waiting for the answer"),
    ]


def test_behind_an_upload_the_daemon_may_think_as_long_as_it_needs(place: Place, monkeypatch: pytest.MonkeyPatch):
    connections: list[HTTPConnection] = []

    def watched(place: Place) -> tuple[HTTPConnection, str]:
        connections.append(call.connection_to(place)[0])
        return connections[0], ""

    def look(done: float, total: float, sentence: str) -> None:
        waits.append(connections[0].sock.gettimeout())

    waits: list[float | None] = []
    monkeypatch.setattr(streaming, "connection_to", watched)
    upload(place, "/import", [b"one\n"], 4, look)
    assert waits == [call.ANSWER_WAIT_S, None]


def test_an_empty_upload_is_an_empty_body(place: Place):
    assert upload(place, "/import", [], 0, silent) == {"taken": 0}


def test_an_upload_is_kept_back_once_the_daemon_has_refused_it(place: Place):
    """A daemon that has seen a bad line reads no file of some gigabytes to its end, nor need one be sent."""
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        yield b"one\nbad\n"
        for _ in range(50_000):
            sent += 1
            yield b"x" * 65_536

    with pytest.raises(Conflict) as refused:
        upload(place, "/import", pieces(), 8 + 50_000 * 65_536, silent)
    assert refused.value.details["line"] == 2
    assert sent < 50_000


def test_what_keeps_an_upload_from_being_read_is_told_as_it_is(place: Place):
    def pieces() -> Iterator[bytes]:
        yield b"one\n"
        raise ValueError("the file is gone")

    with pytest.raises(ValueError, match="the file is gone"):
        upload(place, "/import", pieces(), 1000, silent)
    assert TOY.notes == []


def test_nobody_at_the_socket_is_for_the_caller_to_act_on(tmp_path: Path):
    nowhere = Place(socket=tmp_path / "convmem.sock")
    with pytest.raises(FileNotFoundError):
        ask(nowhere, "echo", {}, silent)
    with pytest.raises(FileNotFoundError):
        download(nowhere, "/export")
    with pytest.raises(FileNotFoundError):
        upload(nowhere, "/import", [], 0, silent)


def test_nobody_at_a_url_is_said_in_one_sentence():
    nowhere = Place(url="http://127.0.0.1:1", token=b"s3cret")
    with pytest.raises(CallFailed, match=r"no answer from http://127\.0\.0\.1:1: ") as failed:
        ask(nowhere, "echo", {}, silent)
    assert "s3cret" not in str(failed.value)


STREAM = head("200 OK", "transfer-encoding: chunked")
BROKEN = {
    "no line": STREAM + chunked(b""),
    "only progress": STREAM + chunked(b'{"progress": {"done": 1, "total": 2, "message": "m"}}\n'),
    "half a line": STREAM + chunked(b'{"result": {"a"'),
    "a chunk cut short": STREAM + chunked(b'{"progress": {}}\n', is_ended=False) + b"ff\r\n{",
    "no end of the chunks": STREAM + chunked(b'{"progress": {}}\n', is_ended=False),
    "no JSON": STREAM + chunked(b"<html>\n"),
    "no object": STREAM + chunked(b"[]\n"),
    "another object": STREAM + chunked(b'{"later": {}}\n'),
    "nothing at all": b"",
    "no HTTP": b"hello\r\n\r\n",
    "a status that is not ours": head("502 Bad Gateway", "content-length: 6") + b"<html>",
    "an error without a code": head("500 Oops", "content-length: 13") + b'{"error": {}}',
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_a_verb_without_a_result_is_never_taken_for_done(answer: bytes):
    with scripted(answer) as server, pytest.raises(CallFailed):
        ask(Place(url=server.url), "echo", {}, silent)


def test_an_error_that_came_later_than_this_program_is_told_by_its_code():
    error = json.dumps({"error": {"code": "LATER_CODE", "message": "new"}}).encode()
    with scripted(STREAM + chunked(error + b"\n")) as server, pytest.raises(CallFailed, match="LATER_CODE: new"):
        ask(Place(url=server.url), "echo", {}, silent)


def test_busy_needs_no_details():
    error = b'{"error": {"code": "BUSY", "message": "too many"}}'
    answer = head("503 Service Unavailable", f"content-length: {len(error)}") + error
    with scripted(answer) as server, pytest.raises(Busy, match="too many"):
        ask(Place(url=server.url), "echo", {}, silent)


CUT = {
    "in a chunk": STREAM + b"ff\r\nabc",
    "between chunks": STREAM + chunked(b"abc", is_ended=False),
    "before its length": head("200 OK", "content-length: 9") + b"abc",
    "with no length": head("200 OK") + b"abc",
}


@pytest.mark.parametrize("answer", CUT.values(), ids=CUT)
def test_a_download_is_whole_only_if_its_end_was_seen(answer: bytes):
    with scripted(answer) as server, pytest.raises(CallFailed, match="broke off in the middle"):
        list(download(Place(url=server.url), "/export"))


def test_a_path_before_mcp_belongs_to_a_proxy():
    answer = head("200 OK", "content-length: 3") + b"abc"
    with scripted(answer) as server:
        assert b"".join(download(Place(url=f"{server.url}/memory/mcp"), "/export")) == b"abc"
    assert server.asked[0].startswith(b"GET /memory/export HTTP/1.1\r\n")


def test_an_upload_whose_answer_is_no_object_has_failed():
    answer = head("200 OK", "content-length: 2") + b"[]"
    with scripted(answer) as server, pytest.raises(CallFailed, match="without facts"):
        upload(Place(url=server.url), "/import", [], 0, silent)
    with scripted(b"") as server, pytest.raises(CallFailed, match="no answer from"):
        upload(Place(url=server.url), "/import", [], 0, silent)


def interrupt(done: float, total: float, sentence: str) -> None:
    raise KeyboardInterrupt


def test_whoever_leaves_the_daemon_to_its_work_is_told_that_it_goes_on(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(KeyboardInterrupt):
        ask(place, "steps", {}, interrupt)
    assert capsys.readouterr().err == "convmem: the daemon goes on with it\n"


@pytest.mark.parametrize(
    ("at", "sentence"), [("sending", " if it has all of the file"), ("waiting for the answer", "")]
)
def test_whoever_leaves_an_upload_is_told_what_becomes_of_it(
    place: Place, capsys: pytest.CaptureFixture[str], at: str, sentence: str
):
    def leave(done: float, total: float, told: str) -> None:
        if told == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        upload(place, "/import", iter([b"{}\n"]), 3, leave)
    assert capsys.readouterr().err == f"convmem: the daemon goes on with it{sentence}\n"
