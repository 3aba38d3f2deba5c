"""hooks/detaching: the work goes on in a process that belongs to nobody, one at a time."""

import os
import time
from pathlib import Path

import pytest

from convmem.hooks import detaching
from convmem.hooks.claim import Claim
from convmem.hooks.spool import Spool
from tests.support.deliverers import deliverers, kill_deliverers, nobody_left
from tests.support.manual_clock import ManualClock

WAIT_MS = 10_000


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(str(tmp_path / "convmem" / "spool"), "name", ManualClock())


def claimed(spool: Spool) -> Claim:
    claim = spool.ask_for_claim(WAIT_MS)
    assert claim is not None
    return claim


def begin(claim: Claim) -> None:
    """Have it held until somebody asks for it."""

    def work() -> None:
        while not claim.is_over():
            os.sched_yield()

    detaching.begin(claim, work)


@pytest.mark.slow
def test_a_process_of_its_own_keeps_the_claim_until_its_end(spool: Spool, tmp_path: Path):
    with nobody_left(tmp_path):
        begin(claimed(spool))
        assert spool.claim() is None
        (found,) = deliverers(tmp_path)
        assert found != os.getpid()
        assert os.getsid(found) != os.getsid(0)
        assert os.readlink(f"/proc/{found}/cwd") == "/"
        assert {os.readlink(f"/proc/{found}/fd/{number}") for number in range(3)} == {"/dev/null"}
        assert kill_deliverers(tmp_path) == 1
        claimed(spool).close()


@pytest.mark.slow
def test_work_that_needs_no_claim_is_done_too(tmp_path: Path):
    ours, theirs = os.pipe()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    detaching.begin(None, lambda: fifo.write_text(str(os.getsid(0))))
    assert int(fifo.read_text()) != os.getsid(0)
    os.close(theirs)
    # Whoever waits for the end of a pipe does not wait for what was begun.
    assert os.read(ours, 1) == b""
    os.close(ours)


@pytest.mark.slow
def test_it_leaves_when_somebody_else_asks(spool: Spool, tmp_path: Path):
    with nobody_left(tmp_path):
        begin(claimed(spool))
        claimed(spool).close()
        assert deliverers(tmp_path) == []


@pytest.mark.slow
def test_a_fault_in_it_ends_it_alone_and_in_silence(spool: Spool, capfd: pytest.CaptureFixture[str]):
    detaching.begin(claimed(spool), lambda: 1 // 0)
    claimed(spool).close()
    assert capfd.readouterr() == ("", "")


def test_where_no_process_can_be_made_the_claim_is_given_back(spool: Spool, monkeypatch: pytest.MonkeyPatch):
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    begin(claimed(spool))
    claim = spool.claim()
    assert claim is not None
    claim.close()


def children() -> set[int]:
    """The processes that this one would have to wait for."""
    listed = Path("/proc/thread-self/children")
    if not listed.exists():
        pytest.skip("the system does not list the children of a process")
    return {int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


@pytest.mark.slow
def test_nobody_waits_for_it(spool: Spool, tmp_path: Path):
    with nobody_left(tmp_path):
        before = children()
        begun = time.monotonic()
        begin(claimed(spool))
        assert time.monotonic() - begun < 5
        assert children() <= before, "what it started is nobody's child"
