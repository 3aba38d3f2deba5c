"""cli/import_: all records of a file or none, whoever holds the store."""

import json
from pathlib import Path

import pytest

from convmem.cli import run
from tests.support.commands import daemon
from tests.support.filed import message, records_of, written

pytestmark = pytest.mark.slow


def exported(directory: Path, data_dir: Path) -> list[object]:
    assert run(["export", str(directory / "out.jsonl"), "--data-dir", str(data_dir)], {}, Path("/")) == 0
    return list(records_of((directory / "out.jsonl").read_bytes()))


def test_a_file_makes_a_store_where_none_is_and_again_adds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "a.jsonl").write_bytes(written([message(0), message(1)]))
    (tmp_path / "b.jsonl").write_bytes(written([message(1), message(2)]))
    place = ["--data-dir", str(tmp_path / "data")]
    assert run(["import", "a.jsonl", "b.jsonl", *place], {}, tmp_path) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.split("\t") == ["2", "2", "0", "0", str(tmp_path / "a.jsonl")]
    assert second.split("\t")[:4] == ["2", "1", "1", "0"]
    assert run(["import", "a.jsonl", "--json", *place], {}, tmp_path) == 0
    (facts,) = json.loads(capsys.readouterr().out)["files"]
    assert (facts["new"], facts["unchanged"], facts["sequence"]) == (0, 2, "3")
    assert exported(tmp_path, tmp_path / "data") == [message(0), message(1), message(2)]


def test_beside_a_daemon_it_goes_through_the_daemon(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "a.jsonl"
    file.write_bytes(written([message(number, content="あ" * 9_000) for number in range(9)]))
    data_dir = tmp_path / "data"
    with daemon("--data-dir", str(data_dir)) as running:
        assert run(["import", str(file), "--data-dir", str(data_dir), "--dry-run"], {}, Path("/")) == 0
        assert exported(tmp_path, data_dir) == []
        assert run(["import", str(file), "--data-dir", str(data_dir)], {}, Path("/")) == 0
        file.write_bytes(written([message(1, content="other")]))
        assert run(["import", str(file), "--url", running.url], {}, Path("/")) == 1
        assert "CONFLICT: line 2: " in capsys.readouterr().err
        assert run(["import", str(file), "--url", running.url, "--policy", "overwrite"], {}, Path("/")) == 0
        (again,) = [
            record for record in exported(tmp_path, data_dir) if record["message_id"] == message(1)["message_id"]
        ]
        assert (again["content"], again["revision"]) == ("other", 2)
        assert running.stop() == 0
    assert run(["check", "--data-dir", str(data_dir)], {}, Path("/")) == 0


@pytest.mark.parametrize("is_held", [True, False])
def test_one_bad_line_changes_nothing_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], is_held: bool):
    (tmp_path / "a.jsonl").write_bytes(written([message(0)]))
    (tmp_path / "bad.jsonl").write_bytes(written([message(1), message(2), message(3, role="tool")]))
    place = ["--data-dir", str(tmp_path / "data")]
    assert run(["import", "a.jsonl", *place], {}, tmp_path) == 0
    if is_held:
        with daemon(*place):
            assert run(["import", "bad.jsonl", *place], {}, tmp_path) == 1
    else:
        assert run(["import", "bad.jsonl", *place], {}, tmp_path) == 1
    assert capsys.readouterr().err.startswith("convmem: VALIDATION_ERROR: line 4: role ")
    assert exported(tmp_path, tmp_path / "data") == [message(0)]


@pytest.mark.parametrize("path", ["/dev/null", "nowhere.jsonl"])
def test_what_is_no_file_is_named_and_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str):
    assert run(["import", path, "--data-dir", str(tmp_path / "data")], {}, tmp_path) == 3
    assert path in capsys.readouterr().out


def test_a_policy_that_is_none_is_wrong_usage(tmp_path: Path):
    assert run(["import", "a.jsonl", "--policy", "merge", "--data-dir", str(tmp_path)], {}, tmp_path) == 2
