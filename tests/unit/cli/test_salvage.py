"""cli/salvage: what was saved and what was lost, in sentences or as JSON; the status says which."""

import json
from pathlib import Path

import apsw
import pytest

from convmem.cli import run, salvage
from tests.support.wrecks import DAMAGES, SCRIPT, Wreck, expected

pytestmark = pytest.mark.slow


@pytest.fixture
def wreck(tmp_path: Path) -> Wreck:
    made = Wreck(tmp_path / "from")
    made.play(SCRIPT)
    return made


def damage(wreck: Wreck) -> None:
    """The fourth frame, in which the fourth message was written; nothing speaks of it."""
    frame = wreck.frames()[3]
    wreck.log.write_bytes(DAMAGES["a flipped bit"](wreck.log.read_bytes(), frame.offset, frame.header.frame_size))


def test_everything_saved_is_0_and_a_sentence(wreck: Wreck, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    before = wreck.image()
    assert run(["salvage", "--to", "to", "--data-dir", str(wreck.directory)], {}, tmp_path) == 0
    shown = capsys.readouterr()
    assert shown.out == (
        f"saved 6 records into {tmp_path / 'to'}, from the index and 13 frames of the log\n"
        "nothing is known to be lost\n"
    )
    assert shown.err == ""
    assert wreck.image() == before
    assert Wreck(tmp_path / "to").messages() == expected(wreck.ids, [])[0]


def test_what_is_lost_is_listed_and_is_3(wreck: Wreck, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    damage(wreck.drop_index())
    assert run(["salvage", "--to", str(tmp_path / "to"), "--data-dir", str(wreck.directory)], {}, tmp_path) == 3
    shown = capsys.readouterr().out.split("\n")
    assert shown[0].endswith(": the payload is damaged")
    assert shown[1] == "missing: entry 4"
    assert shown[-2] == "something was lost"


def test_the_same_as_json(wreck: Wreck, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    damage(wreck.drop_index())
    data_dir = str(wreck.directory)
    assert run(["salvage", "--to", str(tmp_path / "to"), "--data-dir", data_dir, "--json"], {}, tmp_path) == 3
    facts = json.loads(capsys.readouterr().out)
    assert facts["missing"] == [{"first": "4", "last": "4"}]
    assert facts["is_whole"] is False


def test_a_log_that_is_missing_is_said_to_be_and_its_index_saved(
    wreck: Wreck, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    wreck.log.unlink()
    assert run(["salvage", "--to", str(tmp_path / "to"), "--data-dir", str(wreck.directory)], {}, tmp_path) == 0
    assert capsys.readouterr().out.startswith("the log is missing\nsaved 6 records")


def test_every_kind_of_loss_has_its_sentence(tmp_path: Path):
    facts = {
        "has_log": True,
        "used_index": True,
        "frames": 3,
        "records": 1,
        "is_whole": False,
        "violations": ["the index: wrong"],
        "torn": {"offset": 20, "size": 4, "reason": "the header is damaged"},
        "gaps_count": 5,
        "missing_count": 3,
        "left_out_count": 1,
        "disagreements_count": 1,
        "gaps": [
            {"offset": 1, "size": 2, "reason": "damaged", "in_index": True},
            {"offset": 7, "size": 2, "reason": "damaged", "in_index": False},
        ],
        "missing": [{"first": "1", "last": "1"}, {"first": "3", "last": "4"}, {"first": "9", "last": None}],
        "left_out": [{"sequence": "5", "reason": "no"}],
        "disagreements": [{"sequence": "6"}],
    }
    assert list(salvage.report(facts, tmp_path)) == [
        "log, bytes 1 to 3: damaged (the index still had it)",
        "log, bytes 7 to 9: damaged",
        "log, bytes 20 to 24: a torn end (the header is damaged), which nobody was told of",
        "missing: entry 1",
        "missing: entries 3 to 4",
        "missing: entry 9 and all behind it",
        "left out: entry 5: no",
        "the index says something else of entry 6 than what was saved",
        "gaps: 3 more",
        "the index: wrong",
        f"saved 1 records into {tmp_path}, from the index and 3 frames of the log",
        "something was lost",
    ]


def test_where_there_is_no_store_nothing_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["salvage", "--to", str(tmp_path / "to"), "--data-dir", str(tmp_path)], {}, tmp_path) == 1
    assert "there is no store in" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_another_place_is_wrong_usage(wreck: Wreck, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "letter.txt").write_text("mine")
    assert run(["salvage", "--to", "to", "--data-dir", str(wreck.directory)], {}, tmp_path) == 2
    assert run(["salvage", "--data-dir", str(wreck.directory)], {}, tmp_path) == 2
    assert "SETTING_INVALID" in capsys.readouterr().err


def test_what_a_newer_program_wrote_is_12(wreck: Wreck, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    import zlib

    data = bytearray(wreck.log.read_bytes())
    data[4] = 9
    data[36:40] = zlib.crc32(bytes(data[:36])).to_bytes(4, "little")
    wreck.log.write_bytes(data)
    assert run(["salvage", "--to", "to", "--data-dir", str(wreck.directory)], {}, tmp_path) == 12
    assert "LOG_TOO_NEW" in capsys.readouterr().err


def test_where_log_and_index_disagree_that_is_said_and_is_3(
    wreck: Wreck, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    connection = apsw.Connection(str(wreck.directory / "index-1.db"))
    connection.execute("UPDATE messages_message SET content = upper(content) WHERE sequence = 1")
    connection.close()
    assert run(["salvage", "--to", str(tmp_path / "to"), "--data-dir", str(wreck.directory)], {}, tmp_path) == 3
    shown = capsys.readouterr().out.split("\n")
    assert shown[0] == "the index says something else of entry 1 than what was saved"
    assert shown[-2] == "log and index disagree: what the log says was saved"


def test_a_torn_end_is_said_and_is_no_loss(wreck: Wreck, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    wreck.log.write_bytes(wreck.log.read_bytes() + bytes(60))
    assert run(["salvage", "--to", str(tmp_path / "to"), "--data-dir", str(wreck.directory)], {}, tmp_path) == 0
    assert ": a torn end (the header is damaged)" in capsys.readouterr().out


def test_a_store_that_cannot_be_read_is_15_and_is_named(
    wreck: Wreck, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    wreck.log.unlink()
    wreck.log.symlink_to(wreck.log)
    assert run(["salvage", "--to", str(tmp_path / "to"), "--data-dir", str(wreck.directory)], {}, tmp_path) == 15
    assert str(wreck.log) in capsys.readouterr().err
    assert not (tmp_path / "to").exists()
