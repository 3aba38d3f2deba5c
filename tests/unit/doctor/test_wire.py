"""doctor/wire: an exchange that ends at its deadline, and what an answer says."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from convmem.clock import SystemClock
from convmem.doctor.wire import Answer, Deadline, Exchanger, Line, NoAnswer
from convmem.limits import DOCTOR_ANSWER_BYTES_MAX
from tests.support import relays
from tests.support.manual_clock import ManualClock
from tests.support.relays import answering, page

pytestmark = pytest.mark.slow
STEP_MS = 300


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as open_ones:
        yield open_ones


def exchanger(port: int, token: bytes | None = None) -> Exchanger:
    return Exchanger(Line(socket.AF_INET, ("127.0.0.1", port), token=token), SystemClock(), STEP_MS)


def test_a_deadline_is_over_when_its_time_is():
    clock = ManualClock()
    deadline = Deadline(clock, 500)
    clock.pass_ms(400)
    assert deadline.left_s() == pytest.approx(0.1)
    clock.pass_ms(100)
    with pytest.raises(TimeoutError):
        deadline.left_s()


def test_what_keeps_an_answer_away_is_told_apart(stack: ExitStack):
    ports = {
        "silent": [stack.enter_context(relays.silent()).port, stack.enter_context(relays.dripping()).port],
        "closed": [
            stack.enter_context(relays.resetting()).port,
            stack.enter_context(answering(lambda request: b"")).port,
            stack.enter_context(answering(lambda request: page("200 OK")[:-4])).port,
        ],
        "foreign": [stack.enter_context(answering(lambda request: b"220 mail.example ESMTP\r\n")).port],
    }
    for how, those in ports.items():
        for port in those:
            with pytest.raises(NoAnswer) as none:
                exchanger(port).ask("GET", "/")
            assert none.value.how == how, port


def test_headers_and_token_go_out_once_and_only_where_they_are_meant_to(stack: ExitStack):
    server = stack.enter_context(answering(lambda request: page("200 OK", b"{}", kind=b"application/json")))
    asked = exchanger(server.port, token=b"caf\xe9")
    asked.call("ping", headers={"Accept": "text/event-stream"})
    asked.call("ping", bears_token=False)
    bearing, bare = server.asked
    assert b"\r\nAuthorization: Bearer caf\xe9\r\n" in bearing
    assert bearing.count(b"Accept: ") == 1
    assert b"\r\nAccept: text/event-stream\r\n" in bearing
    assert b"uthorization" not in bare
    assert bare.endswith(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
    assert "caf" not in repr(asked.line)


def test_an_endless_answer_is_read_to_a_bound(stack: ExitStack):
    body = b"x" * (2 * DOCTOR_ANSWER_BYTES_MAX)
    server = stack.enter_context(answering(lambda request: page("200 OK", body)))
    answer = Exchanger(Line(socket.AF_INET, ("127.0.0.1", server.port)), SystemClock()).ask("GET", "/")
    assert len(answer.body) == DOCTOR_ANSWER_BYTES_MAX


def told(body: bytes, status: int = 200, kind: str = "application/json") -> Answer:
    return Answer(status, {"content-type": f"{kind}; charset=utf-8"}, body, 0)


def test_a_message_is_read_of_json_and_of_the_last_event_of_a_stream():
    message = b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'
    assert told(message).result == {"a": 1}
    stream = b'event: message\r\ndata: {"jsonrpc":"2.0"}\r\n\r\nevent: message\r\ndata: %b\r\n\r\n' % message
    assert told(stream, kind="text/event-stream").result == {"a": 1}
    for other in (b"", b"[]", b"<html>", b'{"result":{"a":1}}', b'{"jsonrpc":"2.0","result":[]}'):
        assert told(other).result == {}
    assert told(message, status=500).result == {}


def test_a_refusal_is_one_of_ours_in_either_shape():
    assert told(b'{"error":{"code":"FORBIDDEN","message":"no","retryable":false}}').refusal == "no"
    rpc = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no","data":{"code":"FORBIDDEN"}}}'
    assert told(rpc).refusal == "no"
    for other in (b"{}", b'{"error":"no"}', b'{"error":{"code":404,"message":"no"}}', b"null", b"x"):
        assert told(other).refusal == ""
