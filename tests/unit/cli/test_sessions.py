"""cli/sessions: conversations, newest first."""

import json
from pathlib import Path

import pytest

from convmem.cli import run
from tests.support.written import Written

pytestmark = pytest.mark.slow


def test_a_session_is_a_line_with_time_count_id_and_summary(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["sessions"], written.environment, Path("/")) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[1:3] for line in lines] == [["1", "cat"], ["2", "garden"]]
    assert lines[0][3] == "Miso 味噌"
    assert lines[1][3].startswith(r"The tomatoes go\nbehind")


def test_only_those_of_a_project(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["sessions", "--project", "house"], written.environment, Path("/")) == 0
    assert [line.split("\t")[2] for line in capsys.readouterr().out.splitlines()] == ["cat"]


def test_as_json_it_is_what_the_tool_answers(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["sessions", "--json", "--limit", "1"], written.environment, Path("/")) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [found["session_id"] for found in facts["sessions"]] == ["cat"]
    assert facts["next_cursor"]
