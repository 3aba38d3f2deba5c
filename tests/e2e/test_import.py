"""An import is killed without a warning at random moments: the old store is whole each time."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.commands import command, ran
from tests.support.daemons import complaints
from tests.support.filed import MANIFEST, written

pytestmark = pytest.mark.slow

RECORDS, KILLS = 12_000, 10


def ulid(number: int) -> str:
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    return "01HF7YAT00000000000000" + "".join(digits[number // 32**place % 32] for place in (3, 2, 1, 0))


def big(path: Path) -> Path:
    line = (
        '{"type":"message","message_id":"%s","session_id":"s%d","timestamp":%d,"updated_at":%d,"revision":1,'
        '"role":"user","content":"%s","metadata":{"tags":[]},"origin":{"device":"d","transport":"http"}}'
    )
    records = [
        (line % (ulid(number), number % 50, number, number, f"text {number} " * 12)).encode()
        for number in range(RECORDS)
    ]
    path.write_bytes(written(records, MANIFEST[:-1] + b',"records":%d}' % RECORDS))
    return path


def export(data_dir: Path) -> str:
    done = ran("export", "-", "--data-dir", str(data_dir))
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\n")[2]


@pytest.mark.parametrize("is_held", [False, True])
def test_a_killed_import_leaves_the_old_store_whole(tmp_path: Path, is_held: bool):
    dice = random.Random(20261130)
    file, data_dir = big(tmp_path / "big.jsonl"), tmp_path / "data"
    small = tmp_path / "small.jsonl"
    small.write_bytes(b"\n".join(file.read_bytes().split(b"\n")[1:400]).join([MANIFEST + b"\n", b"\n"]))
    arguments = ["--data-dir", str(data_dir)]
    assert ran("import", str(small), *arguments).returncode == 0
    before = export(data_dir)
    begun = time.monotonic()
    assert ran("import", str(file), "--data-dir", str(tmp_path / "other")).returncode == 0
    takes_s = time.monotonic() - begun
    whole = 0
    for _ in range(KILLS // 2):
        kill_during_import(file, data_dir, dice.uniform(0.2, 1.0) * takes_s, is_held=is_held)
        assert complaints(data_dir) == []
        found = export(data_dir)
        whole += found != before
        assert found == before or found.count("\n") == RECORDS
        if found != before:
            break
    assert ran("import", str(file), *arguments).returncode == 0
    assert export(data_dir).count("\n") == RECORDS
    assert [path.name for path in data_dir.iterdir() if path.name.startswith("staging")] == []


def kill_during_import(file: Path, data_dir: Path, after_s: float, *, is_held: bool) -> None:
    """Begin an import, by this process or by a daemon, and kill whoever does it after some time."""
    place = ["--data-dir", str(data_dir)]
    serving = None
    if is_held:
        serving = subprocess.Popen(
            command("serve", *place, "--bind", "127.0.0.1:0"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert serving.stdout is not None
        with serving.stdout:
            assert b"http://" in serving.stdout.readline()
    importing = subprocess.Popen(
        command("import", str(file), *place), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        importing.wait(after_s)
    except subprocess.TimeoutExpired:
        (serving or importing).send_signal(signal.SIGKILL)
    finally:
        if serving is not None:
            serving.kill()
            serving.wait()
        importing.wait(30)
