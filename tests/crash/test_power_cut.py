"""Cut the power at every step, in every way, with every index that could be found next.

Whatever is left must hold every command that was acknowledged, no part of one, and an index equal to a fresh fold of
the log; and it must be a disk that one can go on writing to.
"""

from typing import Any, NamedTuple

import apsw
import pytest

from convmem.errors import ConvmemError
from tests.support.faulty_files import FaultyFiles, Names, PowerLost, Tear
from tests.support.notebook import NOTE_MAX, Add, Strike, notes
from tests.support.stores import Opened, open_store

BATCHES: list[list[Any]] = [
    [Add(("a" * 700,))],
    [Add(("b", "c")), Add(("refused", "x" * (NOTE_MAX + 1))), Strike(1), Add(("d" * 1_300,))],
    [Strike(99)],
    [Strike(2), Add(("e",))],
    [Add(("f" * 1_900,)), Add(("g" * 1_900,))],
]


class Run(NamedTuple):
    opened: Opened
    images: list[bytes]
    acknowledged: list[list[tuple[int, str]]]


def run(disk: FaultyFiles, history: Run | None = None) -> Run:
    opened = open_store(disk)
    done = history or Run(opened, [opened.shelf.image()], [[]])
    for batch in BATCHES:
        outcomes = opened.commit(*batch)
        assert all(isinstance(outcome, dict | ConvmemError) for outcome in outcomes)
        done.images.append(opened.shelf.image())
        done.acknowledged.append(notes(opened.connection))
    return done


WHOLE = run(FaultyFiles())
STEPS = len(WHOLE.opened.disk.steps)


def cut(step: int) -> tuple[FaultyFiles, int, bytes | None]:
    """Run until the power fails at `step`; return the disk, how many batches were acknowledged, the index as it was."""
    disk = FaultyFiles(cut_at_step=step)
    count, live = 0, None
    try:
        opened = open_store(disk)
        for batch in BATCHES:
            live = opened.connection
            opened.commit(*batch)
            count += 1
    except PowerLost:
        if live is not None and live.in_transaction:
            live.execute("ROLLBACK")
        return disk, count, live.serialize("main") if live is not None else None
    raise AssertionError("the power never failed")


def found_index(which: str, count: int, live: bytes | None) -> bytes | None:
    """The index that the next start may find: as it was, an older one (its last commits lost), or none."""
    return {
        "as it was": live,
        "last acknowledged": WHOLE.images[count],
        "one older": WHOLE.images[max(0, count - 1)],
        "empty": WHOLE.images[0],
        "none": None,
    }[which]


@pytest.mark.parametrize("names", Names)
@pytest.mark.parametrize("which", ["as it was", "last acknowledged", "one older", "empty", "none"])
@pytest.mark.parametrize("tear", Tear)
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_nothing_acknowledged_is_lost(step: int, tear: Tear, which: str, names: Names) -> None:
    disk, count, live = cut(step)
    found = disk.after_power_loss(tear, names)
    index = found_index(which, count, live)
    opened = open_store(found, index=index)
    kept = notes(opened.connection)
    # Exactly what was acknowledged, or that and the one batch whose answer was under way.
    assert kept in (WHOLE.acknowledged[count], WHOLE.acknowledged[min(count + 1, len(BATCHES))])
    assert opened.check() == []
    # The survivor is a disk one can go on using, and the next start finds the same.
    opened.commit(Add(("later",)))
    again = open_store(found, index=None)
    assert notes(again.connection) == notes(opened.connection)
    assert again.report.bytes_cut == 0


@pytest.mark.parametrize("names", Names)
@pytest.mark.parametrize("tear", Tear)
@pytest.mark.parametrize("second", range(1, 8))
def test_a_cut_during_recovery_is_recovered_from(second: int, tear: Tear, names: Names) -> None:
    disk, count, _ = cut(STEPS)
    torn = disk.after_power_loss(Tear.HALF)
    torn.cut_at_step = second
    try:
        open_store(torn)
    except PowerLost:
        torn = torn.after_power_loss(tear, names)
    torn.cut_at_step = None
    opened = open_store(torn)
    assert notes(opened.connection) in (WHOLE.acknowledged[count], WHOLE.acknowledged[-1])
    assert opened.check() == []


def test_the_matrix_covers_every_kind_of_step() -> None:
    assert set(WHOLE.opened.disk.steps) == {"create", "write", "sync"}
    assert STEPS >= 9


def test_an_index_image_is_what_a_file_would_hold() -> None:
    copy = apsw.Connection(":memory:")
    copy.deserialize("main", WHOLE.images[-1])
    assert notes(copy) == WHOLE.acknowledged[-1]
