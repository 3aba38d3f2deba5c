"""calls: one line a call, whatever became of it, and nothing of what was said."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from convmem.cli import journal
from convmem.domain import Origin
from convmem.transport import calls

LAPTOP = Origin("laptop", "http", "claude-code")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """A journal of JSON lines; the one of the tests is back behind it."""
    handlers, level = logging.root.handlers[:], logging.root.level
    own = logging.getLogger("convmem").level
    journal.begin("json", written := io.StringIO())
    yield written
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    logging.getLogger("convmem").setLevel(own)


def line_of(stream: io.StringIO) -> dict[str, object]:
    (line,) = stream.getvalue().splitlines()
    facts: dict[str, object] = json.loads(line)
    return facts


async def test_a_call_is_one_line_that_says_who_what_and_how_long(stream: io.StringIO):
    with calls.told("recall", LAPTOP, 17) as call:
        call.outcome = "ok"
    line = line_of(stream)
    ms = line.pop("ms")
    assert isinstance(ms, int)
    assert ms >= 0
    assert line.pop("event") == f"recall from laptop (claude-code) request 17: ok in {ms} ms"
    assert {name: line[name] for name in ("request", "device", "client", "tool", "outcome")} == {
        "request": 17,
        "device": "laptop",
        "client": "claude-code",
        "tool": "recall",
        "outcome": "ok",
    }


async def test_a_call_that_ends_by_a_fault_or_is_cancelled_is_told_too(stream: io.StringIO):
    for fault in (ZeroDivisionError, asyncio.CancelledError):
        stream.truncate(stream.seek(0))
        with pytest.raises(fault), calls.told("recall", LAPTOP, "a"):
            raise fault
        assert line_of(stream)["outcome"] == calls.UNANSWERED


async def test_the_id_of_a_request_is_cut_and_cannot_forge_a_line(stream: io.StringIO):
    with calls.told("recall", LAPTOP, "\n\u202e" + "x" * 10_000) as call:
        call.outcome = "ok"
    assert "\u202e" not in stream.getvalue()
    assert len(stream.getvalue()) < 2_000
    assert str(line_of(stream)["request"]).startswith("\n\u202exxx")


async def test_without_an_id_or_a_client_the_line_names_neither(stream: io.StringIO):
    with calls.told("capture", Origin("local", "socket")) as call:
        call.outcome = "BUSY"
    assert str(line_of(stream)["event"]).startswith("capture from local: BUSY in ")
