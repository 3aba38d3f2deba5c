"""cli/printing: a table for people, tabs for pipes, JSON for programs."""

import json
import os
import pty
import subprocess
import sys

import pytest

from convmem.cli import printing
from tests.support.commands import command
from tests.support.source import REPOSITORY


def test_in_a_pipe_a_row_is_a_line_of_fields_uncut(capsys: pytest.CaptureFixture[str]):
    printing.print_table(("a", "b"), [("1", "x" * 300), ("2", "tab\there\nline")])
    assert capsys.readouterr().out == "1\t" + "x" * 300 + "\n2\ttab\\there\\nline\n"


def test_json_is_one_line_and_reads_back_equal(capsys: pytest.CaptureFixture[str]):
    facts = {"text": "日本\u202e\n\x1b", "count": 2**60}
    printing.print_json(facts)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "日本" in out
    assert "\u202e" not in out
    assert json.loads(out) == facts


def test_text_keeps_its_lines_and_loses_what_drives_a_terminal(capsys: pytest.CaptureFixture[str]):
    printing.print_text("one\n\ttwo\x1b[2J\r\nthree\u202e")
    assert capsys.readouterr().out == "one\n\ttwo\\x1b[2J\\r\nthree\\u202e\n"


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (0, "1970-01-01 00:00:00Z"),
        (1_767_225_600_999, "2026-01-01 00:00:00Z"),
        (253_402_300_800_000, "253402300800000 ms"),
        (2**63 - 1, "9223372036854775807 ms"),
    ],
)
def test_a_time_is_shown_in_utc_and_never_fails(at_ms: int, text: str):
    assert printing.when(at_ms) == text


@pytest.mark.slow
def test_on_a_terminal_there_is_a_head_and_no_markup_of_ours_is_read_from_the_text():
    program = (
        "from convmem.cli.printing import print_table; print_table(('id', 'text'), [('1', '[red]x[/red] \\x1b[2J')])"
    )
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", program], cwd=REPOSITORY, stdout=theirs, env={"TERM": "xterm"})
    os.close(theirs)
    assert child.wait(timeout=30) == 0
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "id" in shown
    assert "text" in shown
    assert "[red]x[/red]" in shown
    assert "\x1b[2J" not in shown


@pytest.mark.slow
@pytest.mark.parametrize(("where", "status", "sentence"), [("/dev/full", 1, "cannot be written"), ("/dev/null", 0, "")])
def test_a_result_that_cannot_be_written_is_a_failure_in_one_line(where: str, status: int, sentence: str):
    with open(where, "wb") as target:
        done = subprocess.run(
            command("config", "--data-dir", "/nowhere"), stdout=target, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == status
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_fault():
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "wb") as target:
        done = subprocess.run(
            command("config", "--data-dir", "/nowhere"), stdout=target, stderr=subprocess.PIPE, text=True
        )
    assert done.stderr == ""
