"""cli/backup: a copy from whoever holds the store, or from the store itself; and the proof that it can be restored."""

import json
import shutil
from pathlib import Path

import pytest

from convmem.cli import run
from tests.support.commands import daemon, ran
from tests.support.written import MESSAGES, Written

pytestmark = pytest.mark.slow


@pytest.fixture
def backed_up(written: Written, tmp_path: Path) -> Path:
    assert run(["backup", str(tmp_path / "copy")], written.environment, tmp_path) == 0
    return tmp_path / "copy"


def test_beside_its_daemon_a_store_is_copied_and_the_copy_proven(
    written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["backup", "copy", "--json"], written.environment, tmp_path) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["dest"] == str(tmp_path / "copy")
    assert made["sequence"] == str(len(MESSAGES))
    assert run(["backup", "verify", "copy", "--json"], written.environment, tmp_path) == 0
    proven = json.loads(capsys.readouterr().out)
    assert proven["live"] == len(MESSAGES)
    assert proven["state_hash"] == made["state_hash"]


def test_people_read_one_fact_a_line(written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["backup", "copy"], written.environment, tmp_path) == 0
    lines = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert lines["sequence"] == str(len(MESSAGES))
    assert lines["convmem.log"] == f"{lines['log_bytes']} bytes in log-1"


def test_where_nobody_holds_the_store_the_verb_opens_it(backed_up: Path, tmp_path: Path):
    data_dir = tmp_path / "data"
    assert run(["restore", str(backed_up), "--data-dir", str(data_dir)], {}, tmp_path) == 0
    done = ran("backup", str(tmp_path / "second"), "--data-dir", str(data_dir), "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["state_hash"] == json.loads((backed_up / "manifest.json").read_text())["state_hash"]


def test_a_proof_needs_no_store(backed_up: Path, tmp_path: Path):
    done = ran("backup", "verify", str(backed_up), "--data-dir", str(tmp_path / "nowhere"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["live"] == len(MESSAGES)
    assert not (tmp_path / "nowhere").exists()
    assert {path.name for path in backed_up.iterdir()} == {"backup.lock", "log-1", "manifest.json"}


def test_a_proof_leaves_a_directory_that_it_cannot_write_to_alone(backed_up: Path, tmp_path: Path):
    read_only = tmp_path / "read-only"
    shutil.copytree(backed_up, read_only)
    read_only.chmod(0o500)
    try:
        assert run(["backup", "verify", str(read_only)], {"CONVMEM_DATA_DIR": str(tmp_path / "nowhere")}, tmp_path) == 0
        assert {path.name for path in read_only.iterdir()} == {path.name for path in backed_up.iterdir()}
    finally:
        read_only.chmod(0o700)


def test_a_damaged_copy_fails_and_is_named(backed_up: Path, written: Written, capsys: pytest.CaptureFixture[str]):
    log = backed_up / "log-1"
    log.write_bytes(log.read_bytes()[:-1] + b"?")
    for environment in (written.environment, {"CONVMEM_DATA_DIR": str(backed_up.parent / "nowhere")}):
        assert run(["backup", "verify", str(backed_up)], environment, Path("/")) == 1
        assert "BACKUP_ERROR: log-1 is not what was written" in capsys.readouterr().err


def test_a_directory_named_verify_can_be_named(written: Written, tmp_path: Path):
    assert run(["backup", "./verify"], written.environment, tmp_path) == 0
    assert (tmp_path / "verify" / "manifest.json").exists()
    assert run(["backup", "verify", "verify"], written.environment, tmp_path) == 0


@pytest.mark.parametrize(
    "arguments", [[], ["verify"], ["a", "b"], ["verify", "a", "b"], ["verify", "a", "--with-tokens"]], ids=" ".join
)
def test_other_words_are_wrong_usage(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["backup", *arguments], {"CONVMEM_DATA_DIR": str(tmp_path / "data")}, tmp_path) == 2
    assert list(tmp_path.iterdir()) == []
    capsys.readouterr()


def test_where_there_is_no_store_there_is_nothing_to_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["backup", "copy", "--data-dir", "data"], {}, tmp_path) == 1
    assert "there is no store in" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_the_data_directory_is_refused(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["backup", str(written.data_dir / "copy")], written.environment, Path("/")) == 1
    assert "BACKUP_ERROR" in capsys.readouterr().err


def test_tokens_are_copied_only_when_asked_for(backed_up: Path, tmp_path: Path):
    data_dir = tmp_path / "data"
    assert run(["restore", str(backed_up), "--data-dir", str(data_dir)], {}, tmp_path) == 0
    (data_dir / "tokens.json").write_text('{"laptop": "hash"}')
    with daemon("--data-dir", str(data_dir)):
        environment = {"CONVMEM_DATA_DIR": str(data_dir)}
        assert run(["backup", "second"], environment, tmp_path) == 0
        assert not list((tmp_path / "second").glob("tokens-*"))
        assert run(["backup", "second", "--with-tokens"], environment, tmp_path) == 0
        (tokens,) = (tmp_path / "second").glob("tokens-*")
        assert tokens.read_text() == '{"laptop": "hash"}'
        assert run(["backup", "verify", "second"], environment, tmp_path) == 0
