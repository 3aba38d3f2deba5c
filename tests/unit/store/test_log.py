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


def state_log() -> tuple[FaultyFiles, Log]:
    """A log of the second generation: two frames of state, its end, two batches."""
    disk = FaultyFiles()
    log = Log(disk.open(NAME), generation=2, end=Position(0, 1))
    log.append_state(b"one", 3, 2)
    log.append_state(b"two", 8, 1)
    log.append_state(b"end", 11, 0)
    log.append(b"twelve", 2)
    log.append(b"fourteen", 1)
    return disk, log


def test_a_state_may_have_gaps_and_batches_go_on_behind_what_it_speaks_for() -> None:
    disk, log = state_log()
    assert log.end == Position(disk.size(NAME), 15)
    found = list(log.frames())
    assert [one.payload for one in found] == [b"one", b"two", b"end", b"twelve", b"fourteen"]
    assert [one.header.sequence for one in found] == [3, 8, 11, 12, 14]
    assert [one.end.next_sequence for one in found] == [3, 8, 12, 14, 15]


def test_a_state_that_speaks_for_nothing_opens_an_empty_log() -> None:
    log = Log(FaultyFiles().open(NAME), generation=2, end=Position(0, 1))
    log.append_state(b"", 0, 0)
    assert log.end == Position(HEADER_SIZE, 1)


def test_records_of_a_state_come_by_rising_sequence() -> None:
    log = Log(FaultyFiles().open(NAME), generation=2, end=Position(0, 1))
    log.append_state(b"one", 3, 1)
    log.append_state(b"of the same entry", 3, 1)
    for count in (1, 0):
        with pytest.raises(AssertionError):
            log.append_state(b"before it", 2, count)


def test_a_log_can_be_read_as_it_was_while_it_grows() -> None:
    _, log = state_log()
    was = log.until(log.end)
    log.append(b"later", 1)
    assert [one.payload for one in was.frames()][-1] == b"fourteen"
    assert (was.generation, was.end.next_sequence) == (2, 15)
    assert [one.payload for one in log.frames()][-1] == b"later"


def walked(disk: FaultyFiles, end: int, generation: int = 2) -> tuple[int, Fault]:
    """How many frames a walk finds, and what ends it."""
    *found, last = Reader(disk.files[NAME], end=end).walk(0, generation)
    assert all(isinstance(one, Frame) for one in found)
    assert isinstance(last, Fault)
    return len(found), last


def test_a_walk_ends_with_the_fault_that_stands_there() -> None:
    disk, log = state_log()
    ends = [one.end.offset for one in log.frames()]
    assert walked(disk, ends[4]) == (5, Fault.NONE)
    assert walked(disk, ends[3]) == (4, Fault.NONE)
    assert walked(disk, ends[2]) == (3, Fault.NONE)
    for count in (1, 2):
        assert walked(disk, ends[count - 1]) == (count, Fault.STATE_NOT_ENDED)
    assert walked(disk, 0) == (0, Fault.NONE)
    assert walked(disk, ends[4] - 1) == (4, Fault.SHORT_PAYLOAD)
    assert walked(disk, ends[3] + 3) == (4, Fault.SHORT_HEADER)
    assert walked(disk, ends[4], generation=3) == (0, Fault.OUT_OF_PLACE)


def test_a_walk_that_begins_in_the_middle_knows_what_may_follow() -> None:
    disk, log = state_log()
    one, two, end, *_ = log.frames()
    reader = Reader(disk.files[NAME], end=log.end.offset)
    assert next(reader.walk(two.offset, 2, one.header)) == two
    assert next(reader.walk(end.end.offset, 2, two.header)) is Fault.OUT_OF_PLACE, "a state without its end"
    cut = Reader(disk.files[NAME], end=two.end.offset)
    assert list(cut.walk(two.end.offset, 2, two.header)) == [Fault.STATE_NOT_ENDED]


def test_a_header_can_be_read_although_its_payload_is_torn() -> None:
    disk, log = state_log()
    reader = Reader(disk.files[NAME], end=HEADER_SIZE + 1)
    assert reader.frame(0) is Fault.SHORT_PAYLOAD
    assert reader.header(0) == next(log.frames()).header
    assert Reader(disk.files[NAME], end=HEADER_SIZE - 1).header(0) is Fault.SHORT_HEADER


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
