"""store/log.py: where the log ends, how it grows, how it is read."""

import errno

import pytest

from convmem.errors import StoreFailed
from convmem.store import frame
from convmem.store.frame import HEADER_SIZE, Fault
from convmem.store.log import NAME, READ_AHEAD_BYTES, Frame, Log, Position, Reader
from tests.support.faulty_files import FaultyFiles


def fresh(disk: FaultyFiles) -> Log:
    return Log(disk.open(NAME), generation=1, end=Position(0, 1))


def test_frames_come_back_in_order_whatever_their_size() -> None:
    disk = FaultyFiles()
    log = fresh(disk)
    payloads = [b"", b"a", b"b" * 70_000, b"c" * (READ_AHEAD_BYTES + 3), b"d"]
    for number, payload in enumerate(payloads, 1):
        log.append(payload, number)
    found = list(log.frames())
    assert [one.payload for one in found] == payloads
    assert [one.header.sequence for one in found] == [1, 2, 4, 7, 11]
    assert found[-1].end == log.end == Position(disk.size(NAME), 16)


def test_frames_can_be_read_from_the_middle() -> None:
    log = fresh(FaultyFiles())
    log.append(b"a", 1)
    middle = log.end.offset
    log.append(b"b", 1)
    assert [one.payload for one in log.frames(middle)] == [b"b"]


def test_a_reader_given_the_log_byte_by_byte_finds_only_whole_frames() -> None:
    disk = FaultyFiles()
    log = fresh(disk)
    log.append(b"first", 1)
    log.append(b"second", 2)
    ends = [0, HEADER_SIZE + 5, 2 * HEADER_SIZE + 11]
    for end in range(log.end.offset + 1):
        reader, offset, count = Reader(disk.files[NAME], end=end), 0, 0
        while isinstance(found := reader.frame(offset), Frame):
            offset, count = found.end.offset, count + 1
        assert offset == max(one for one in ends if one <= end)
        assert (found is Fault.NONE) == (end in ends)


def test_a_failed_append_leaves_the_end_where_it_was_and_can_be_cut_back() -> None:
    disk = FaultyFiles()
    log = fresh(disk)
    log.append(b"kept", 1)
    end = log.end
    disk.fail_at_step, disk.error = len(disk.steps) + 1, errno.ENOSPC
    with pytest.raises(OSError, match="made to fail"):
        log.append(b"lost" * 100, 1)
    assert log.end == end
    assert disk.size(NAME) > end.offset
    log.cut_back(end)
    assert disk.size(NAME) == end.offset
    log.append(b"next", 1)
    assert [one.payload for one in log.frames()] == [b"kept", b"next"]


def test_a_log_without_a_name_is_not_durable() -> None:
    disk = FaultyFiles()
    log = fresh(disk)
    log.append(b"a", 1)
    disk.remove(NAME)
    with pytest.raises(StoreFailed):
        log.sync()


def test_a_log_that_changes_under_the_daemon_is_noticed_when_it_is_read() -> None:
    disk = FaultyFiles()
    log = fresh(disk)
    log.append(b"abcd", 1)
    file = disk.files[NAME]
    file.written = file.written[:-1] + b"x"
    with pytest.raises(StoreFailed):
        list(log.frames())


@pytest.mark.parametrize("gap", [1, 3, HEADER_SIZE, READ_AHEAD_BYTES - 2, READ_AHEAD_BYTES - 1, READ_AHEAD_BYTES + 1])
def test_a_whole_frame_behind_damage_is_found_at_any_distance(gap: int) -> None:
    disk = FaultyFiles()
    file = disk.open(NAME)
    good = frame.encode(generation=1, sequence=2, entry_count=1, payload=b"good")
    file.write(0, b"\xff" * gap + good)
    assert Reader(file, end=file.size()).has_frame_after(0)
    assert not Reader(file, end=file.size() - 1).has_frame_after(0)


def test_the_magic_alone_is_no_frame() -> None:
    disk = FaultyFiles()
    file = disk.open(NAME)
    file.write(0, frame.MAGIC * 100)
    assert not Reader(file, end=file.size()).has_frame_after(0)
