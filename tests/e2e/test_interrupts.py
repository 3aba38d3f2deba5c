"""Commands that are ended in the middle: no trace of them on the terminal or on the disk."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convmem import config, daemon, offline, restoring
from convmem.cli import run
from convmem.config import Settings
from convmem.engine import Engine
from convmem.maintenance import Progress
from tests.support.commands import PROGRAM
from tests.support.filed import message, written
from tests.support.source import REPOSITORY

pytestmark = pytest.mark.slow
# Sends SIGINT to itself when the module that is named is about to be read.
INTERRUPTED_AT = """
import signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv[1:] = {arguments!r}
"""
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.mark.parametrize(
    "name", ["pathlib", "convmem.cli", "typer", "convmem.cli.call", "http.client", "convmem.daemon", "apsw"]
)
def test_an_interrupt_while_the_program_is_read_ends_it_without_a_word(tmp_path: Path, name: str):
    (tmp_path / "convmem.log").touch()
    code = INTERRUPTED_AT.format(name=name, arguments=["compact", "--data-dir", str(tmp_path)])
    # Without site, nothing has read these modules before; the paths are handed in.
    path = f"import sys; sys.path[:] = {[str(REPOSITORY), *sys.path]!r}\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", path + code + PROGRAM], capture_output=True, text=True, timeout=30, env={}
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return config.load({"data_dir": str(tmp_path / "data")}, {}, tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """So many records that the work tells how far it is, more than once."""
    records = [message(0, message_id=f"01BX5ZZKBK{number:016d}") for number in range(1500)]
    (tmp_path / "a.jsonl").write_bytes(written(records))
    return tmp_path / "a.jsonl"


def ended(number: signal.Signals, work: Callable[[Any], object]) -> int:
    """The status of work that is sent a signal when it first tells how far it is."""
    sent: list[str] = []

    def tell(done: float, total: float, sentence: str) -> None:
        if not sent:
            sent.append(sentence)
            signal.raise_signal(number)

    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(SystemExit) as left:
        work(tell)
    assert sent
    assert isinstance(left.value.code, int)
    return left.value.code


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.mark.parametrize("number", SIGNALS)
def test_an_import_leaves_nothing(settings: Settings, file: Path, number: signal.Signals):
    status = ended(number, lambda tell: offline.bring(settings, file, "reject", dry_run=False, tell=tell))
    assert status == SIGNALS[number]
    assert not {name for name in names(settings.data_dir) if name.startswith("staging-")}
    assert daemon.check(settings) == {"violations": [], "leftovers": []}
    assert offline.bring(settings, file, "reject", dry_run=False, tell=lambda *_: None)["new"] == 1500


@pytest.mark.parametrize("number", SIGNALS)
def test_a_restore_leaves_an_empty_directory(settings: Settings, file: Path, tmp_path: Path, number: signal.Signals):
    offline.bring(settings, file, "reject", dry_run=False, tell=lambda *_: None)
    copy, target = tmp_path / "copy", config.load({"data_dir": str(tmp_path / "target")}, {}, tmp_path)
    assert run(["backup", str(copy), "--data-dir", str(settings.data_dir)], {}, tmp_path) == 0
    assert ended(number, lambda tell: restoring.restore(target, copy, tell)) == SIGNALS[number]
    assert names(target.data_dir) == {"store.lock"}
    assert ended(number, lambda tell: restoring.verify(copy, tell)) == SIGNALS[number]
    assert restoring.restore(target, copy, lambda *_: None)["live"] == 1500


@pytest.mark.parametrize("number", SIGNALS)
def test_a_backup_and_any_other_work_on_an_own_store_are_left_in_order(
    settings: Settings, file: Path, tmp_path: Path, number: signal.Signals
):
    offline.bring(settings, file, "reject", dry_run=False, tell=lambda *_: None)
    arguments = {"dest": str(tmp_path / "copy")}
    assert ended(number, lambda tell: restoring.back_up(settings, arguments, tell)) == SIGNALS[number]

    async def work(engine: Engine, told: Progress) -> None:
        await told(1, 2, "at work")
        await asyncio.Event().wait()

    assert ended(number, lambda tell: daemon.operated(settings, work, tell)) == SIGNALS[number]
    assert daemon.check(settings) == {"violations": [], "leftovers": []}


@pytest.mark.parametrize("number", SIGNALS)
def test_an_export_leaves_no_part(
    settings: Settings, file: Path, tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
):
    offline.bring(settings, file, "reject", dry_run=False, tell=lambda *_: None)
    from convmem.cli.export import Export

    monkeypatch.setattr(Export, "take", lambda self, piece: signal.raise_signal(number))
    assert run(["export", "out.jsonl", "--data-dir", str(settings.data_dir)], {}, tmp_path) == SIGNALS[number]
    assert names(tmp_path) == {"data", "a.jsonl"}
