"""cli/doctor: lines of fields in a pipe, colour and what to change on a terminal; the token goes to a URL alone."""

import os
import pty
import socket
import subprocess
from pathlib import Path

import pytest

from convmem.cli import run
from convmem.cli.doctor import NAME_WIDTH, OUTCOME_WIDTH, STYLES
from convmem.doctor import local_findings, remote_findings
from convmem.doctor.findings import OUTCOMES
from tests.support.commands import command

pytestmark = pytest.mark.slow


def unused() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def test_every_outcome_has_a_colour_and_every_name_its_room():
    assert tuple(STYLES) == OUTCOMES
    assert max(map(len, OUTCOMES)) == OUTCOME_WIDTH
    assert max(map(len, [*local_findings.KINDS, *remote_findings.KINDS])) == NAME_WIDTH


def test_in_a_pipe_a_finding_is_a_line_of_four_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    data_dir = tmp_path / "data"
    assert run(["doctor", "--data-dir", str(data_dir)], {}, tmp_path) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert {len(row) for row in rows} == {4}
    seen, change = f"{data_dir} is not there", f"convmem serve --data-dir {data_dir}"
    assert rows[-1] == ["warning", "directory-missing", seen, change]
    assert not data_dir.exists()


def test_on_a_terminal_what_to_change_stands_below_in_colour():
    ours, theirs = pty.openpty()
    child = subprocess.Popen(command("doctor", f"http://127.0.0.1:{unused()}"), stdout=theirs, env={"TERM": "xterm"})
    os.close(theirs)
    assert child.wait(timeout=30) == 1
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert "\x1b[1;31mfailure" in shown
    line, below = shown.split("connect-refused")[1].split("\r\n")[:2]
    assert "refuses" in line
    assert "-> " in below
    assert "convmem serve --bind 127.0.0.1:" in below


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["http://127.0.0.1:1", "--data-dir", "/x"], "--data-dir is of this machine"),
        (["--token-file", "x"], "--token-file goes with a URL"),
    ],
)
def test_what_does_not_belong_together_is_usage(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["doctor", *arguments], {}, Path("/")) == 2
    assert sentence in capsys.readouterr().err


def test_a_data_directory_is_looked_at_although_the_environment_names_a_url(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    environment = {"CONVMEM_URL": f"http://127.0.0.1:{unused()}"}
    assert run(["doctor", "--data-dir", str(tmp_path / "data")], environment, tmp_path) == 0
    assert "directory-missing" in capsys.readouterr().out
    assert run(["doctor"], environment, tmp_path) == 1
    assert "connect-refused" in capsys.readouterr().out
