"""cli/serve: the daemon as an operator meets it: one line, exit statuses, and nothing that needs a shell."""

import json
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from convmem.cli import run
from tests.support.commands import command, daemon, ran
from tests.support.source import REPOSITORY
from tests.support.written import Written, damaged_copy

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0", "central.example:0"])
def test_an_address_that_others_reach_needs_a_token(tmp_path: Path, bind: str, capsys: pytest.CaptureFixture[str]):
    assert run(["serve", "--bind", bind, "--data-dir", str(tmp_path / "data")], {}, tmp_path) == 14
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith("convmem: UNSAFE_BIND: ")
    assert not (tmp_path / "data").exists()


def test_with_a_token_it_may_listen_everywhere(tmp_path: Path):
    environment = {"CONVMEM_HTTP_TOKEN": "s3cret"}
    with daemon("--bind", "0.0.0.0:0", "--data-dir", str(tmp_path), environment=environment) as running:
        assert "token" in running.line
        assert "s3cret" not in running.line
        assert running.stop() == 0


def test_a_second_daemon_is_refused_and_told_who_holds_the_store(tmp_path: Path):
    with daemon("--data-dir", str(tmp_path)) as running:
        done = ran("serve", "--bind", "127.0.0.1:0", "--data-dir", str(tmp_path))
        assert (done.returncode, done.stdout) == (10, "")
        assert done.stderr.count("\n") == 1
        assert str(running.process.pid) in done.stderr


def test_a_taken_address_is_refused_with_one_line(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        done = ran("serve", "--bind", bind, "--data-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"ADDRESS_UNUSABLE: cannot listen on {bind}" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_log_is_refused_with_file_and_offset(written: Written, tmp_path: Path):
    data_dir = damaged_copy(written.data_dir, tmp_path / "data")
    for index in data_dir.glob("index-*"):
        index.unlink()
    done = ran("serve", "--bind", "127.0.0.1:0", "--data-dir", str(data_dir))
    assert done.returncode == 11
    assert "LOG_CORRUPT" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_refused_start_is_one_journal_line_in_the_format_asked_for(tmp_path: Path, log_format: str):
    (tmp_path / "file").write_text("")
    arguments = ("--bind", "127.0.0.1:0", "--data-dir", str(tmp_path / "file"), "--log-format", log_format)
    done = ran("serve", *arguments)
    assert done.returncode == 15
    (line,) = done.stderr.splitlines()
    event = json.loads(line)["event"] if log_format == "json" else line
    assert "DATA_DIRECTORY_UNUSABLE" in event
    assert f"uid {os.getuid()}" in event
    assert str(tmp_path / "file") in event


def test_it_needs_no_home_no_environment_and_no_directory_of_its_own(tmp_path: Path):
    with daemon("--data-dir", str(tmp_path / "a" / "b"), directory=Path("/"), environment={}) as running:
        assert str(tmp_path / "a" / "b") in running.line
        assert running.stop() == 0
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "a" / "b").iterdir())


def test_after_a_stop_nothing_is_on_stderr_but_the_journal(tmp_path: Path):
    with daemon("--data-dir", str(tmp_path), "--log-format", "json") as running:
        assert running.stop() == 0
        assert running.process.stderr is not None
        for line in running.process.stderr:
            assert set(json.loads(line)) >= {"at", "level", "logger", "event"}


def test_a_misspelt_variable_is_named_at_the_start(tmp_path: Path):
    with daemon("--data-dir", str(tmp_path), environment={"CONVMEM_HTTP_TOKN": "secret"}) as running:
        assert running.stop() == 0
        assert running.process.stderr is not None
        said = running.process.stderr.read()
    assert "CONVMEM_HTTP_TOKN is no setting" in said
    assert "secret" not in said


def test_nothing_heavy_is_read_before_a_verb_is_chosen():
    program = "import sys; import convmem.cli; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    read = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert not {"asyncio", "apsw", "http", "mcp", "pydantic", "rich", "uvicorn"} & set(read.stdout.split())


def test_it_starts_and_stops_without_any_standard_stream(tmp_path: Path):
    """As some supervisors start a daemon: with nothing open at all. The socket tells that it runs."""
    shell = "exec " + shlex.join(command("serve", "--bind", "127.0.0.1:0", "--data-dir", str(tmp_path)))
    process = subprocess.Popen(["sh", "-c", f"{shell} <&- >&- 2>&-"], cwd=REPOSITORY, env={})
    try:
        while not (tmp_path / "convmem.sock").exists():
            assert process.poll() is None
        assert run(["sessions"], {"CONVMEM_DATA_DIR": str(tmp_path)}, tmp_path) == 0
    finally:
        process.terminate()
    assert process.wait(30) == 0
