"""An import with the power cut at every step, and the disk refusing at every step: the old store or the new one.

The same machinery as compaction; what is its own is that the new generation says more than the old one.
"""

import errno
from typing import NamedTuple

import pytest

from convmem.errors import DiskFault, StorageFull, StoreFailed
from convmem.store import generation
from convmem.transfer.intake import Intake
from tests.support.faulty_files import FaultyFiles, Names, PowerLost, Tear
from tests.support.filed import DOMAINS, exported, message, scanned, write, written
from tests.support.stores import Opened, open_store

FILE = written([message(number, content=str(number) * 500) for number in range(6)])


@pytest.fixture(autouse=True)
def frames_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "STATE_FRAME_BYTES", 2_000)


def filled(own: int) -> Opened:
    """A store with some messages of its own, or with none."""
    opened = open_store(FaultyFiles(), domain=DOMAINS[0])
    for number in range(own):
        opened.commit(write(f"own {number}"))
    return opened


def bring(opened: Opened) -> None:
    """The steps of an import on this store."""
    intake = Intake(scanned(FILE), DOMAINS, "reject", lambda done, total: None)
    intake.meet(opened.connection)
    rewrite = opened.rewrite(records=intake.records)
    rewrite.prepare()
    rewrite.finish(opened.store)
    rewrite.clean()


def contents(opened: Opened) -> bytes:
    return exported(opened.connection)


class Whole(NamedTuple):
    """An import that nothing disturbed: the store before and after, and the steps between by number."""

    before: bytes
    after: bytes
    steps: dict[int, str]


def whole(own: int) -> Whole:
    opened = filled(own)
    before, first = contents(opened), len(opened.disk.steps) + 1
    bring(opened)
    return Whole(before, contents(opened), dict(enumerate(opened.disk.steps[first - 1 :], first)))


with pytest.MonkeyPatch.context() as patch:
    patch.setattr(generation, "STATE_FRAME_BYTES", 2_000)
    WHOLE = {own: whole(own) for own in (0, 3)}
STEPS = [(own, step) for own, found in WHOLE.items() for step in found.steps]


def test_the_matrix_has_something_to_cut():
    for before, after, steps in WHOLE.values():
        assert after.count(b"\n") == before.count(b"\n") + 6
        assert {"stage", "write", "sync", "rename", "sync directory"} <= set(steps.values())


@pytest.mark.parametrize("is_index_there", [True, False])
@pytest.mark.parametrize("names", Names)
@pytest.mark.parametrize("tear", Tear)
@pytest.mark.parametrize(("own", "step"), STEPS)
def test_a_cut_leaves_the_old_store_or_the_new_one(own: int, step: int, tear: Tear, names: Names, is_index_there: bool):
    opened = filled(own)
    opened.disk.cut_at_step = step
    with pytest.raises(PowerLost):
        bring(opened)
    disk = opened.disk.after_power_loss(tear, names)
    # Both indexes as they lay there, or none.
    index = {number: opened.shelf.image(number) for number in opened.shelf.connections} if is_index_there else None
    again = open_store(disk, domain=DOMAINS[0], index=index)
    assert contents(again) in (WHOLE[own].before, WHOLE[own].after)
    assert again.check() == []
    assert disk.names() == ["convmem.log"]
    again.commit(write("later"))
    assert again.check() == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize(("own", "step"), STEPS)
def test_what_the_disk_refuses_leaves_the_store_in_use(own: int, step: int, number: int):
    opened, (before, after, steps) = filled(own), WHOLE[own]
    opened.disk.fail_at_step, opened.disk.error = step, number
    is_late = steps[step] == "sync directory"
    with pytest.raises(StoreFailed if is_late else StorageFull if number == errno.ENOSPC else DiskFault):
        bring(opened)
    opened.disk.fail_at_step = None
    if is_late:
        opened.declare_damaged()
        opened = open_store(opened.disk, domain=DOMAINS[0])
        assert contents(opened) in (before, after)
    else:
        assert contents(opened) == before
    opened.commit(write("goes on"))
    assert opened.check() == []
