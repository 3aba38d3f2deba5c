"""cli/show: a message whole, or a conversation from its beginning."""

import json
from pathlib import Path

import pytest

from convmem.cli import run
from tests.support.written import LONG, MESSAGES, Written

pytestmark = pytest.mark.slow


def test_a_long_message_is_shown_whole(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["show", written.message_ids[1].lower()], written.environment, Path("/")) == 0
    head, *content = capsys.readouterr().out.split("\n")
    assert head.endswith(f"assistant  garden  {written.message_ids[1]}")
    assert content == [LONG, ""]


def test_a_session_is_shown_in_its_order(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["show", "garden"], written.environment, Path("/")) == 0
    shown = capsys.readouterr().out
    first, second = (shown.index(message_id) for message_id in written.message_ids[:2])
    assert first < second
    assert "The tomatoes go\nbehind the shed.\\x1b[2J\n" in shown


def test_as_json_each_message_is_a_line_with_its_content_as_written(
    written: Written, capsys: pytest.CaptureFixture[str]
):
    assert run(["show", "--json", "garden"], written.environment, Path("/")) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["content"] for line in lines] == [message["content"] for message in MESSAGES[:2]]
    assert all("content_preview" not in line for line in lines)


@pytest.mark.parametrize("wanted", ["nothing", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "x" * 26])
def test_what_is_neither_is_a_failure(written: Written, capsys: pytest.CaptureFixture[str], wanted: str):
    assert run(["show", wanted], written.environment, Path("/")) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("convmem: NOT_FOUND: ")
