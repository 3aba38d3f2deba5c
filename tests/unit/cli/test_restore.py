"""cli/restore: a store out of a backup, in an empty data directory or not at all."""

import json
from pathlib import Path

import pytest

from convmem.cli import run
from tests.support.commands import ran
from tests.support.written import LONG, MESSAGES, Written

pytestmark = pytest.mark.slow


@pytest.fixture
def backed_up(written: Written, tmp_path: Path) -> Path:
    assert run(["backup", str(tmp_path / "copy")], written.environment, tmp_path) == 0
    return tmp_path / "copy"


def test_a_restored_store_holds_what_was_copied(
    backed_up: Path, written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    capsys.readouterr()
    assert run(["restore", "copy", "--data-dir", "data", "--json"], {}, tmp_path) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["live"], facts["data_dir"]) == (len(MESSAGES), str(tmp_path / "data"))
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"convmem.log", "store.lock"}
    assert (tmp_path / "data" / "convmem.log").stat().st_mode & 0o777 == 0o600
    assert run(["check", "--data-dir", "data"], {}, tmp_path) == 0
    assert run(["show", written.message_ids[1], "--data-dir", "data", "--json"], {}, tmp_path) == 0
    assert LONG[-20:] in capsys.readouterr().out
    assert run(["check", "--data-dir", "data"], {}, tmp_path) == 0


def test_settings_may_be_there_before(backed_up: Path, tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "convmem.env").write_text("CONVMEM_LOG_FORMAT=json\n")
    assert run(["restore", "copy", "--data-dir", "data"], {}, tmp_path) == 0


def test_a_store_is_never_written_over(backed_up: Path, written: Written, capsys: pytest.CaptureFixture[str]):
    before = (written.data_dir / "convmem.log").read_bytes()
    assert run(["restore", str(backed_up)], written.environment, Path("/")) == 10
    assert "STORE_LOCKED" in capsys.readouterr().err
    assert (written.data_dir / "convmem.log").read_bytes() == before


def test_a_directory_that_holds_anything_else_is_refused(
    backed_up: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.odt").write_text("years")
    assert run(["restore", "copy", "--data-dir", "data"], {}, tmp_path) == 1
    assert "BACKUP_ERROR: the data directory holds thesis.odt" in capsys.readouterr().err


def test_a_damaged_backup_makes_no_store(backed_up: Path, tmp_path: Path):
    log = backed_up / "log-1"
    log.write_bytes(log.read_bytes()[:-1] + b"?")
    done = ran("restore", str(backed_up), "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 1
    assert "log-1 is not what was written" in done.stderr
    assert {path.name for path in (tmp_path / "data").iterdir()} <= {"store.lock"}


def test_what_is_no_backup_makes_not_even_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["restore", ".", "--data-dir", "data"], {}, tmp_path) == 1
    assert "there is no backup in this directory" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_proof_that_was_changed_is_no_obstacle_to_a_restore(backed_up: Path, tmp_path: Path):
    (backed_up / "proven.json").write_text("nonsense")
    assert run(["restore", "copy", "--data-dir", "data"], {}, tmp_path) == 0
