"""Torn and zero-filled tails at every byte, with an index from before the last frame, without one, and with one that
knew.
"""

import pytest

from convmem.errors import LogCorrupt
from tests.support.notebook import Add, notes
from tests.support.stores import open_store
from tests.unit.store.test_recovery import disk_with

TEXTS = ["one", "two", "日本🟡"]


def written() -> tuple[bytes, list[int], list[bytes]]:
    opened = open_store()
    ends, images = [0], [opened.shelf.image()]
    for text in TEXTS:
        opened.commit(Add((text,)))
        ends.append(len(opened.log()))
        images.append(opened.shelf.image())
    return opened.log(), ends, images


LOG, ENDS, IMAGES = written()


def lives_on(data: bytes, index: bytes | None, expected: list[str]) -> None:
    """The start keeps `expected`, the next write is not glued to the tail, and a second start changes nothing."""
    disk = disk_with(data)
    opened = open_store(disk, index=index)
    assert [note for _, note in notes(opened.connection)] == expected
    assert opened.report.bytes_cut == len(data) - ENDS[len(expected)]
    opened.commit(Add(("fourth",)))
    assert opened.check() == []
    log = opened.log()
    again = open_store(disk)
    assert [note for _, note in notes(again.connection)] == [*expected, "fourth"]
    assert again.log() == log


@pytest.mark.parametrize("size", range(ENDS[2], ENDS[3] + 1))
@pytest.mark.parametrize("with_index", [True, False])
def test_a_record_torn_at_any_byte_is_cut_off(size: int, with_index: bool) -> None:
    expected = TEXTS if size == ENDS[3] else TEXTS[:2]
    lives_on(LOG[:size], IMAGES[2] if with_index else None, expected)


@pytest.mark.parametrize("size", range(ENDS[2], ENDS[3]))
def test_a_record_that_the_index_had_applied_is_never_cut_off(size: int) -> None:
    disk = disk_with(LOG[:size])
    with pytest.raises(LogCorrupt):
        open_store(disk, index=IMAGES[3])
    assert disk.names() == ["convmem.log"]
    assert disk.size("convmem.log") == size


@pytest.mark.parametrize("count", [1, 39, 40, 41, 512, 4_096, 150_000])
@pytest.mark.parametrize("which", [3, None])
def test_zeros_behind_the_last_record_are_cut_off(count: int, which: int | None) -> None:
    lives_on(LOG + bytes(count), None if which is None else IMAGES[which], TEXTS)


@pytest.mark.parametrize("index", [IMAGES[1], None])
def test_zeros_across_the_last_two_records_are_a_tail_if_nobody_was_told(index: bytes | None) -> None:
    middle = ENDS[1] + 20
    lives_on(LOG[:middle] + bytes(len(LOG) - middle), index, TEXTS[:1])


@pytest.mark.parametrize("which", [2, 3])
def test_zeros_over_a_record_that_the_index_had_applied_are_damage(which: int) -> None:
    middle = ENDS[1] + 20
    with pytest.raises(LogCorrupt):
        open_store(disk_with(LOG[:middle] + bytes(len(LOG) - middle)), index=IMAGES[which])


@pytest.mark.parametrize("index", [IMAGES[1], None])
def test_zeros_over_a_record_in_the_middle_are_damage(index: bytes | None) -> None:
    data = LOG[: ENDS[1]] + bytes(ENDS[2] - ENDS[1]) + LOG[ENDS[2] :]
    with pytest.raises(LogCorrupt):
        open_store(disk_with(data), index=index)
