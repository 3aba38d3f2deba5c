"""cli/export: the file appears once it is whole, whoever holds the store."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from convmem.cli import run
from convmem.cli.asking import CallFailed
from convmem.cli.export import Export
from tests.support.commands import ran
from tests.support.source import REPOSITORY
from tests.support.written import MESSAGES, Written, damaged_copy

pytestmark = pytest.mark.slow


def contents(data: bytes) -> list[str]:
    return [json.loads(line)["content"] for line in data.split(b"\n")[1:-1]]


def test_beside_a_daemon_and_without_one_the_file_is_the_same(written: Written, tmp_path: Path):
    assert run(["export", "a.jsonl"], written.environment, tmp_path) == 0
    assert run(["export", "b.jsonl", "--url", written.daemon.url], {}, tmp_path) == 0
    copy = damaged_copy(written.data_dir, tmp_path / "copy")
    (copy / "convmem.log").write_bytes((written.data_dir / "convmem.log").read_bytes())
    assert run(["export", str(tmp_path / "c.jsonl"), "--data-dir", str(copy)], {}, Path("/")) == 0
    files = [(tmp_path / name).read_bytes() for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    assert contents(files[0]) == [message["content"] for message in MESSAGES]
    assert {data.partition(b"\n")[2] for data in files} == {files[0].partition(b"\n")[2]}
    assert (tmp_path / "a.jsonl").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", "c.jsonl", "copy"]


def test_a_dash_is_stdout(written: Written):
    done = ran("export", "-", environment=written.environment)
    assert contents(done.stdout.encode()) == [message["content"] for message in MESSAGES]
    assert done.stderr == ""


def test_an_error_at_the_very_end_leaves_the_file_that_was_there(written: Written, tmp_path: Path):
    target = tmp_path / "a.jsonl"
    target.write_text("precious")
    limited = f"ulimit -f 40; exec {sys.executable} -m convmem export {target}"
    done = subprocess.run(
        ["bash", "-c", limited],
        cwd=REPOSITORY,
        env=dict(written.environment),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"convmem: {target} cannot be written (File too large)")
    assert done.stderr.count("\n") == 1
    assert target.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_full_device_is_a_failure(written: Written, capsys: pytest.CaptureFixture[str]):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    assert run(["export", "/dev/full"], written.environment, Path("/")) == 1
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pieces", "is_whole"),
    [
        ([b'{"records":2}\n{}\n', b"{}\n"], True),
        ([b'{"records":0}\n'], True),
        ([b'{"records":2}\n{}\n'], False),
        ([b'{"records":1}\n{}\n', b"{}\n"], False),
        ([b'{"records":1}\n{}\n', b'{"'], False),
        ([], False),
    ],
)
def test_an_export_that_broke_off_is_noticed_by_its_own_count(pieces: list[bytes], is_whole: bool):
    taken = Export(lambda piece: None, lambda done, total, sentence: None)
    for piece in pieces:
        taken.take(piece)
    if is_whole:
        assert taken.end() == pieces[-1].count(b"{}") + sum(piece.count(b"{}") for piece in pieces[:-1])
    else:
        with pytest.raises(CallFailed):
            taken.end()


def test_without_a_store_there_is_nothing_to_export_and_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["export", "a.jsonl", "--data-dir", str(tmp_path / "none")], {}, tmp_path) == 1
    assert list(tmp_path.iterdir()) == []
    assert "there is no store" in capsys.readouterr().err


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize(
    ("stdout", "reason"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_a_stdout_that_takes_nothing_is_a_failure_in_one_line(
    written: Written, tmp_path: Path, is_held: bool, stdout: str, reason: str
):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    place = written.data_dir if is_held else damaged_copy(written.data_dir, tmp_path / "copy")
    if not is_held:
        (place / "convmem.log").write_bytes((written.data_dir / "convmem.log").read_bytes())
    shell = f"exec {sys.executable} -m convmem export - --data-dir {place} {stdout}"
    done = subprocess.run(["sh", "-c", shell], cwd=REPOSITORY, env={}, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (1, f"convmem: the result cannot be written ({reason})\n")


@pytest.mark.parametrize("name", ["a.jsonl", "b/a.jsonl"])
def test_the_part_of_a_killed_export_is_swept_by_the_next(written: Written, tmp_path: Path, name: str):
    (tmp_path / "b").mkdir()
    part = (tmp_path / name).with_name(".convmem-7.part")
    part.write_text("half")
    assert run(["export", name], written.environment, tmp_path) == 0
    assert not part.exists()
