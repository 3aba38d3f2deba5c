"""cli/compact: what was gained, from whoever holds the store or from this process."""

import json
from pathlib import Path

import pytest

from convmem.cli import run
from tests.support.wrecks import LATER, SCRIPT, Wreck, expected
from tests.support.written import Written

pytestmark = pytest.mark.slow


@pytest.fixture
def wreck(tmp_path: Path) -> Wreck:
    made = Wreck(tmp_path / "data")
    made.play(SCRIPT)
    return made


def test_a_store_that_nobody_holds_is_compacted_here(wreck: Wreck, capsys: pytest.CaptureFixture[str]):
    before = wreck.log.stat().st_size
    assert run(["compact", "--data-dir", str(wreck.directory)], {}, Path("/")) == 0
    after = wreck.log.stat().st_size
    assert after < before
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.startswith(
        f"{before:,} bytes of log are now {after:,}: 2 deleted records and 0 references to what is gone were dropped,"
        " 6 records live on in generation 2 ("
    )
    assert wreck.messages() == expected(wreck.ids, [])[0]
    wreck.play(LATER)


def test_a_second_time_there_is_nothing_to_do(wreck: Wreck, capsys: pytest.CaptureFixture[str]):
    for _ in range(2):
        assert run(["compact", "--data-dir", str(wreck.directory)], {}, Path("/")) == 0
    size = wreck.log.stat().st_size
    assert capsys.readouterr().out.split("\n")[1] == f"nothing to do: 6 records, {size:,} bytes of log"
    assert run(["compact", "--json", "--data-dir", str(wreck.directory)], {}, Path("/")) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rebuilt"], facts["live"], facts["log_bytes_after"]) == (False, 6, size)


def test_an_index_that_is_missing_is_made_first(wreck: Wreck, capsys: pytest.CaptureFixture[str]):
    wreck.drop_index()
    assert run(["compact", "--json", "--data-dir", str(wreck.directory)], {}, Path("/")) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 2


def test_whoever_holds_the_store_compacts_it(written: Written, capsys: pytest.CaptureFixture[str]):
    assert run(["compact"], written.environment, Path("/")) == 0
    assert "records" in capsys.readouterr().out
    assert run(["compact", "--url", written.daemon.url], {}, Path("/")) == 0
    assert "records" in capsys.readouterr().out


def test_where_there_is_no_store_none_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["compact", "--data-dir", str(tmp_path)], {}, Path("/")) == 1
    assert "there is no store in" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
