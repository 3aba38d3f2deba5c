"""cli/search: what is found, as lines, on a terminal or as JSON; filters, times and explanations."""

import json
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from convmem.cli import run
from convmem.cli.explaining import STAGES
from tests.support.commands import command, ran
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


@pytest.mark.parametrize(
    ("arguments", "shown"), [([], "QUERY"), (["Miso", "--tag"], "--tag"), (["x", "--session"], "--session")]
)
def test_text_that_is_not_utf_8_is_wrong_usage(
    written: Written, capsys: pytest.CaptureFixture[str], arguments: list[str], shown: str
):
    text = b"caf\xe9".decode(errors="surrogateescape")
    assert run(["search", *arguments, text], written.environment, Path("/")) == 2
    assert f"{shown} is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (["--project", "house"], 1),
        (["--project", "other"], 0),
        (["--session", "cat", "--role", "user", "--tag", "pet"], 1),
        (["--role", "assistant"], 0),
        (["--limit", "1"], 1),
        (["--kind", "conversation", "--tier", "mid", "--min-importance", "0"], 1),
        (["--kind", "semantic"], 0),
        (["--tier", "long"], 0),
        (["--min-importance", "1"], 0),
        (["--since", "2001-01-31", "--until", "2999-01-31T08:00"], 1),
        (["--since", "2999-01-31"], 0),
        (["--until", "20010131"], 0),
        (["--since", "0", "--until", "999999999999"], 0),
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


def test_a_result_comes_with_its_neighbours_if_they_are_asked_for(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "--context-after", "1", "behind the shed"], written.environment, Path("/")) == 0
    found, after = capsys.readouterr().out.splitlines()
    assert written.message_ids[0] in found
    assert after.startswith("\tafter\t")
    assert written.message_ids[1] in after


@pytest.mark.parametrize("arguments", [["--kind", "x"], ["--context-before", "-1"], ["--context-after", "11"]])
def test_what_a_filter_cannot_be_is_refused_by_the_tool(
    written: Written, capsys: pytest.CaptureFixture[str], arguments: list[str]
):
    assert run(["search", *arguments, "Miso"], written.environment, Path("/")) == 1
    assert "VALIDATION_ERROR: " + arguments[0].removeprefix("--").replace("-", "_") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("1970-01-01", 0, 86_399_999),
        ("19700102", 86_400_000, 172_799_999),
        ("1970-01-01T00:01", 60_000, 60_999),
        ("1970-01-01 00:00:02Z", 2_000, 2_999),
        ("1970-01-01T02:00:02+02:00", 2_000, 2_999),
        ("1970-01-01T00:00:00.000", 0, 0),
        ("1970-01-01T00:00:00.2509", 250, 250),
        ("9999-12-31", 253_402_214_400_000, 253_402_300_799_999),
        ("1234", 1234, 1234),
        ("1767225600000", 1_767_225_600_000, 1_767_225_600_000),
    ],
)
def test_a_time_is_a_date_a_time_or_milliseconds_and_reaches_to_the_end_of_what_it_names(
    monkeypatch: pytest.MonkeyPatch, text: str, since: int, until: int
):
    asked = {}

    def ask(tool: str, arguments: dict[str, object]) -> dict[str, object]:
        asked.update(arguments)
        return {"results": [], "path": "index", "complete": True}

    monkeypatch.setattr("convmem.cli.search.asker", lambda *_, **__: ask)
    assert run(["search", "--since", text, "--until", text, "x"], {}, Path("/")) == 0
    assert (asked["since"], asked["until"]) == (since, until)


@pytest.mark.parametrize("text", ["", "yesterday", "2026", "202601", "2026-13-01", "-1", "9" * 19, "9" * 5_000, "٣"])
def test_what_is_no_time_is_wrong_usage(written: Written, capsys: pytest.CaptureFixture[str], text: str):
    assert run(["search", f"--until={text}", "x"], written.environment, Path("/")) == 2
    assert "--until must be like 2026-01-31" in capsys.readouterr().err


def test_an_explanation_says_how_each_was_found_and_what_the_stages_took(
    written: Written, capsys: pytest.CaptureFixture[str]
):
    assert run(["search", "--explain", "behind the shed"], written.environment, Path("/")) == 0
    found, *lines = capsys.readouterr().out.splitlines()
    assert written.message_ids[0] in found
    assert lines[:2] == [
        "\tscore\t1.00 = content 1.00 + summary 0.00 + tags 0.00 + context 0.00",
        "\tmatched\texact, in content",
    ]
    assert lines[2].startswith("\tpath\t")
    stages = [line.removeprefix("\tstage\t").partition(":")[0] for line in lines[3:]]
    assert {"where the tables stand"} < set(stages) <= {*STAGES.values(), "together"}


def test_a_question_is_explained_field_by_field(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "--explain", "--json", "a pet called Miso"], written.environment, Path("/")) == 0
    facts = json.loads(capsys.readouterr().out)
    (found,) = facts["results"]
    assert (found["message_id"], found["exact"]) == (written.message_ids[2], False)
    assert found["matched_fields"] == ["content", "tags"]
    assert sum(found["scores"].values()) == found["score"]
    assert {stage["stage"] for stage in facts["stages"]} <= set(STAGES)
    assert all(stage["ms"] >= 0 for stage in facts["stages"])


def test_nothing_found_is_explained_too(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "--explain", "nowhere to be found"], written.environment, Path("/")) == 0
    said = capsys.readouterr()
    assert said.out.startswith("\tpath\t")
    assert said.err == "nothing found\n"


def test_a_store_that_nobody_holds_is_explained_alike(written: Written, tmp_path: Path):
    shutil.copytree(written.data_dir, tmp_path / "data", ignore=shutil.ignore_patterns("*.sock"))
    done = ran("search", "--explain", "--json", "Miso", "--data-dir", str(tmp_path / "data"))
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert [found["message_id"] for found in facts["results"]] == [written.message_ids[2]]
    assert facts["stages"][0]["stage"] == "_position"


def test_on_a_terminal_the_matches_are_marked(written: Written):
    ours, theirs = pty.openpty()
    arguments = command("search", "--explain", "behind", "--data-dir", str(written.data_dir))
    child = subprocess.Popen(arguments, stdout=theirs, stderr=theirs, env={"TERM": "xterm-256color"})
    os.close(theirs)
    sent = b""
    try:
        while piece := os.read(ours, 65536):
            sent += piece
    except OSError:  # how Linux says that nobody writes any more
        pass
    os.close(ours)
    assert child.wait(timeout=30) == 0
    assert b"The tomatoes go\\n\x1b[1;33mbehind\x1b[0m the shed.\\x1b[2J" in sent
    assert b"together: " in sent


def test_a_query_that_looks_like_an_option_follows_two_dashes(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "--", "--bind"], written.environment, Path("/")) == 0
    assert capsys.readouterr().out == ""
