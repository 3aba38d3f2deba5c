"""hooks/late: what came while others had the spool is kept in order until it is handed over."""

import fcntl
from pathlib import Path

import pytest

from convmem.hooks.late import Late
from convmem.limits import SPOOL_LATE_BYTES_MAX
from tests.support.manual_clock import ManualClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "name.late"


@pytest.fixture
def late(path: Path) -> Late:
    return Late(str(path), ManualClock())


def handed_over(late: Late) -> list[bytes]:
    given: list[bytes] = []
    assert late.hand_over(given.append, 5)
    assert late.is_empty()
    return given


def test_what_was_added_is_handed_over_in_order_and_once(late: Late, path: Path):
    assert late.is_empty()
    assert handed_over(late) == []
    assert not path.exists(), "looking makes nothing"
    assert late.add(b"one\n")
    assert late.add(b"two\nthree\n")
    assert not late.is_empty()
    assert path.stat().st_mode & 0o777 == 0o600
    assert handed_over(late) == [b"one\ntwo\nthree\n"]
    assert handed_over(late) == []


def test_a_line_that_was_never_finished_spoils_no_other(late: Late, path: Path):
    path.write_bytes(b"tor")
    assert late.add(b"one\n")
    assert handed_over(late) == [b"tor\none\n"]


def test_what_cannot_be_put_elsewhere_stays(late: Late):
    def refuse(data: bytes) -> None:
        raise OSError(28, "No space left on device")

    assert late.add(b"one\n")
    with pytest.raises(OSError, match="No space"):
        late.hand_over(refuse, 5)
    assert handed_over(late) == [b"one\n"]


def test_there_is_room_for_so_much(late: Late):
    assert late.add(b"x" * (SPOOL_LATE_BYTES_MAX - 1) + b"\n")
    assert not late.add(b"y\n")
    assert [len(data) for data in handed_over(late)] == [SPOOL_LATE_BYTES_MAX]
    assert late.add(b"y\n")


def test_who_keeps_it_too_long_is_not_waited_for(late: Late, path: Path):
    assert late.add(b"one\n")
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert not late.add(b"two\n")
        assert not late.hand_over(lambda data: None, 3)
    assert handed_over(late) == [b"one\n"]
