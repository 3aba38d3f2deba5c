"""salvaging.py: the verb's two directories, what it refuses, and its facts."""

import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from convmem import config, files, salvaging
from convmem.cli.asking import CallFailed, need_store
from convmem.errors import DataDirectoryUnusable, LogTooNew, SettingInvalid, StoreLocked
from convmem.store.rescue import LeftOut, Missing, Salvaged
from convmem.store.wreck import Gap
from tests.support.source import REPOSITORY
from tests.support.wrecks import SCRIPT, Wreck, expected


def silent(done: float, total: float, sentence: str) -> None:
    pass


def salvaged(data_dir: Path, to: Path) -> Any:
    return salvaging.salvage(config.load({"data_dir": str(data_dir)}, {}, data_dir), to, silent)


@pytest.fixture
def wreck(tmp_path: Path) -> Wreck:
    made = Wreck(tmp_path / "from")
    made.play(SCRIPT)
    return made


def test_a_store_goes_into_a_directory_that_is_made_for_it(wreck: Wreck, tmp_path: Path):
    facts = salvaged(wreck.directory, tmp_path / "new" / "to")
    assert (facts["is_whole"], facts["records"], facts["violations"]) == (True, 6, [])
    assert Wreck(tmp_path / "new" / "to").messages() == expected(wreck.ids, [])[0]
    assert (tmp_path / "new" / "to").stat().st_mode & 0o077 == 0


def test_it_may_be_held_by_a_daemon_all_the_while(wreck: Wreck, tmp_path: Path):
    lock = files.lock(wreck.directory / "store.lock")
    assert lock is not None
    store = wreck.open()
    before = wreck.image()
    assert salvaged(wreck.directory, tmp_path / "to")["is_whole"]
    assert wreck.image() == before
    store.close()
    lock.close()


@pytest.mark.parametrize("name", [".", "below", "below/that", "../from"])
def test_nothing_is_made_inside_the_damaged_store(wreck: Wreck, name: str):
    before = wreck.image()
    with pytest.raises(SettingInvalid, match="nothing there is changed"):
        salvaged(wreck.directory, wreck.directory / name)
    assert wreck.image() == before


def test_a_directory_with_anything_in_it_is_refused(wreck: Wreck, tmp_path: Path):
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "letter.txt").write_text("mine")
    with pytest.raises(SettingInvalid, match="is not empty"):
        salvaged(wreck.directory, tmp_path / "to")
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["letter.txt"]


def test_what_was_refused_can_be_tried_again(wreck: Wreck, tmp_path: Path):
    data = wreck.log.read_bytes()
    newer = bytearray(data)
    newer[4] = 9
    newer[36:40] = zlib.crc32(bytes(newer[:36])).to_bytes(4, "little")
    wreck.log.write_bytes(newer)
    with pytest.raises(LogTooNew):
        salvaged(wreck.directory, tmp_path / "to")
    wreck.log.write_bytes(data)
    assert salvaged(wreck.directory, tmp_path / "to")["is_whole"]


def test_a_directory_that_somebody_works_in_is_refused(wreck: Wreck, tmp_path: Path):
    (tmp_path / "to").mkdir()
    lock = files.lock(tmp_path / "to" / "store.lock")
    assert lock is not None
    with pytest.raises(StoreLocked):
        salvaged(wreck.directory, tmp_path / "to")
    lock.close()


def test_facts_list_what_is_lost_in_the_order_of_the_log_and_not_without_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(salvaging, "SALVAGE_LISTED_MAX", 2)
    found = Salvaged(
        generation=2,
        frames=7,
        gaps=[Gap(500, 10, "damaged"), Gap(900, 5, "damaged")],
        in_index=[Gap(40, 3, "damaged")],
        missing=[Missing(3, 4), Missing(9, None)],
        left_out=[LeftOut(number, "no") for number in range(5)],
        torn=Gap(990, 9, "torn"),
        disagreements=[1, 2, 3],
        records=8,
        sequence=11,
    )
    assert salvaging.facts(found, ["wrong"]) == {
        "is_whole": False,
        "records": 8,
        "sequence": "11",
        "generation": "2",
        "has_log": True,
        "used_index": False,
        "frames": 7,
        "bytes_skipped": 15,
        "gaps_count": 3,
        "missing_count": 2,
        "left_out_count": 5,
        "disagreements_count": 3,
        "torn": {"offset": 990, "size": 9, "reason": "torn"},
        "gaps": [
            {"offset": 40, "size": 3, "reason": "damaged", "in_index": True},
            {"offset": 500, "size": 10, "reason": "damaged", "in_index": False},
        ],
        "missing": [{"first": "3", "last": "4"}, {"first": "9", "last": None}],
        "left_out": [{"sequence": "0", "reason": "no"}, {"sequence": "1", "reason": "no"}],
        "disagreements": [{"sequence": "1"}, {"sequence": "2"}],
        "violations": ["wrong"],
    }


# Where a salvage is killed: at the first word of each part of its work.
PARTS = ("reading the log", "writing what was saved", "folding the index")
KILLED = """
import os, signal, sys
from pathlib import Path
from convmem import config, salvaging

def tell(done, total, sentence):
    if sentence == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

source = Path(sys.argv[1])
salvaging.salvage(config.load({"data_dir": str(source)}, {}, source), Path(sys.argv[2]), tell)
"""


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_a_salvage_that_was_killed_leaves_no_store_and_may_begin_again(wreck: Wreck, tmp_path: Path, part: str):
    target = tmp_path / "to"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(wreck.directory), str(target), part], cwd=REPOSITORY, timeout=30
    )
    assert done.returncode == -signal.SIGKILL
    left = {path.name for path in target.iterdir()}
    assert any(name.startswith("staging-") for name in left)
    with pytest.raises(CallFailed, match="there is no store in"):
        need_store(config.load({"data_dir": str(target)}, {}, target))
    assert {path.name for path in target.iterdir()} == left
    assert salvaged(wreck.directory, target)["is_whole"]
    assert sorted(path.name for path in target.iterdir()) == ["convmem.log", "index-2.db", "store.lock"]
    assert Wreck(target).messages() == expected(wreck.ids, [])[0]


@pytest.mark.parametrize("name", ["staging-notes.txt", "index-2.db", "convmem.log", ".probe"])
def test_what_no_salvage_leaves_behind_is_somebody_elses(wreck: Wreck, tmp_path: Path, name: str):
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / name).write_text("mine")
    with pytest.raises(SettingInvalid, match="is not empty"):
        salvaged(wreck.directory, tmp_path / "to")
    assert (tmp_path / "to" / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["convmem.log", "index-1.db", "index-1.db-wal"])
def test_a_store_that_cannot_be_read_is_the_one_that_is_named(wreck: Wreck, tmp_path: Path, name: str):
    """A name that leads to itself cannot be opened, by whoever it may be."""
    path = wreck.directory / name
    path.unlink(missing_ok=True)
    path.symlink_to(name)
    with pytest.raises(DataDirectoryUnusable) as refused:
        salvaged(wreck.directory, tmp_path / "new" / "to")
    assert refused.value.details["path"] == str(wreck.directory)
    assert str(path) in refused.value.message
    assert not (tmp_path / "new").exists()


def test_a_target_that_cannot_be_used_is_the_one_that_is_named(wreck: Wreck, tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataDirectoryUnusable) as refused:
        salvaged(wreck.directory, tmp_path / "file" / "to")
    assert refused.value.details["path"] == str(tmp_path / "file" / "to")
