"""cli/asking: the store is asked wherever it is, and only where nobody holds it is it opened here."""

import fcntl
import shutil
from pathlib import Path

import pytest

from convmem.cli import run
from convmem.limits import SOCKET_PATH_BYTES_MAX
from tests.support.commands import daemon, ran
from tests.support.written import Written, damaged_copy

pytestmark = pytest.mark.slow


def test_a_running_daemon_is_asked_over_its_socket(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "tomatoes"], written.environment, Path("/")) == 0
    assert written.message_ids[0] in capsys.readouterr().out


def test_another_machine_is_asked_by_url(written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    url = written.daemon.url.removesuffix("/mcp")
    assert run(["search", "--url", url, "tomatoes"], {"CONVMEM_DATA_DIR": str(tmp_path / "none")}, tmp_path) == 0
    assert written.message_ids[0] in capsys.readouterr().out
    assert not (tmp_path / "none").exists()


def test_the_environment_names_another_machine_unless_a_flag_says_otherwise(
    written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    environment = {"CONVMEM_URL": written.daemon.url.removesuffix("/mcp"), "CONVMEM_DATA_DIR": str(tmp_path / "none")}
    assert run(["search", "tomatoes"], environment, tmp_path) == 0
    assert written.message_ids[0] in capsys.readouterr().out
    assert run(["search", "tomatoes", "--data-dir", str(tmp_path / "none")], environment, tmp_path) == 1
    assert run(["search", "tomatoes", "--url", "http://127.0.0.1:1"], environment, tmp_path) == 1
    assert run(["check", "--json"], environment, tmp_path) == 0
    assert '"violations":[]' in capsys.readouterr().out.replace(" ", "")


def test_a_store_that_nobody_holds_is_opened_here(written: Written, tmp_path: Path):
    """Also when a killed daemon has left its socket behind."""
    data_dir = tmp_path / "data"
    shutil.copytree(written.data_dir, data_dir, ignore=shutil.ignore_patterns("*.sock"))
    with daemon("--data-dir", str(data_dir)) as killed:
        killed.kill()
    assert (data_dir / "convmem.sock").exists()
    done = ran("search", "tomatoes", "--data-dir", str(data_dir))
    assert (done.returncode, done.stderr) == (0, "")
    assert written.message_ids[0] in done.stdout


def test_where_there_is_no_socket_the_address_in_the_lock_serves(tmp_path: Path):
    deep = tmp_path / ("d" * SOCKET_PATH_BYTES_MAX)
    with daemon("--data-dir", str(deep)):
        done = ran("sessions", "--json", "--data-dir", str(deep))
    assert (done.returncode, done.stderr) == (0, "")
    assert '"sessions":[]' in done.stdout
    assert not list(deep.glob("*.sock"))


def test_a_holder_without_socket_and_address_is_named(tmp_path: Path):
    deep = tmp_path / ("d" * SOCKET_PATH_BYTES_MAX)
    deep.mkdir()
    (deep / "convmem.log").touch()
    with open(deep / "store.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write('{"pid": 7}')
        lock.flush()
        done = ran("sessions", "--data-dir", str(deep))
    assert done.returncode == 10
    assert '"pid": 7' in done.stderr


def test_a_question_makes_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for data_dir in (tmp_path, tmp_path / "none"):
        assert run(["sessions", "--data-dir", str(data_dir)], {}, tmp_path) == 1
        assert "there is no store in" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_data_directory_that_is_a_file_is_refused_with_its_own_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "file").write_text("")
    assert run(["sessions", "--data-dir", str(tmp_path / "file")], {}, tmp_path) == 15
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert shown.startswith("convmem: DATA_DIRECTORY_UNUSABLE: ")


def test_a_refusal_of_the_tool_is_one_line(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["search", "--limit", "0", "tomatoes"], written.environment, Path("/")) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith("convmem: VALIDATION_ERROR: limit")


def test_a_refusal_is_the_same_from_an_own_store(written: Written, tmp_path: Path):
    shutil.copytree(written.data_dir, tmp_path / "data", ignore=shutil.ignore_patterns("*.sock"))
    done = ran("search", "--limit", "0", "tomatoes", "--data-dir", str(tmp_path / "data"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("convmem: VALIDATION_ERROR: limit")
    assert done.stderr.count("\n") == 1


def test_a_token_comes_from_the_environment_or_a_file_and_from_no_argument(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    environment = {"CONVMEM_HTTP_TOKEN": "s3cret"}
    (tmp_path / "token").write_text("s3cret\n")
    with daemon("--data-dir", str(tmp_path / "data"), environment=environment) as running:
        ask = ["sessions", "--url", running.url.removesuffix("/mcp")]
        assert run(ask, {"CONVMEM_TOKEN": "s3cret"}, tmp_path) == 0
        assert run([*ask, "--token-file", "token"], {}, tmp_path) == 0
        assert capsys.readouterr().err == ""
        assert run(ask, {}, tmp_path) == 1
        assert run(ask, {"CONVMEM_TOKEN": "wr0ng"}, tmp_path) == 1
        shown = capsys.readouterr().err
        assert shown.count(" 401: ") == 2
        assert "wr0ng" not in shown
        assert run([*ask, "--token", "s3cret"], {}, tmp_path) == 2


def test_a_token_file_without_a_url_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["sessions", "--token-file", "token"], {}, tmp_path) == 2
    assert "--token-file goes with --url" in capsys.readouterr().err


def test_a_store_that_cannot_be_opened_refuses_the_question_as_it_refuses_a_start(
    written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    data_dir = damaged_copy(written.data_dir, tmp_path / "data")
    for index in data_dir.glob("index-*"):
        index.unlink()
    assert run(["search", "tomatoes", "--data-dir", str(data_dir)], {}, tmp_path) == 11
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith("convmem: LOG_CORRUPT: ")
