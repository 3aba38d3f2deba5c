"""store/recovery.py: each row of the table, made with a hex editor."""

from collections.abc import Callable
from itertools import product

import pytest

from convmem.errors import LogCorrupt, LogTooNew
from convmem.store import generation, opening, recovery
from convmem.store.frame import HEADER_SIZE, Fault
from convmem.store.log import NAME, Frame, Position, Reader
from convmem.store.recovery import DECISIONS, Decision, Facts, Witness
from tests.support.faulty_files import FaultyFile, FaultyFiles
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK, Add, Strike, notes
from tests.support.stores import MemoryShelf, open_store
from tests.unit.store.test_frame import resealed

Damage = Callable[[bytes, int, int], bytes]


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def version(data: bytes, start: int, end: int) -> bytes:
    header = bytearray(data[start : start + HEADER_SIZE])
    header[4] = 9
    return data[:start] + resealed(bytes(header)) + data[start + HEADER_SIZE :]


# What is done to the bytes of a log at the frame that spans start..end.
DAMAGE: dict[Fault, Damage] = {
    Fault.NONE: lambda data, start, end: data[:start] + data[end:],
    Fault.SHORT_HEADER: lambda data, start, end: data[: start + 5],
    Fault.BAD_HEADER: lambda data, start, end: flip(data, start + 9),
    Fault.SHORT_PAYLOAD: lambda data, start, end: data[: end - 1],
    Fault.BAD_PAYLOAD: lambda data, start, end: flip(data, end - 1),
    Fault.OUT_OF_PLACE: lambda data, start, end: data[:start] + data[: end - start] + data[end:],
    Fault.TOO_NEW: version,
}


def log_of(count: int) -> tuple[bytes, list[Position], list[bytes]]:
    """A log of equal frames, where they begin, and the index after each."""
    opened = open_store()
    starts, images = [Position(0, 1)], []
    for number in range(count):
        opened.commit(Add((f"note {number}",)))
        starts.append(Position(len(opened.log()), number + 2))
        images.append(opened.shelf.image())
    return opened.log(), starts, images


def disk_with(data: bytes) -> FaultyFiles:
    disk = FaultyFiles()
    disk.files[NAME] = FaultyFile(disk, saved=data, written=data)
    return disk


def compacted(monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, list[int], dict[int, bytes]]:
    """A log that opens with a state of three frames, its end, and one batch; where each begins; its index."""
    monkeypatch.setattr(generation, "STATE_FRAME_BYTES", 1)
    opened = open_store()
    for number in range(4):
        opened.commit(Add((f"note {number}",)))
    opened.commit(Strike(2))
    opened.compact()
    opened.commit(Add(("afterwards",)))
    starts = [one.offset for one in opened.store.log.frames()]
    assert len(starts) == 5
    return opened.log(), starts, {2: opened.shelf.image()}


def make(facts: Facts) -> tuple[bytes, Witness | None, int]:
    """A log of three frames that shows these facts, with the witness for it, and how many entries are good."""
    if facts.fault is Fault.STATE_NOT_ENDED:
        with pytest.MonkeyPatch.context() as patch:
            data, begins, _ = compacted(patch)
        # The frame that says `through` is missing: the third record of the state is the fourth that was ever added.
        return data[: begins[3]], None, 3
    data, starts, _ = log_of(3)
    hurt = 1 if facts.later else 2
    start, end = starts[hurt].offset, starts[hurt + 1].offset
    if facts.fault is Fault.SHORT_PAYLOAD and facts.later:
        # A header that promises more than the file holds, in front of a frame that is whole.
        header = bytearray(data[start : start + HEADER_SIZE])
        header[28:32] = (1_000_000).to_bytes(4, "little")
        data = data[:start] + resealed(bytes(header)) + data[start + HEADER_SIZE :]
    elif not (facts.fault is Fault.NONE and not facts.witnessed):
        data = DAMAGE[facts.fault](data, start, end)
    applied = hurt + 1 if facts.witnessed else hurt
    witness = Witness(1, starts[applied - 1], starts[applied])
    return data, witness, 3 if (facts.fault is Fault.NONE and not facts.witnessed) else hurt


@pytest.mark.parametrize("facts", DECISIONS, ids=str)
def test_each_row(facts: Facts) -> None:
    data, witness, good = make(facts)
    disk = disk_with(data)
    match DECISIONS[facts]:
        case Decision.KEEP | Decision.CUT as decision:
            log, report = recovery.recover(disk, witness)
            assert log.end.next_sequence == good + 1
            assert (report.bytes_cut > 0) == (decision is Decision.CUT)
            assert disk.files[NAME].saved == data[: log.end.offset]
            if decision is Decision.CUT:
                assert disk.files[str(report.side_file)].saved == data[log.end.offset :]
                assert report.fault == facts.fault.value
        case Decision.REFUSE:
            with pytest.raises(LogCorrupt) as refused:
                recovery.recover(disk, witness)
            assert refused.value.details["sequence"] == good + 1 or facts.witnessed
            assert disk.files[NAME].written == data
            assert disk.names() == [NAME]
        case Decision.TOO_NEW:
            with pytest.raises(LogTooNew):
                recovery.recover(disk, witness)
            assert disk.files[NAME].written == data


@pytest.mark.parametrize("facts", DECISIONS, ids=str)
def test_each_row_is_made_from_the_facts_it_names(facts: Facts) -> None:
    data, witness, _ = make(facts)
    file = disk_with(data).files[NAME]
    reader = Reader(file, end=len(data))
    first = reader.frame(0)
    number = first.header.generation if isinstance(first, Frame) else 1
    offset = 0
    for found in reader.walk(0, number):
        if isinstance(found, Fault):
            assert found is facts.fault
            assert (found is not Fault.NONE and reader.has_frame_after(offset)) == facts.later
        else:
            offset = found.end.offset
    witnessed = witness.has_seen(offset) if witness is not None else facts.fault is Fault.STATE_NOT_ENDED
    assert witnessed == facts.witnessed


def test_the_table_is_total() -> None:
    impossible = {
        facts
        for facts in (Facts(*row) for row in product(Fault, (False, True), (False, True)))
        if (facts.later and facts.fault in (Fault.NONE, Fault.SHORT_HEADER, Fault.STATE_NOT_ENDED))
        or (facts.fault is Fault.STATE_NOT_ENDED and not facts.witnessed)
    }
    assert set(DECISIONS) | impossible == {Facts(*row) for row in product(Fault, (False, True), (False, True))}
    assert not set(DECISIONS) & impossible


@pytest.mark.parametrize("with_index", [True, False])
def test_a_state_is_whole_or_damaged_wherever_it_is_cut(monkeypatch: pytest.MonkeyPatch, with_index: bool) -> None:
    data, starts, images = compacted(monkeypatch)
    behind_state = starts[4]
    # Of a file that is shorter than one header nobody can say what it was.
    for size in range(HEADER_SIZE, behind_state):
        disk = disk_with(data[:size])
        with pytest.raises(LogCorrupt):
            open_store(disk, index=images if with_index else None)
        assert disk.names() == [NAME]
        assert disk.files[NAME].written == data[:size]


def test_behind_the_state_a_torn_batch_is_cut_off_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    data, starts, _ = compacted(monkeypatch)
    for size in range(starts[4], len(data)):
        opened = open_store(disk_with(data[:size]))
        assert opened.report.bytes_cut == size - starts[4]
        assert [note for _, note in notes(opened.connection)] == ["note 0", "note 2", "note 3"]
        assert opened.commit(Add(("afterwards",)))[0]["sequence"] == 6
        assert opened.store.log.generation == 2


@pytest.mark.parametrize("missing", range(4))
def test_a_frame_that_the_state_has_lost_is_damage(monkeypatch: pytest.MonkeyPatch, missing: int) -> None:
    data, starts, images = compacted(monkeypatch)
    hurt = data[: starts[missing]] + data[starts[missing + 1] :]
    if missing < 3:
        # The frames say where they begin, not how many there are: the index knows.
        with pytest.raises(LogCorrupt):
            open_store(disk_with(hurt), index=images)
    else:
        with pytest.raises(LogCorrupt):
            open_store(disk_with(hurt))


@pytest.mark.parametrize("at", [5, HEADER_SIZE + 5])
def test_a_state_damaged_in_its_first_frame_is_refused_unless_the_index_has_seen_more(
    monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """What lies before the last frame that the index has applied is left to the scrub, as in any generation."""
    data, _, images = compacted(monkeypatch)
    with pytest.raises(LogCorrupt):
        open_store(disk_with(flip(data, at)))
    opened = open_store(disk_with(flip(data, at)), index=images).declare_damaged()
    assert opened.store.log.generation == 2
    assert [note for _, note in notes(opened.connection)] == ["note 0", "note 2", "note 3", "afterwards"]


def test_a_generation_is_said_by_the_first_header_although_its_payload_is_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, _, _ = compacted(monkeypatch)
    assert recovery.generation_of(disk_with(flip(data, HEADER_SIZE + 5))) == 2
    assert recovery.generation_of(disk_with(flip(data, 5))) is None
    assert recovery.generation_of(disk_with(b"")) is None
    assert recovery.generation_of(FaultyFiles()) is None


def test_an_index_that_was_folded_half_way_through_the_state_is_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _, _ = compacted(monkeypatch)
    monkeypatch.setattr("convmem.store.store.REPLAY_ENTRIES", 1)
    disk, shelf = disk_with(data), MemoryShelf()
    behind, _ = opening.open_store(disk, shelf, [NOTEBOOK], ManualClock())
    stops = iter([False, False, True])
    assert behind.catch_up(lambda done, total: None, lambda: next(stops)) == 2
    assert behind.is_behind
    again = open_store(disk, index={2: shelf.image()})
    assert again.report.index == "kept"
    assert [note for _, note in notes(again.connection)] == ["note 0", "note 2", "note 3", "afterwards"]


def test_without_an_index_only_a_frame_behind_the_damage_speaks() -> None:
    data, starts, _ = log_of(3)
    log, report = recovery.recover(disk_with(flip(data, starts[2].offset + 50)), None)
    assert (log.end.next_sequence, report.bytes_cut) == (3, len(data) - starts[2].offset)
    with pytest.raises(LogCorrupt):
        recovery.recover(disk_with(flip(data, starts[1].offset + 50)), None)


def test_a_missing_log_beside_an_index_that_knew_it_is_refused_and_not_made() -> None:
    _, starts, _ = log_of(2)
    disk = FaultyFiles()
    with pytest.raises(LogCorrupt):
        recovery.recover(disk, Witness(1, starts[1], starts[2]))
    assert disk.names() == []


def test_an_index_of_another_generation_is_no_witness() -> None:
    data, starts, _ = log_of(3)
    log, _ = recovery.recover(disk_with(data[:-1]), Witness(2, starts[2], starts[3]))
    assert log.end.next_sequence == 3


def test_damage_before_the_last_applied_frame_is_left_to_the_scrub_unless_the_start_is_asked_to_look() -> None:
    data, starts, _ = log_of(3)
    witness = Witness(1, starts[2], starts[3])
    recovery.recover(disk_with(flip(data, 50)), witness)
    with pytest.raises(LogCorrupt):
        recovery.recover(disk_with(flip(data, 50)), witness, from_start=True)


def test_a_log_put_back_from_a_backup_under_a_newer_index_is_refused() -> None:
    data, starts, images = log_of(3)
    with pytest.raises(LogCorrupt):
        open_store(disk_with(data[: starts[2].offset]), index=images[2])


def test_a_second_tail_cut_at_the_same_place_keeps_the_first_side_file() -> None:
    data, starts, _ = log_of(2)
    disk = disk_with(data[:-1])
    recovery.recover(disk, None)
    disk.files[NAME].written += b"again"
    _, report = recovery.recover(disk, None)
    assert [disk.files[name].saved for name in disk.names() if name.startswith("cut-")] == [
        data[starts[1].offset : -1],
        b"again",
    ]
    assert report.bytes_cut == 5


def test_a_second_start_after_a_cut_changes_nothing() -> None:
    data, _, _ = log_of(2)
    disk = disk_with(data[:-1])
    open_store(disk)
    before = disk.files[NAME].written
    again = open_store(disk)
    assert again.report.bytes_cut == 0
    assert disk.files[NAME].written == before
    assert len(notes(again.connection)) == 1
