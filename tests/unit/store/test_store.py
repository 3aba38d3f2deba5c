"""store/store.py: decide, append, sync, show."""

import errno
from pathlib import Path

import apsw
import pytest

from convmem.errors import Busy, Conflict, NotFound, Stopping, StorageFull, StoreFailed
from convmem.files import RealFiles
from convmem.store import check, opening
from convmem.store import store as store_module
from convmem.store.log import NAME, Position
from convmem.store.shelf import FileShelf
from convmem.store.sqlite import Index, connect, connect_to_read
from convmem.store.store import Store, Ticket
from tests.support.faulty_files import FaultyFiles
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTE_MAX, NOTEBOOK, Add, Break, Strike, notes
from tests.support.stores import ORIGIN, MemoryShelf, Opened, open_store


def test_a_refusal_half_way_undoes_only_itself() -> None:
    opened = open_store()
    first, refused, last = opened.commit(Add(("a",)), Add(("b", "x" * (NOTE_MAX + 1))), Add(("c",)))
    assert isinstance(refused, Conflict)
    assert (first["sequence"], last["sequence"]) == (1, 2)
    assert notes(opened.connection) == [(1, "a"), (2, "c")]
    assert opened.check() == []


def test_a_command_sees_the_commands_before_it_in_its_batch() -> None:
    opened = open_store()
    _, struck, gone = opened.commit(Add(("a",)), Strike(1), Strike(1))
    assert struck == {"sequence": 2}
    assert isinstance(gone, NotFound)
    assert notes(opened.connection) == []
    assert opened.check() == []


def test_a_batch_with_nothing_to_say_costs_no_write() -> None:
    opened = open_store()
    before = list(opened.disk.steps)
    opened.commit(Add(()), Strike(7))
    assert opened.disk.steps == before


def test_a_batch_is_one_write_and_one_sync() -> None:
    opened = open_store()
    before = len(opened.disk.steps)
    opened.commit(*(Add((str(number),)) for number in range(50)))
    assert opened.disk.steps[before:] == ["write", "sync"]


def test_nothing_is_visible_before_the_log_is_synced(tmp_path: Path) -> None:
    seen: list[int] = []

    class Watching(FaultyFiles):
        def step(self, name: str) -> None:
            super().step(name)
            if name in ("write", "sync"):
                seen.append(len(notes(connect_to_read(tmp_path / "index-1.db"))))

    shelf = FileShelf(RealFiles(tmp_path))
    store, _ = opening.open_store(Watching(), shelf, [NOTEBOOK], ManualClock())
    store.commit([Ticket(Add(("a",)), ORIGIN)])
    assert seen == [0, 0]
    assert notes(connect_to_read(tmp_path / "index-1.db")) == [(1, "a")]
    store.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_undoes_the_batch_and_the_next_write_works(number: int) -> None:
    opened = open_store()
    opened.commit(Add(("kept",)))
    opened.disk.fail_at_step, opened.disk.error = len(opened.disk.steps) + 1, number
    log = opened.log()
    outcomes = opened.commit(Add(("lost",)), Strike(9))
    assert all(isinstance(outcome, StorageFull) for outcome in outcomes)
    assert opened.log() == log
    assert opened.store.facts().full_since_ms is not None
    assert opened.commit(Add(("later",)))[0]["sequence"] == 2
    assert opened.store.facts().full_since_ms is None
    assert notes(opened.connection) == [(1, "kept"), (2, "later")]
    assert opened.check() == []


def test_a_disk_that_fills_up_slowly_loses_nothing_acknowledged() -> None:
    opened = open_store(FaultyFiles(capacity=2_000))
    acknowledged = []
    for number in range(60):
        outcome = opened.commit(Add((str(number),)))[0]
        if not isinstance(outcome, StorageFull):
            acknowledged.append(outcome["sequence"])
    assert 5 < len(acknowledged) < 60
    assert [sequence for sequence, _ in notes(opened.connection)] == acknowledged
    again = open_store(opened.disk)
    assert [sequence for sequence, _ in notes(again.connection)] == acknowledged
    assert again.report.bytes_cut == 0


def test_an_index_that_cannot_commit_takes_the_frame_back() -> None:
    opened = open_store()
    opened.commit(Add(("kept",)))
    log, pages = opened.log(), opened.connection.pragma("page_count")
    opened.connection.execute(f"PRAGMA max_page_count = {pages}")
    outcome = opened.commit(*(Add(("x" * NOTE_MAX,)) for _ in range(10)))[0]
    assert isinstance(outcome, StorageFull)
    assert opened.log() == log
    opened.connection.execute("PRAGMA max_page_count = 1000000")
    assert opened.commit(Add(("later",)))[0]["sequence"] == 2
    assert opened.check() == []


def test_a_commit_that_fails_after_the_sync_is_taken_back_durably() -> None:
    opened = open_store()
    opened.commit(Add(("kept",)))
    log = opened.log()

    def full() -> bool:
        raise apsw.FullError("database or disk is full")

    opened.connection.set_commit_hook(full)
    assert isinstance(opened.commit(Add(("lost",)))[0], StorageFull)
    assert opened.disk.files[NAME].saved == log
    opened.connection.set_commit_hook(None)
    assert opened.commit(Add(("later",)))[0]["sequence"] == 2
    assert opened.check() == []


@pytest.mark.parametrize("failing", ["write", "sync"])
def test_an_input_output_error_poisons_the_store_for_good(failing: str) -> None:
    opened = open_store()
    opened.disk.fail_at_step = len(opened.disk.steps) + (1 if failing == "write" else 2)
    with pytest.raises(StoreFailed):
        opened.commit(Add(("a",)))
    steps = len(opened.disk.steps)
    with pytest.raises(StoreFailed):
        opened.commit(Add(("b",)))
    assert len(opened.disk.steps) == steps, "a poisoned store writes nothing"


def test_a_cut_back_that_fails_poisons_the_store() -> None:
    opened = open_store()
    opened.disk.fail_at_step, opened.disk.error = len(opened.disk.steps) + 1, errno.ENOSPC
    file = opened.disk.files[NAME]

    def refuse(size: int) -> None:
        raise OSError(errno.EIO, "made to fail")

    file.truncate = refuse  # type: ignore[method-assign]
    with pytest.raises(StoreFailed):
        opened.commit(Add(("a",)))
    with pytest.raises(StoreFailed):
        opened.commit(Add(("b",)))


def test_a_log_that_was_removed_under_the_daemon_acknowledges_nothing() -> None:
    opened = open_store()
    opened.commit(Add(("a",)))
    opened.disk.remove(NAME)
    with pytest.raises(StoreFailed):
        opened.commit(Add(("b",)))


def test_a_fault_of_ours_poisons_the_store_and_leaves_nothing_behind() -> None:
    opened = open_store()
    opened.commit(Add(("a",)))
    log = opened.log()
    with pytest.raises(StoreFailed):
        opened.commit(Add(("b",)), Break(AssertionError("ours")))
    assert opened.log() == log
    opened.store.close()
    assert notes(open_store(opened.disk).connection) == [(1, "a")]


def test_ids_rise_although_the_clock_steps_back_and_the_store_is_opened_again() -> None:
    opened = open_store()
    made = [opened.commit(Add(("a",)))[0]["note_id"]]
    opened.clock.pass_ms(-3_600_000)
    made.append(opened.commit(Add(("b",)))[0]["note_id"])
    opened.commit(Strike(2))
    for index in (opened.shelf.image(), None):
        again = open_store(opened.disk, index=index, clock=opened.clock)
        made.append(again.commit(Add(("c",)))[0]["note_id"])
        opened = again
    assert made == sorted(set(made))
    assert len(made) == 4


def test_a_log_folded_at_once_says_what_it_said_when_it_was_written() -> None:
    opened = open_store()
    for number in range(30):
        opened.commit(Add((f"note {number}",)), Strike(number))
    store, index = beside(opened)
    reports: list[tuple[int, int]] = []
    store.fold_at_once(lambda done, total: reports.append((done, total)))
    assert check.differences(index.connection, opened.connection) == []
    assert reports[-1] == (len(opened.log()), len(opened.log()))
    assert index.state.made.last_id == opened.store._index.state.made.last_id


def test_folding_at_once_is_one_transaction_that_a_stop_leaves_nothing_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "REPLAY_ENTRIES", 2)
    opened = open_store()
    for number in range(9):
        opened.commit(Add((f"note {number}",)))
    store, index = beside(opened)
    stops = iter([False, False, True])
    with pytest.raises(Stopping):
        store.fold_at_once(lambda done, total: None, lambda: next(stops))
    assert index.state.end == Position(0, 1)
    assert notes(index.connection) == []
    store.fold_at_once(lambda done, total: None)
    assert len(notes(index.connection)) == 9


def beside(opened: Opened) -> tuple[Store, Index]:
    """Another store over the same log, whose index is empty."""
    index = Index(connect(""), [NOTEBOOK], fresh_generation=opened.store.log.generation)
    return Store(opened.store.log, index, [NOTEBOOK], opened.clock), index


def test_a_store_goes_on_with_another_generation_that_says_the_same() -> None:
    opened = open_store()
    opened.commit(Add(("a",)), Strike(1), Add(("b",)))
    before = opened.store.facts()
    rewrite = opened.rewrite()
    rewrite.prepare()
    draft = rewrite._draft
    assert draft is not None
    assert draft.index is not None
    log, index = opened.store.log, opened.store._index
    draft.name()
    assert opened.store.adopt(draft.log, draft.index) == (log, index)
    after = opened.store.facts()
    assert (after.sequence, after.generation) == (before.sequence, 2)
    assert opened.commit(Add(("c",)))[0]["sequence"] == 4
    assert notes(opened.connection) == [(3, "b"), (4, "c")]
    # What health counts since the start does not begin anew.
    assert after.index_writes > before.index_writes
    assert after.index_flushes > before.index_flushes


def test_a_generation_that_lacks_something_is_not_gone_on_with() -> None:
    opened = open_store()
    opened.commit(Add(("a",)), Strike(1))
    rewrite = opened.rewrite()
    rewrite.prepare()
    opened.commit(Add(("not copied",)))
    draft = rewrite._draft
    assert draft is not None
    assert draft.index is not None
    with pytest.raises(AssertionError):
        opened.store.adopt(draft.log, draft.index)
    rewrite.discard()
    assert opened.store.log.generation == 1


@pytest.mark.parametrize("with_index", [True, False])
def test_ids_rise_across_a_compaction_and_a_restart_whatever_the_clock_says(with_index: bool) -> None:
    opened = open_store()
    made = [opened.commit(Add(("a",)))[0]["note_id"], opened.commit(Add(("b",)))[0]["note_id"]]
    # The last id is of a note that does not live any more.
    opened.commit(Strike(2))
    opened.clock.pass_ms(-3_600_000)
    opened.compact()
    made.append(opened.commit(Add(("c",)))[0]["note_id"])
    opened.commit(Strike(4))
    opened.compact()
    again = open_store(opened.disk, index={3: opened.shelf.image()} if with_index else {}, clock=opened.clock)
    made.append(again.commit(Add(("d",)))[0]["note_id"])
    assert made == sorted(set(made))
    assert len(made) == 4


def test_folding_stops_between_two_transactions_when_asked_and_goes_on_later() -> None:
    opened = open_store()
    opened.commit(Add(("a",)))
    behind, _ = opening.open_store(opened.disk, MemoryShelf(), [NOTEBOOK], opened.clock)
    assert behind.catch_up(lambda done, total: None, lambda: True) == 0
    assert behind.is_behind
    assert behind.catch_up(lambda done, total: None) == 1
    assert not behind.is_behind


def test_another_program_that_locks_the_index_makes_writes_busy_not_lost(tmp_path: Path) -> None:
    store, _ = opening.open_store(FaultyFiles(), FileShelf(RealFiles(tmp_path)), [NOTEBOOK], ManualClock())
    store._index.connection.set_busy_timeout(1)
    assert store.commit([Ticket(Add(("before",)), ORIGIN)])[0]["sequence"] == 1
    intruder = connect(tmp_path / "index-1.db")
    intruder.execute("BEGIN IMMEDIATE")
    assert isinstance(store.commit([Ticket(Add(("a",)), ORIGIN)])[0], Busy)
    intruder.execute("ROLLBACK")
    intruder.close()
    assert store.commit([Ticket(Add(("b",)), ORIGIN)])[0]["sequence"] == 2
    store.close()


def test_a_checkpoint_that_the_full_disk_refuses_harms_nothing() -> None:
    opened = open_store()

    def full() -> None:
        raise apsw.FullError("database or disk is full")

    opened.store._index.checkpoint = full  # type: ignore[method-assign]
    assert opened.store.rest().full_since_ms is not None
    assert opened.commit(Add(("a",)))[0]["sequence"] == 1
    assert opened.store.facts().full_since_ms is None


def test_a_number_is_given_once_whatever_is_refused_deleted_compacted_or_reopened() -> None:
    opened = open_store()
    given = [answer["number"] for answer in opened.commit(Add(("a",)), Add(("b",)))]
    refused, answer = opened.commit(Add(("x" * (NOTE_MAX + 1),)), Add(("c",)))
    assert isinstance(refused, Conflict)
    given.append(answer["number"])
    opened.commit(Strike(3))
    opened.compact()
    given += [opened.commit(Add(("d",)))[0]["number"]]
    opened = open_store(opened.disk)
    given += [opened.commit(Add(("e",)))[0]["number"]]
    assert given == [1, 2, 3, 4, 5]
