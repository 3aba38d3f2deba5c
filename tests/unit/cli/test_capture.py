"""cli/capture: the verb as a host starts it: status 0, not a word, and its place among the other verbs."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from convmem.cli import run
from convmem.cli.capture import capture
from convmem.hooks.options import OPTIONS
from tests.support.commands import command, ran
from tests.support.deliverers import nobody_left
from tests.support.source import REPOSITORY

pytestmark = pytest.mark.slow
EVENT = json.dumps({"event_id": "e", "session_id": "s", "kind": "prompt", "content": "hello"})


@pytest.fixture
def variables(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What a hook is given where no daemon runs."""
    with nobody_left(tmp_path / "state"):
        yield {"XDG_STATE_HOME": str(tmp_path / "state"), "CONVMEM_DATA_DIR": str(tmp_path / "data")}


def status(variables: dict[str, str]) -> dict[str, int | None]:
    found: dict[str, int | None] = json.loads(ran("capture", "--status", environment=variables).stdout)
    return found


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        ([], EVENT),
        ([], ""),
        ([], "nonsense"),
        ([], "\0" * 100),
        (["--from", "claude-code"], EVENT),
        (["--bogus"], EVENT),
        (["--url"], EVENT),
        (["--url", "nonsense"], EVENT),
        (["--url", "http://127.0.0.1:9"], EVENT),
        (["--token-file", "/not/there", "--url", "http://127.0.0.1:9"], EVENT),
        (["--drain"], ""),
    ],
)
def test_whatever_is_asked_the_host_hears_nothing(arguments: list[str], stdin: str, variables: dict[str, str]):
    done = ran("capture", *arguments, environment=variables, stdin=stdin)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_was_done_is_one_line_for_whoever_asks(variables: dict[str, str]):
    done = ran("capture", "--verbose", environment=variables, stdin=EVENT)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("convmem capture: 1 waiting (nobody listens at ")
    assert done.stderr.count("\n") == 1
    assert status(variables)["depth"] == 1


KNOWN = (
    "import pwd, sys; from convmem.__main__ import main; home = sys.argv.pop();"
    "pwd.getpwuid = lambda uid: pwd.struct_passwd(('u', 'x', uid, uid, '', home, '')); main()"
)


def test_without_any_variable_events_wait_in_the_home_that_the_system_knows(tmp_path: Path):
    home = tmp_path / "home"
    with nobody_left(home / ".local/state"):
        done = subprocess.run(
            [sys.executable, "-c", KNOWN, "capture", "--verbose", str(home)],
            cwd=REPOSITORY,
            env={},
            input=EVENT,
            capture_output=True,
            text=True,
        )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("convmem capture: 1 waiting (")
    assert len(list(home.glob(".local/state/convmem/spool/*.jsonl"))) == 1


def test_a_directory_that_is_gone_is_no_reason_to_fail(variables: dict[str, str], tmp_path: Path):
    (tmp_path / "gone").mkdir()
    gone = f"cd {tmp_path / 'gone'}; rmdir ../gone; exec {sys.executable} -m convmem capture --data-dir d"
    done = subprocess.run(
        ["sh", "-c", gone],
        env={**variables, "PYTHONPATH": str(REPOSITORY)},
        input=EVENT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_streams_that_are_closed_are_no_reason_to_fail(variables: dict[str, str], tmp_path: Path):
    closed = f"exec {sys.executable} -m convmem capture --verbose <&- >&- 2>&-"
    done = subprocess.run(["sh", "-c", closed], cwd=REPOSITORY, env=variables, timeout=20)
    assert done.returncode == 0


def test_a_reader_that_has_gone_is_no_reason_to_fail(variables: dict[str, str]):
    read, write = os.pipe()
    os.close(read)
    for arguments in (["--status"], ["--verbose"]):
        done = subprocess.run(
            command("capture", *arguments), env=variables, input=EVENT.encode(), stdout=write, stderr=write, timeout=20
        )
        assert done.returncode == 0
    os.close(write)


def test_a_terminal_is_not_read_from(variables: dict[str, str]):
    ours, theirs = pty.openpty()
    begun = time.monotonic()
    done = subprocess.run(command("capture"), env=variables, stdin=theirs, capture_output=True, timeout=20)
    assert done.returncode == 0
    assert time.monotonic() - begun < 10
    os.close(ours)
    os.close(theirs)


def test_an_interrupt_is_meant_for_the_host(variables: dict[str, str]):
    process = subprocess.Popen(command("capture"), env=variables, stdin=subprocess.PIPE)
    assert process.stdin is not None
    with process.stdin:
        while not ignores(process.pid):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        process.stdin.write(EVENT.encode())
    assert process.wait(20) == 0
    assert status(variables)["depth"] == 1


def ignores(pid: int) -> bool:
    """Whether a process ignores SIGINT by now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    ignored = next(int(line.split()[1], 16) for line in lines if line.startswith("SigIgn:"))
    return bool(ignored >> (signal.SIGINT - 1) & 1)


FAULT = (
    "import sys; from convmem.hooks import capture; capture.run = lambda *given: 1 // 0;"
    "from convmem.__main__ import main; main()"
)


def test_a_fault_of_our_own_is_not_the_hosts(variables: dict[str, str]):
    for arguments, is_told in ((["capture"], False), (["capture", "--verbose"], True)):
        done = subprocess.run(
            [sys.executable, "-c", FAULT, *arguments], cwd=REPOSITORY, env=variables, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (0, "")
        assert ("ZeroDivisionError" in done.stderr) is is_told
        assert bool(done.stderr) is is_told


def test_the_host_waits_for_no_pipe_of_the_process_that_delivers(variables: dict[str, str]):
    process = subprocess.Popen(
        command("capture"), env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # Returns once all ends of the pipes are closed, those of a process left behind too.
    assert process.communicate(EVENT.encode(), timeout=20) == (b"", b"")
    assert process.returncode == 0
    assert status(variables)["depth"] == 1


def test_the_command_line_shows_the_verb_and_each_of_its_options(capsys: pytest.CaptureFixture[str]):
    assert run(["--help"], {}, Path("/")) == 0
    assert " capture " in capsys.readouterr().out
    assert capture.__doc__ is not None
    done = ran("capture", "--help")
    assert done.returncode == 0
    for option in OPTIONS:
        assert option.flag in done.stdout
        assert option.takes in done.stdout


def test_the_command_line_does_the_same_when_it_is_called(
    variables: dict[str, str], capsys: pytest.CaptureFixture[str]
):
    ran("capture", environment=variables, stdin=EVENT)
    assert run(["capture", "--status"], variables, Path("/")) == 0
    assert json.loads(capsys.readouterr().out)["depth"] == 1
    assert run(["capture", "--status", "--data-dir", "/elsewhere"], variables, Path("/")) == 0
    assert json.loads(capsys.readouterr().out)["depth"] == 0
