"""store/generation.py: a log beside the log, the index folded from it, and the moment that they take over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from convmem.domain import Kept, Origin
from convmem.errors import Stopping
from convmem.files import RealFiles
from convmem.store import check, generation
from convmem.store.codec import Codec, Through
from convmem.store.generation import Draft, sweep
from convmem.store.log import NAME, Position
from convmem.store.made import Made
from convmem.store.shelf import FileShelf
from convmem.store.sqlite import connect_to_read
from tests.support.faulty_files import FaultyFiles
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK, Add, AddedKept, Strike, notes
from tests.support.stores import MemoryShelf, open_store

ORIGIN = Origin("local", "")
LAST = "01HF7YAT00000000000000ZZZZ"


def kept(count: int, size: int = 10) -> list[Kept]:
    """Records with gaps between their sequences."""
    return [
        Kept(3 * number, number, ORIGIN, AddedKept(note_id=f"{number:026}", note=f"{number} " + "x" * size))
        for number in range(1, count + 1)
    ]


def draft(disk: FaultyFiles | None = None, shelf: MemoryShelf | None = None) -> Draft:
    return Draft(disk or FaultyFiles(), shelf or MemoryShelf(), [NOTEBOOK], ManualClock(), 2)


def silent(done: int, total: int) -> None:
    pass


def whole(made: Draft, records: list[Kept], through: int) -> Draft:
    """A draft of these records, synced and folded."""
    made.keep(records)
    made.end_state(through, Made(LAST))
    made.sync()
    made.fold(silent, lambda: False)
    return made


def test_live_records_fill_frames_up_to_a_size_and_each_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "STATE_FRAME_BYTES", 1_000)
    made, told = draft(), []
    assert made.keep(kept(30, size=200), told.append) == 30
    assert sum(told) == 30
    assert len(told) > 5
    headers = [frame.header for frame in made.log.frames()]
    assert [header.entry_count for header in headers] == told
    assert [header.sequence for header in headers] == [3 * (1 + sum(told[:at])) for at in range(len(told))]
    assert max(header.payload_size for header in headers) < 1_000 + 400


def test_the_state_ends_with_what_it_speaks_for_and_the_last_id_that_the_store_made() -> None:
    made = draft()
    made.keep(kept(2))
    made.end_state(50, Made(LAST), "0123abcd")
    *_, last = made.log.frames()
    assert Codec([NOTEBOOK]).decode_through(last) == Through(last_id=LAST, store_id="0123abcd")
    assert made.log.end.next_sequence == 51


def test_a_state_of_nothing_is_its_end_alone() -> None:
    made = whole(draft(), [], 0)
    assert made.log.end.next_sequence == 1
    assert len(list(made.log.frames())) == 1
    assert made.index is not None
    assert made.index.state.end == made.log.end


def test_batches_follow_under_the_later_generation_as_they_are() -> None:
    opened = open_store()
    opened.commit(Add(("a",)), Add(("b",)))
    start = opened.store.log.end
    made = draft()
    made.keep(NOTEBOOK.live(opened.connection))
    made.end_state(start.next_sequence - 1, Made())
    opened.commit(Strike(1), Add(("c",)))
    made.follow(opened.store.log.frames(start.offset))
    (old,), *_, new = list(opened.store.log.frames(start.offset)), *made.log.frames()
    assert (old.header.generation, new.header.generation) == (1, 2)
    assert (old.payload, old.header.sequence) == (new.payload, new.header.sequence)


def test_a_batch_that_was_left_out_is_noticed() -> None:
    opened = open_store()
    opened.commit(Add(("a",)))
    opened.commit(Add(("left out",)))
    start = opened.store.log.end
    opened.commit(Add(("c",)))
    made = draft()
    made.end_state(1, Made())
    with pytest.raises(AssertionError):
        made.follow(opened.store.log.frames(start.offset))


def test_the_index_is_the_fold_of_the_draft_and_of_what_follows() -> None:
    opened = open_store()
    opened.commit(Add(("a",)), Add(("b",)), Strike(1))
    start = opened.store.log.end
    made = draft()
    made.keep(NOTEBOOK.live(opened.connection))
    made.end_state(3, Made(LAST))
    made.sync()
    made.fold(silent, lambda: False)
    assert made.index is not None
    assert notes(made.index.connection) == [(2, "b")]
    assert made.index.state.made.last_id == LAST
    opened.clock.pass_ms(1)
    made_id = opened.commit(Add(("c",)))[0]["note_id"]
    made.follow(opened.store.log.frames(start.offset))
    made.sync()
    made.catch_up()
    assert notes(made.index.connection) == [(2, "b"), (4, "c")]
    assert made.index.state.end == made.log.end
    assert made.index.state.made.last_id == made_id > LAST


def test_a_sync_with_nothing_new_to_sync_costs_nothing() -> None:
    disk = FaultyFiles()
    made = whole(draft(disk), kept(3), 9)
    before = list(disk.steps)
    made.sync()
    assert disk.steps == before
    assert disk.steps.count("sync") == 1


def test_a_draft_takes_over_by_one_rename_and_touches_nothing_before() -> None:
    disk, shelf = FaultyFiles(), MemoryShelf()
    disk.open(NAME).write(0, b"the log in use")
    made = whole(draft(disk, shelf), kept(3), 9)
    assert disk.files[NAME].written == b"the log in use"
    assert disk.names() == [NAME, "staging-2.log"]
    made.name()
    made.make_durable()
    assert disk.names() == [NAME]
    assert disk.steps[-2:] == ["rename", "sync directory"]
    again = open_store(disk, index={2: shelf.image()})
    assert again.report.index == "kept"
    assert [sequence for sequence, _ in notes(again.connection)] == [3, 6, 9]
    assert again.check() == []


def test_a_draft_that_is_not_synced_does_not_take_over() -> None:
    made = draft()
    made.keep(kept(3))
    made.end_state(9, Made())
    with pytest.raises(AssertionError):
        made.name()


@pytest.mark.parametrize("is_folded", [False, True])
def test_a_discarded_draft_leaves_nothing(is_folded: bool) -> None:
    disk, shelf = FaultyFiles(), MemoryShelf({1: b"of the log in use"})
    made = draft(disk, shelf)
    if is_folded:
        whole(made, kept(3), 9)
    made.discard()
    assert disk.names() == []
    assert shelf.generations() == [1]


def test_what_a_discarded_draft_cannot_remove_is_left_to_the_next_start() -> None:
    disk = FaultyFiles()
    made = whole(draft(disk), kept(3), 9)
    disk.fail_at_step = len(disk.steps) + 1
    made.discard()
    assert disk.names() == ["staging-2.log"]
    disk.fail_at_step = None
    assert open_store(disk).disk.names() == [NAME]


def test_a_stop_while_the_index_is_folded_is_told_and_the_draft_can_be_discarded() -> None:
    disk, shelf = FaultyFiles(), MemoryShelf()
    made = draft(disk, shelf)
    made.keep(kept(3))
    made.end_state(9, Made())
    made.sync()
    with pytest.raises(Stopping):
        made.fold(silent, lambda: True)
    made.discard()
    assert (disk.names(), shelf.generations()) == ([], [])


def test_the_sweep_takes_what_was_staged_and_nothing_else() -> None:
    disk = FaultyFiles()
    for name in ("staging-2.log", "staging-scratch.db", "staging-", "convmem.log", "index-1.db", "my-staging-2.log"):
        disk.open(name)
    sweep(disk)
    assert disk.names() == ["convmem.log", "index-1.db", "my-staging-2.log"]


@pytest.fixture
def real(tmp_path: Path) -> Iterator[tuple[Path, Draft]]:
    files = RealFiles(tmp_path)
    made = Draft(files, FileShelf(files), [NOTEBOOK], ManualClock(), 2)
    yield tmp_path, made
    made.discard()


def test_on_a_real_disk_the_index_is_one_file_and_its_cost_is_counted(real: tuple[Path, Draft]) -> None:
    directory, made = real
    whole(made, kept(300, size=500), 900)
    assert made.index is not None
    assert (directory / "staging-2.log").stat().st_mode & 0o777 == 0o600
    assert (directory / "index-2.db").stat().st_size > 300 * 500
    made.index.count()
    assert made.index.counters.bytes >= (directory / "index-2.db").stat().st_size
    assert made.index.counters.flushes == 1
    assert len(notes(connect_to_read(directory / "index-2.db"))) == 300


def test_what_takes_over_is_what_a_start_would_make_of_the_log(real: tuple[Path, Draft]) -> None:
    directory, made = real
    whole(made, kept(20), 60)
    assert made.index is not None
    disk = FaultyFiles()
    disk.open(NAME).write(0, (directory / "staging-2.log").read_bytes())
    started = open_store(disk)
    assert started.store.log.end == made.log.end != Position(0, 1)
    assert check.differences(made.index.connection, started.connection) == []
