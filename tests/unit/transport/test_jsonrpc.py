"""Tests of JSON-RPC: what is a message, and what every other text is answered with."""

import json
from typing import Any

import pytest

from convmem.transport import jsonrpc
from convmem.transport.jsonrpc import INVALID_REQUEST, PARSE_ERROR, Notification, Refused, Request, Response

READ = {
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}': Request(1, "ping", None),
    b'{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}': Request("a", "ping", {}),
    b'{"jsonrpc":"2.0","id":0,"method":"ping","params":null}': Request(0, "ping", None),
    b'{"jsonrpc":"2.0","method":"n","params":{"a":[1]}}': Notification("n", {"a": [1]}),
    b' {"jsonrpc":"2.0","id":7,"result":{}} ': Response(),
    b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}': Response(),
}
UNREADABLE = [
    *(b"", b" ", b"{", b"{nope", b"nope", b"{}{}", b'{"a":1}\n{"a":2}', b'{"jsonrpc":"2.0","id":1,"id":2}', b"\x00"),
    *(
        b"\xef\xbb\xbf{}",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1e400}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":"\xff"}',
    ),
    *(
        b'{"a":"\\ud83d"}',
        b'{"\\ud800":1}',
        b"[" * 100_000,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        '{"a":1}'.encode("utf-16"),
    ),
]
NO_MESSAGE: dict[bytes, Any] = {
    b"[]": None,
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]': None,
    b'"ping"': None,
    b"5": None,
    b"null": None,
    b"{}": None,
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}': None,
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}': None,
    b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}': None,
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}': None,
    b'{"jsonrpc":"2.0","id":[1],"method":"ping"}': None,
    b'{"jsonrpc":"2.0","id":3}': 3,
    b'{"jsonrpc":"1.0","id":3,"method":"ping"}': 3,
    b'{"id":"a","method":"ping"}': "a",
    b'{"jsonrpc":"2.0","id":3,"method":5}': 3,
    b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}': 3,
    b'{"jsonrpc":"2.0","method":"n","params":"x"}': None,
}


@pytest.mark.parametrize(("text", "message"), READ.items())
def test_a_message_is_read(text: bytes, message: Any):
    found = jsonrpc.read(text)
    assert (type(found), found) == (type(message), message)


@pytest.mark.parametrize("text", UNREADABLE, ids=lambda text: ascii(text[:40]))
def test_what_is_no_json_by_our_rules_is_a_parse_error_without_an_id(text: bytes):
    with pytest.raises(Refused) as refused:
        jsonrpc.read(text)
    assert (refused.value.code, refused.value.status) == (PARSE_ERROR, 400)
    assert json.loads(jsonrpc.error(refused.value))["id"] is None


@pytest.mark.parametrize(("text", "request_id"), NO_MESSAGE.items())
def test_what_is_no_message_is_an_invalid_request_with_the_id_if_it_could_be_read(text: bytes, request_id: Any):
    with pytest.raises(Refused) as refused:
        jsonrpc.read(text)
    assert (refused.value.code, refused.value.status) == (INVALID_REQUEST, 400)
    assert json.loads(jsonrpc.error(refused.value))["id"] == request_id


def test_answers_carry_the_id_in_its_own_type():
    assert jsonrpc.result("1", {}) == b'{"jsonrpc":"2.0","id":"1","result":{}}'
    assert jsonrpc.error(Refused(-1, "no", {"a": 1}), 0) == (
        b'{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no","data":{"a":1}}}'
    )


@pytest.mark.parametrize(
    ("params", "token"),
    [
        (None, None),
        ({}, None),
        ({"_meta": None}, None),
        ({"_meta": {}}, None),
        ({"_meta": {"progressToken": True}}, None),
        ({"_meta": {"progressToken": 1.5}}, None),
        ({"_meta": {"progressToken": 0}}, 0),
        ({"_meta": {"progressToken": "t"}}, "t"),
    ],
)
def test_a_progress_token_is_a_string_or_an_integer(params: Any, token: Any):
    assert jsonrpc.progress_token(params) == token


async def test_progress_only_ever_rises_and_ends_with_the_answer():
    sent: list[Any] = []

    async def send(text: bytes) -> None:
        sent.append(json.loads(text))

    reporter = jsonrpc.Reporter("t", send)
    for done in (0, 1, 1, 0.5, 2):
        await reporter.report(done, 2, "going on")
    reporter.end()
    await reporter.report(3, 3, "too late")
    assert [message["params"]["progress"] for message in sent] == [0, 1, 2]
    assert sent[0] == {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": "t", "progress": 0, "total": 2, "message": "going on"},
    }
