"""hooks/posting: one request in its time, and only a whole answer of ours is believed."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from convmem import clock
from convmem.hooks.posting import NO_ANSWER, NOT_ASKED, OK, Outcome, deliver
from convmem.hooks.target import Target, address_of
from tests.support.hook_server import HookServer, hook_server, refusal, response, saying

EVENT = b'{"event_id":"e","session_id":"s","kind":"prompt","content":"hello"}'
BAD = EVENT.replace(b"hello", b"bad").replace(b'"e"', b'"f"')
SPOOL = {"depth": 3, "oldest_at": 5, "dropped": 2, "dropped_since": 4}
TAKEN = b'{"stored":1,"replayed":0,"dropped":[]}'
WAIT_MS = 5_000


@pytest.fixture
def server() -> Iterator[HookServer]:
    with hook_server() as running:
        yield running


def target(server: HookServer, path: str = "", **environment: str) -> Target:
    return Target(address_of(server.url + path), "", environment, "")


def asked(server: HookServer, *events: bytes, wait_ms: int = WAIT_MS) -> Outcome:
    return deliver(target(server), events or (EVENT,), SPOOL, wait_ms, clock.SystemClock())


def test_events_arrive_with_what_the_spool_says(server: HookServer):
    assert asked(server) == Outcome(OK)
    assert server.bodies == [{"events": [json.loads(EVENT)], "spool": SPOOL}]
    head = server.heads[0].split(b"\r\n")
    assert head[0] == b"POST /capture HTTP/1.1"
    assert b"Host: " + server.url.removeprefix("http://").encode() in head
    assert b"Content-Type: application/json" in head
    assert not [line for line in head if line.lower().startswith(b"authorization")]


def test_without_a_spool_nothing_is_said_of_one(server: HookServer):
    assert deliver(target(server), [EVENT], None, WAIT_MS, clock.SystemClock()).status == OK
    assert server.bodies == [{"events": [json.loads(EVENT)]}]


def test_the_token_goes_with_it_byte_by_byte_and_a_prefix_before_the_path(server: HookServer):
    found = target(server, "/behind/a/proxy/mcp", CONVMEM_TOKEN="caf\udcc3\udca9")
    assert deliver(found, [EVENT], SPOOL, WAIT_MS, clock.SystemClock()).status == OK
    head = server.heads[0].split(b"\r\n")
    assert head[0] == b"POST /behind/a/proxy/capture HTTP/1.1"
    assert b"Authorization: Bearer caf\xc3\xa9" in head


def test_the_local_socket_is_told_no_token(tmp_path: Path):
    with hook_server(tmp_path / "convmem.sock") as server:
        found = Target(None, str(tmp_path), {"CONVMEM_TOKEN": "secret"}, "")
        assert deliver(found, [EVENT], SPOOL, WAIT_MS, clock.SystemClock()) == Outcome(OK)
        assert b"secret" not in server.heads[0]


def test_where_the_socket_is_of_no_use_the_address_in_the_lock_is(tmp_path: Path, server: HookServer):
    left_behind = socket.socket(socket.AF_UNIX)
    left_behind.bind(str(tmp_path / "convmem.sock"))
    left_behind.close()
    (tmp_path / "store.lock").write_text(json.dumps({"pid": 1, "url": server.url + "/mcp"}))
    assert deliver(Target(None, str(tmp_path), {}, ""), [EVENT], SPOOL, WAIT_MS, clock.SystemClock()) == Outcome(OK)
    assert server.contents() == ["hello"]


def test_what_the_daemon_will_never_take_is_counted_but_not_what_says_nothing(server: HookServer):
    assert asked(server, EVENT, BAD) == Outcome(OK, refused=1)
    server.answer = saying(response(200, b'{"stored":0,"replayed":1,"dropped":[{"index":0,"code":"BLANK"}]}'))
    assert asked(server) == Outcome(OK)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 415, 421, 500, 503, 507])
def test_a_refusal_is_its_status(server: HookServer, status: int):
    server.answer = refusal(status)
    found = asked(server)
    assert (found.status, found.refused, found.retry_after_ms) == (status, 0, 0)
    assert found.reason == f"{server.url} answered {status}"


@pytest.mark.parametrize(("text", "wait_ms"), [("2", 2_000), ("999999999", 60_000), ("Wed, 21 Oct", 0), ("-1", 0)])
def test_how_long_it_wants_to_be_left_alone_is_bounded(server: HookServer, text: str, wait_ms: int):
    server.answer = refusal(503, f"Retry-After: {text}")
    assert asked(server).retry_after_ms == wait_ms


@pytest.mark.parametrize(
    "answer",
    [
        response(200, TAKEN),
        response(200, TAKEN, "X-Other: 1", "x-other: 2"),
        b"HTTP/1.0 200 OK\r\n\r\n" + TAKEN,
        b"HTTP/1.1 200\r\ncontent-length: %d\r\n\r\n" % len(TAKEN) + TAKEN + b"left over",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\n" + TAKEN[:5] + b"\r\n%x\r\n" % (len(TAKEN) - 5)
        + TAKEN[5:] + b"\r\n0\r\n\r\n",
    ],
)  # fmt: skip
def test_a_whole_answer_is_believed_however_it_is_delimited(server: HookServer, answer: bytes):
    server.answer = saying(answer)
    assert asked(server) == Outcome(OK)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"H",
        b"garbage\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n" + TAKEN,
        b"HTTP/1.1 2000 OK\r\n\r\n" + TAKEN,
        b"HTTP/1.1 ok\r\n\r\n" + TAKEN,
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n" + TAKEN,
        b"HTTP/1.1 200 OK\r\n : x\r\n\r\n" + TAKEN,
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 38\r\n\r\n" + TAKEN,
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + TAKEN,
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + TAKEN,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + TAKEN[:5] + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 40_000 + b"\r\n\r\n" + TAKEN,
        b"HTTP/1.1 200 OK\r\n" + b"x" * 40_000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 1_200_000 + TAKEN,
        response(200, b"<html>sign in to this network</html>"),
        response(200, b"{}"),
        response(200, b'{"stored":"1","dropped":[]}'),
        response(200, b'{"stored":1,"dropped":[7]}'),
        response(200, b'{"stored":1,"dropped":7}'),
        response(200, b'{"stored":1,"stored":2,"dropped":[]}'),
    ],
)
def test_anything_else_is_no_answer(server: HookServer, answer: bytes):
    server.answer = saying(answer)
    found = asked(server)
    assert (found.status, found.refused) == (NO_ANSWER, 0)
    assert found.reason


def test_a_daemon_that_takes_its_time_is_not_waited_for(server: HookServer):
    server.wait_s = 20
    begun = clock.SystemClock().monotonic_ms()
    assert asked(server, wait_ms=30).reason.endswith("it took too long")
    assert clock.SystemClock().monotonic_ms() - begun < 5_000


def test_an_answer_that_drips_is_not_waited_for_piece_by_piece():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        has_ended = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                while not has_ended.wait(0.01):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        found = Target(address_of(f"http://127.0.0.1:{listener.getsockname()[1]}"), "", {}, "")
        outcome = deliver(found, [EVENT], SPOOL, 100, clock.SystemClock())
        has_ended.set()
        thread.join()
    assert outcome.status == NO_ANSWER
    assert outcome.reason.endswith("it took too long")


def test_one_that_reads_nothing_is_not_waited_for(tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "convmem.sock"))
        listener.listen()
        events = [EVENT.replace(b"hello", b"x" * 900_000)]
        found = deliver(Target(None, str(tmp_path), {}, ""), events, SPOOL, 50, clock.SystemClock())
        assert found.status == NO_ANSWER


def test_where_nobody_listens_that_is_said(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    found = deliver(Target(address_of(f"http://127.0.0.1:{port}"), "", {}, ""), [EVENT], None, 50, clock.SystemClock())
    assert found == Outcome(NOT_ASKED, reason=f"nobody listens at http://127.0.0.1:{port}")
    nothing = Target(None, str(tmp_path / ("d" * 120)), {}, "")
    assert deliver(nothing, [EVENT], None, 50, clock.SystemClock()).reason == "no daemon is running"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 70 + ".example"])
def test_a_host_that_has_no_address_is_no_answer(host: str):
    found = deliver(Target(address_of(f"http://{host}"), "", {}, ""), [EVENT], None, 2_000, clock.SystemClock())
    assert found.status == NO_ANSWER


def test_a_token_that_cannot_be_read_keeps_the_events(server: HookServer, tmp_path: Path):
    found = Target(address_of(server.url), "", {}, str(tmp_path / "token"))
    outcome = deliver(found, [EVENT], None, WAIT_MS, clock.SystemClock())
    assert outcome == Outcome(NOT_ASKED, reason="the token file is not there")
    assert server.bodies == []


def test_a_certificate_that_nobody_vouches_for_is_no_answer(server: HookServer):
    found = Target(address_of(server.url.replace("http", "https")), "", {}, "")
    outcome = deliver(found, [EVENT], None, 1_000, clock.SystemClock())
    assert outcome.status == NO_ANSWER
    assert ssl.create_default_context().verify_mode == ssl.CERT_REQUIRED
