"""cli/config: every setting with its value and where it came from, and never the token."""

import json
from pathlib import Path

import pytest

from convmem.cli import run
from convmem.config import SETTINGS


def test_every_setting_is_shown_with_where_it_came_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "convmem.env").write_text("CONVMEM_PROFILE=messages\n")
    environment = {"CONVMEM_DATA_DIR": str(tmp_path), "CONVMEM_LOG_FORMAT": "json"}
    assert run(["config", "--bind", "[::1]:0"], environment, tmp_path) == 0
    lines = dict(line.split("\t", 1) for line in capsys.readouterr().out.splitlines())
    assert list(lines) == [setting.variable for setting in SETTINGS]
    assert lines["CONVMEM_BIND"] == "[::1]:0\tflag --bind"
    assert lines["CONVMEM_LOG_FORMAT"] == "json\tenvironment"
    assert lines["CONVMEM_PROFILE"] == f"messages\t{tmp_path / 'convmem.env'}:1"
    assert lines["CONVMEM_ALLOWED_HOSTS"] == "\tdefault"


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_the_token_is_never_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: list[str]):
    environment = {"CONVMEM_DATA_DIR": str(tmp_path), "CONVMEM_HTTP_TOKEN": "s3cret"}
    assert run(["config", *as_json], environment, tmp_path) == 0
    shown = capsys.readouterr()
    assert "s3cret" not in shown.out + shown.err
    assert "set, not shown" in shown.out


def test_as_json_it_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["config", "--json", "--data-dir", str(tmp_path)], {}, tmp_path) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["CONVMEM_DATA_DIR"] == {"value": str(tmp_path), "from": "flag --data-dir"}
    assert shown["CONVMEM_HTTP_TOKEN"] == {"value": "not set", "from": "default"}


def test_a_setting_that_cannot_be_meant_is_one_line_and_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["config", "--bind", "x"], {"CONVMEM_DATA_DIR": str(tmp_path)}, tmp_path) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("convmem: SETTING_INVALID: CONVMEM_BIND (flag --bind): 'x' is not HOST:PORT")
    assert shown.err.count("\n") == 1


def test_a_backup_that_is_kept_up_is_shown_as_it_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["config", "--data-dir", "data", "--backup-to", "copy", "--backup-every", "90m"]
    assert run(arguments, {}, tmp_path) == 0
    shown = dict(line.split("\t")[:2] for line in capsys.readouterr().out.splitlines())
    assert (shown["CONVMEM_BACKUP_TO"], shown["CONVMEM_BACKUP_EVERY"]) == (str(tmp_path / "copy"), "90m")
    assert run(["config", "--data-dir", "data"], {}, tmp_path) == 0
    shown = dict(line.split("\t")[:2] for line in capsys.readouterr().out.splitlines())
    assert (shown["CONVMEM_BACKUP_TO"], shown["CONVMEM_BACKUP_EVERY"]) == ("", "6h")
