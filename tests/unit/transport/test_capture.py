"""Tests of what hooks send, over a real server with a toy behind."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from convmem.domain import Origin
from convmem.errors import Busy, ConvmemError, Invalid, StorageFull, StoreFailed
from convmem.limits import BODY_BYTES_MAX
from convmem.transport import http
from convmem.transport.gate import Settings
from tests.support.served import served_in_thread
from tests.support.toy import Toy, toy_catalog

TOY = Toy()
BEARER = {"authorization": "Bearer geheim"}
BODY = {"events": [{"event_id": "1"}, {"event_id": "2"}]}


@pytest.fixture(scope="module")
def unix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "convmem.sock"


@pytest.fixture(scope="module")
def client(unix: Path) -> Iterator[httpx.Client]:
    application = http.build(toy_catalog, TOY, Settings(token=b"geheim"))
    with (
        served_in_thread(application, unix) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=BEARER, trust_env=False) as client,
    ):
        yield client


@pytest.fixture
def toy() -> Toy:
    TOY.refusal = None
    TOY.asked.clear()
    TOY.origins.clear()
    return TOY


@pytest.fixture(autouse=True)
def nothing_is_a_fault(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_the_body_is_handed_on_with_who_sent_it(client: httpx.Client, toy: Toy, unix: Path):
    answer = client.post("/capture", json=BODY, headers={"user-agent": "hook/1"})
    assert (answer.status_code, answer.json()) == (200, {"stored": 2, "replayed": 0, "dropped": []})
    with httpx.Client(base_url="http://any.name", transport=httpx.HTTPTransport(uds=str(unix))) as local:
        assert local.post("/capture", json=BODY, headers={"user-agent": "hook/2"}).status_code == 200
    assert toy.asked == [BODY, BODY]
    assert toy.origins == [Origin("env", "http", "hook/1"), Origin("local", "socket", "hook/2")]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Invalid("wrong", field="events"), 400),
        (Busy("the mailbox is full", retry_after_ms=100), 503),
        (StorageFull("the disk took no more", retry_after_ms=5_000), 507),
        (StoreFailed("stopped"), 500),
    ],
)
def test_a_refusal_is_told_by_its_status_and_says_when_to_come_again(
    client: httpx.Client, toy: Toy, error: ConvmemError, status: int
):
    toy.refusal = error
    answer = client.post("/capture", json=BODY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, error.code)
    assert ("retry-after" in answer.headers) == (status in (503, 507))


def test_whoever_has_no_token_is_not_heard(client: httpx.Client, toy: Toy):
    answer = client.post("/capture", json=BODY, headers={"authorization": "Bearer other"})
    assert (answer.status_code, toy.asked) == (401, [])


@pytest.mark.parametrize(
    ("request_of", "status"),
    [
        ({"method": "GET"}, 405),
        ({"method": "POST", "content": b"{", "headers": {"content-type": "application/json"}}, 400),
        ({"method": "POST", "content": b"[]", "headers": {"content-type": "application/json"}}, 400),
        ({"method": "POST", "content": b'{"a":1,"a":2}', "headers": {"content-type": "application/json"}}, 400),
        ({"method": "POST", "content": b"{}", "headers": {"content-type": "text/plain"}}, 415),
        ({"method": "POST", "json": {}, "params": {"x": "1"}}, 400),
        (
            {"method": "POST", "content": b"x" * (BODY_BYTES_MAX + 1), "headers": {"content-type": "application/json"}},
            413,
        ),
    ],
)
def test_what_is_no_request_for_it_is_refused(client: httpx.Client, toy: Toy, request_of: dict[str, Any], status: int):
    answer = client.request(url="/capture", **request_of)
    assert (answer.status_code, toy.asked) == (status, [])
    assert answer.json()["error"]["code"] in {"VALIDATION_ERROR", "CONTENT_TOO_LARGE"}
