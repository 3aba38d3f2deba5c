"""salvaging.py: the verb's two directories, what it refuses, and its facts."""

import zlib
from pathlib import Path
from typing import Any

import pytest

from convmem import config, files, salvaging
from convmem.errors import LogTooNew, SettingInvalid, StoreLocked
from convmem.store.salvage import LeftOut, Missing, Salvaged
from convmem.store.wreck import Gap
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
        "gaps": [
            {"offset": 40, "size": 3, "reason": "damaged", "in_index": True},
            {"offset": 500, "size": 10, "reason": "damaged", "in_index": False},
        ],
        "missing": [{"first": "3", "last": "4"}, {"first": "9", "last": None}],
        "left_out": [{"sequence": "0", "reason": "no"}, {"sequence": "1", "reason": "no"}],
        "violations": ["wrong"],
    }
