"""cli/search: what is found, as lines, as a table or as JSON."""

import json
from pathlib import Path

import pytest

from convmem.cli import run
from tests.support.written import Written

pytestmark = pytest.mark.slow


def test_a_result_is_a_line_with_time_role_session_id_and_snippet(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "--match", "exact", "behind the shed"], written.environment, Path("/")) == 0
    time, role, session, message_id, snippet = capsys.readouterr().out.rstrip("\n").split("\t")
    assert time.endswith("Z")
    assert (role, session, message_id) == ("user", "garden", written.message_ids[0])
    assert snippet == r"The tomatoes go\nbehind the shed.\x1b[2J"


def test_any_substring_in_any_script_is_found(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "味"], written.environment, Path("/")) == 0
    assert written.message_ids[2] in capsys.readouterr().out


def test_what_is_absent_is_no_line_and_no_failure_but_said(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "nowhere to be found"], written.environment, Path("/")) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "nothing found\n")


def test_a_query_that_is_not_utf_8_is_wrong_usage(written: Written, capsys: pytest.CaptureFixture[str]):
    query = b"caf\xe9".decode(errors="surrogateescape")
    assert run(["search", query], written.environment, Path("/")) == 2
    assert "not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (["--project", "house"], 1),
        (["--project", "other"], 0),
        (["--session", "cat", "--role", "user", "--tag", "pet"], 1),
        (["--role", "assistant"], 0),
        (["--limit", "1"], 1),
    ],
)
def test_filters_narrow(written: Written, capsys: pytest.CaptureFixture[str], filters: list[str], count: int):
    assert run(["search", *filters, "Miso"], written.environment, Path("/")) == 0
    assert capsys.readouterr().out.count("\n") == count


def test_as_json_it_is_what_the_tool_answers(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "--json", "Miso"], written.environment, Path("/")) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["complete"] is True
    assert [found["message_id"] for found in facts["results"]] == [written.message_ids[2]]


def test_a_query_that_looks_like_an_option_follows_two_dashes(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "--", "--bind"], written.environment, Path("/")) == 0
    assert capsys.readouterr().out == ""
