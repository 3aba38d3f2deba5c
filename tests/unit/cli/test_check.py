"""cli/check: OK, or every violated invariant, and the status says which."""

import json
from pathlib import Path

import pytest

from convmem.cli import run
from tests.support.commands import ran
from tests.support.wrecks import SCRIPT, Wreck
from tests.support.written import Written, damaged_copy

pytestmark = pytest.mark.slow


def test_a_sound_store_is_ok_beside_its_daemon(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["check"], written.environment, Path("/")) == 0
    assert capsys.readouterr().out == "OK\n"
    assert run(["check", "--json"], written.environment, Path("/")) == 0
    assert json.loads(capsys.readouterr().out) == {"violations": [], "leftovers": []}


def test_damage_is_named_and_the_check_fails(written: Written, tmp_path: Path):
    data_dir = damaged_copy(written.data_dir, tmp_path / "data")
    before = {
        path.name: path.read_bytes() for path in data_dir.iterdir() if path.is_file() and path.suffix != ".db-shm"
    }
    done = ran("check", "--data-dir", str(data_dir))
    assert done.returncode == 1
    assert "damaged at byte" in done.stdout
    after = {path.name: path.read_bytes() for path in data_dir.iterdir() if path.name in before}
    assert after == before, "a check changes nothing"


def test_where_there_is_no_store_there_is_nothing_to_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["check", "--data-dir", str(tmp_path)], {}, tmp_path) == 1
    assert "there is no store in" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_another_machine_checks_itself(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["check", "--url", written.daemon.url, "--json"], {}, Path("/")) == 0
    assert json.loads(capsys.readouterr().out) == {"violations": [], "leftovers": []}


def test_leftovers_are_told_beside_the_result_and_are_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    wreck = Wreck(tmp_path / "data")
    wreck.play(SCRIPT)
    (wreck.directory / "staging-2.log").touch()
    assert run(["check", "--data-dir", str(wreck.directory)], {}, Path("/")) == 0
    shown = capsys.readouterr()
    assert shown.out == "OK\n"
    assert shown.err.startswith("staging-2.log: ")


def test_a_store_whose_log_is_gone_is_no_store_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    wreck = Wreck(tmp_path / "data")
    wreck.play(SCRIPT)
    wreck.log.unlink()
    assert run(["check", "--data-dir", str(wreck.directory)], {}, Path("/")) == 1
    assert capsys.readouterr().out == "convmem.log is missing\n"


def test_a_token_file_goes_with_a_url(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["check", "--token-file", "token", "--data-dir", str(tmp_path)], {}, tmp_path) == 2
    assert "--token-file goes with --url" in capsys.readouterr().err
