"""Compaction with the power cut at every step, the disk full at every step, and an input/output error at every step.

Whatever is left is the old generation or the new one, whole: every acknowledged command in it, no part of another, and
an index equal to a fresh fold of the log. What the disk only refused leaves the store in use as if nothing had been
tried, and the same store goes on writing.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw
import pytest

from convmem.errors import DiskFault, StorageFull, StoreFailed
from convmem.store import generation
from convmem.store.log import NAME
from tests.support.faulty_files import FaultyFiles, Names, PowerLost, Tear
from tests.support.notebook import Add, Strike, notes
from tests.support.stores import Opened, open_store

# Small enough that the state takes several frames.
STATE_FRAME_BYTES = 2_000
BEFORE: list[list[Any]] = [
    [Add(("a" * 900,)), Add(("b", "c"))],
    [Strike(1), Add(("d" * 1_300,)), Add(("e" * 1_200,))],
    [Add(("f" * 700,)), Strike(4), Add(("g",))],
]
MEANWHILE: list[list[Any]] = [[Add(("h" * 600,)), Strike(2)], [Add(("i",))]]
AFTERWARDS: list[Any] = [Add(("j",))]
TAIL = b"a tail that no start can read"


@contextmanager
def small_frames() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation, "STATE_FRAME_BYTES", STATE_FRAME_BYTES)
        yield


@pytest.fixture(autouse=True)
def frames_are_small() -> Iterator[None]:
    with small_frames():
        yield


def filled() -> Opened:
    """A store with something to compact, on a disk that has cut off a tail once."""
    disk = FaultyFiles()
    disk.open(NAME).write(0, TAIL)
    opened = open_store(disk)
    for batch in BEFORE:
        opened.commit(*batch)
    return opened


class Run(NamedTuple):
    """How far one compaction under writes came: the notes after each acknowledged batch."""

    opened: Opened
    acknowledged: list[list[tuple[int, str]]]


def play(opened: Opened) -> Iterator[list[tuple[int, str]]]:
    """Compact while batches are written, then write on; yields the notes after each acknowledged batch."""
    rewrite = opened.rewrite()
    rewrite.prepare()
    for batch in MEANWHILE:
        opened.commit(*batch)
        yield notes(opened.connection)
    rewrite.finish(opened.store)
    rewrite.clean()
    opened.commit(*AFTERWARDS)
    yield notes(opened.connection)


def whole() -> Run:
    opened = filled()
    start = notes(opened.connection)
    return Run(opened, [start, *play(opened)])


with small_frames():
    WHOLE = whole()
    FIRST = len(filled().disk.steps) + 1
STEPS = WHOLE.opened.disk.steps
COMPACTION = range(FIRST, len(STEPS) + 1)


def logs() -> tuple[bytes, bytes]:
    """The longest log of either generation, of which every log that is found must be a beginning."""
    opened = filled()
    for batch in MEANWHILE:
        opened.commit(*batch)
    return opened.log(), WHOLE.opened.log()


OLD_LOG, NEW_LOG = logs()


class Cut(NamedTuple):
    """A compaction whose power failed: the disk, the indexes as they were, how many batches were acknowledged."""

    disk: FaultyFiles
    images: dict[int, bytes]
    count: int


def cut(step: int) -> Cut:
    opened = filled()
    connections = opened.shelf.connections
    old = connections[1]
    opened.disk.cut_at_step = step
    count = 0
    try:
        for _ in play(opened):
            count += 1
    except PowerLost:
        for connection in {1: old, **connections}.values():
            if not connection.image and connection.in_transaction:
                connection.execute("ROLLBACK")
        new = opened.shelf.image(2) if 2 in connections else WHOLE.opened.shelf.image(2)
        return Cut(opened.disk, {1: old.image or old.serialize("main"), 2: new}, count)
    raise AssertionError("the power never failed")


FOUND_INDEXES = {"old": (1,), "new": (2,), "both": (1, 2), "none": ()}


@pytest.mark.parametrize("which", FOUND_INDEXES)
@pytest.mark.parametrize("names", Names)
@pytest.mark.parametrize("tear", Tear)
@pytest.mark.parametrize("step", COMPACTION)
def test_a_start_finds_the_old_generation_or_the_new_one_whole(step: int, tear: Tear, names: Names, which: str) -> None:
    stopped = cut(step)
    disk = stopped.disk.after_power_loss(tear, names)
    opened = open_store(disk, index={number: stopped.images[number] for number in FOUND_INDEXES[which]})
    kept = notes(opened.connection)
    last = len(WHOLE.acknowledged) - 1
    assert kept in (WHOLE.acknowledged[stopped.count], WHOLE.acknowledged[min(stopped.count + 1, last)])
    log = opened.log()
    assert (OLD_LOG if opened.store.log.generation == 1 else NEW_LOG).startswith(log)
    assert opened.check() == []
    assert not [name for name in disk.names() if name.startswith("staging")]
    assert opened.shelf.generations() == [opened.store.log.generation]
    # It is a store like any other: it takes writes, starts again, and can be compacted.
    opened.commit(Add(("later",)))
    again = open_store(disk)
    assert notes(again.connection) == [*kept, (opened.store.facts().sequence, "later")]
    assert again.report.bytes_cut == 0
    before = again.store.log.generation
    assert again.compact().generation == before + 1
    assert notes(again.connection) == notes(opened.connection)


def test_the_matrix_covers_every_kind_of_step() -> None:
    kinds = [STEPS[step - 1] for step in COMPACTION]
    assert set(kinds) == {"stage", "write", "sync", "rename", "sync directory", "remove"}
    assert kinds.count("write") >= 8, "several frames of state, and batches that were copied"
    assert kinds.index("rename") > kinds.index("sync")
    assert kinds.index("sync directory") > kinds.index("rename")


@pytest.mark.parametrize("names", Names)
@pytest.mark.parametrize("tear", Tear)
def test_a_cut_while_a_start_sweeps_up_is_swept_up_by_the_next(tear: Tear, names: Names) -> None:
    written = next(step for step in COMPACTION if STEPS[step - 1] == "sync")
    stopped = cut(written)
    found = stopped.disk.after_power_loss(Tear.HALF)
    assert [name for name in found.names() if name.startswith("staging")]
    for second in range(1, 10):
        disk = found.after_power_loss(Tear.EVERYTHING)
        disk.cut_at_step = second
        try:
            open_store(disk, index={1: stopped.images[1]})
        except PowerLost:
            disk = disk.after_power_loss(tear, names)
        disk.cut_at_step = None
        opened = open_store(disk, index={1: stopped.images[1]})
        assert notes(opened.connection) == WHOLE.acknowledged[0]
        assert not [name for name in disk.names() if name.startswith("staging")]


# The steps of a compaction alone, without writes beside it.
def alone() -> list[str]:
    opened = filled()
    before = len(opened.disk.steps)
    opened.compact()
    return opened.disk.steps[before:]


with small_frames():
    ALONE = alone()
BEFORE_NAMED = [number for number in range(1, len(ALONE) + 1) if number <= ALONE.index("rename") + 1]
REFUSALS = {errno.ENOSPC: StorageFull, errno.EDQUOT: StorageFull, errno.EIO: DiskFault, errno.EACCES: DiskFault}


@pytest.mark.parametrize("number", REFUSALS)
@pytest.mark.parametrize("step", BEFORE_NAMED)
def test_what_the_disk_refuses_leaves_the_store_as_it_was_and_in_use(step: int, number: int) -> None:
    opened = filled()
    log, files = opened.log(), opened.disk.names()
    opened.disk.fail_at_step, opened.disk.error = len(opened.disk.steps) + step, number
    with pytest.raises(REFUSALS[number]) as refused:
        opened.compact()
    assert refused.value.facts()["retryable"] == (REFUSALS[number] is StorageFull)
    assert opened.log() == log
    assert opened.disk.names() == files
    assert opened.shelf.generations() == [1]
    assert opened.store.log.generation == 1
    assert opened.check() == []
    assert opened.commit(Add(("goes on",)))[0]["sequence"] == opened.store.facts().sequence
    assert opened.compact().generation == 2
    assert notes(opened.connection)[-1][1] == "goes on"


@pytest.mark.parametrize("names", Names)
@pytest.mark.parametrize("number", REFUSALS)
def test_only_a_directory_that_cannot_be_synced_poisons_the_store_and_a_start_heals_it(
    number: int, names: Names
) -> None:
    opened = filled()
    known = notes(opened.connection)
    opened.disk.fail_at_step = len(opened.disk.steps) + ALONE.index("sync directory") + 1
    opened.disk.error = number
    rewrite = opened.rewrite()
    rewrite.prepare()
    with pytest.raises(StoreFailed):
        rewrite.finish(opened.store)
    rewrite.discard()
    images = {1: opened.shelf.image(1)}
    for tear in Tear:
        again = open_store(opened.disk.after_power_loss(tear, names), index=images)
        assert notes(again.connection) == known
        assert again.store.log.generation == (1 if names is Names.AS_SYNCED else 2)
        again.commit(Add(("goes on",)))
    with pytest.raises(StoreFailed):
        opened.commit(Add(("into a log without a name",)))


@pytest.mark.parametrize("number", REFUSALS)
def test_what_cannot_be_removed_afterwards_is_said_and_the_new_generation_is_in_use(number: int) -> None:
    opened = filled()
    known = notes(opened.connection)
    opened.disk.fail_at_step, opened.disk.error = len(opened.disk.steps) + ALONE.index("remove") + 1, number
    with pytest.raises(DiskFault):
        opened.compact()
    assert opened.store.log.generation == 2
    assert notes(opened.connection) == known
    opened.commit(Add(("goes on",)))
    assert [name for name in opened.disk.names() if name.startswith("cut-")]
    opened.disk.fail_at_step = None
    opened.compact()
    assert opened.disk.names() == [NAME]


@pytest.mark.parametrize(
    ("where", "error", "refusal"),
    [
        ("scratch", apsw.FullError("full"), StorageFull),
        ("scratch", apsw.CantOpenError("no"), DiskFault),
        ("build", apsw.FullError("full"), StorageFull),
        ("build", apsw.IOError("broken"), DiskFault),
        ("settle", OSError(errno.EIO, "broken"), DiskFault),
        ("settle", OSError(errno.ENOSPC, "full"), StorageFull),
        ("open", apsw.CantOpenError("no"), DiskFault),
    ],
)
def test_an_index_that_cannot_be_made_leaves_the_store_as_it_was(
    where: str, error: Exception, refusal: type[Exception]
) -> None:
    opened = filled()
    log, files = opened.log(), opened.disk.names()
    opened.shelf.refuses[where] = error
    with pytest.raises(refusal):
        opened.compact()
    opened.shelf.refuses.clear()
    assert (opened.log(), opened.disk.names(), opened.shelf.generations()) == (log, files, [1])
    opened.commit(Add(("goes on",)))
    assert opened.compact().generation == 2


def test_on_a_disk_of_any_size_compaction_succeeds_or_leaves_the_store_in_use() -> None:
    room = len(NEW_LOG) + 50
    outcomes: list[bool] = []
    for spare in range(0, room, 97):
        opened = filled()
        known = notes(opened.connection)
        opened.disk.capacity = sum(len(file.written) for file in opened.disk.files.values()) + spare
        try:
            opened.compact()
            outcomes.append(True)
        except StorageFull:
            outcomes.append(False)
            assert opened.disk.room() == spare, "what was staged is gone again"
        assert notes(opened.connection) == known
        opened.disk.capacity = None
        opened.commit(Add(("goes on",)))
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {True, False}
