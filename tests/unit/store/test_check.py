"""store/check.py: what the walk over all invariants notices. A surgeon damages the store on purpose."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from zlib import crc32

import apsw
import pytest

from convmem.domain import Event, Place
from convmem.errors import LogCorrupt, LogTooNew
from convmem.store import check
from convmem.store.codec import Codec
from convmem.store.log import NAME, Log, Position
from convmem.store.sqlite import DAMAGE
from tests.support import stores
from tests.support.faulty_files import FaultyFile, FaultyFiles
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK, Add, Added, Strike, Struck, struck
from tests.support.stores import ORIGIN, Opened, open_store


def filled() -> Opened:
    """A store of 21 entries, to be damaged."""
    opened = open_store()
    for number in range(20):
        opened.commit(Add((f"note {number}",)))
    opened.commit(Strike(3))
    return opened.declare_damaged()


def test_a_sound_store_has_no_violations() -> None:
    assert filled().check() == []
    assert open_store().check() == []


def test_a_compacted_store_has_no_violations() -> None:
    opened = filled()
    opened.compact(Add(("meanwhile",)))
    opened.commit(Add(("afterwards",)), Strike(5))
    assert opened.check() == []


def test_a_store_that_a_test_leaves_damaged_fails_that_test(every_store_is_sound_afterwards: None) -> None:
    opened = open_store()
    opened.commit(Add(("a",)))
    assert stores.violations() == []
    opened.connection.execute("UPDATE notes_note SET note = 'other'")
    assert stores.violations() == opened.check() != []
    opened.declare_damaged()
    assert stores.violations() == []


@pytest.mark.parametrize(
    "surgery",
    [
        "UPDATE notes_note SET note = 'other' WHERE sequence = 7",
        "DELETE FROM notes_note WHERE sequence = 20",
        "INSERT INTO notes_note VALUES ('Z', 99, 1, 'd', 'n', 0)",
        "INSERT INTO notes_note SELECT * FROM notes_note WHERE sequence = 5",
        "UPDATE store_state SET last_id = 'A'",
        "UPDATE store_state SET last_number = 77",
        "UPDATE store_state SET end_offset = end_offset - 1",
        "UPDATE store_state SET end_offset = end_offset + 1",
        "UPDATE store_state SET next_sequence = next_sequence + 1",
        "UPDATE store_state SET shape = 'x'",
        "CREATE TABLE notes_more (a)",
    ],
)
def test_an_index_that_is_not_the_fold_of_its_log_is_noticed(surgery: str) -> None:
    opened = filled()
    opened.connection.execute(surgery)
    assert opened.check() != []


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("share", range(0, 100, 4))
def test_a_flipped_byte_anywhere_in_the_log_is_noticed(share: int, is_compacted: bool) -> None:
    opened = filled()
    if is_compacted:
        opened.compact()
    file = opened.disk.files[NAME]
    where = len(file.written) * share // 100
    file.written = file.written[:where] + bytes([file.written[where] ^ 1]) + file.written[where + 1 :]
    assert opened.check() != []


def test_the_sentences_name_no_text_of_a_record() -> None:
    opened = filled()
    opened.connection.execute("UPDATE notes_note SET note = 'a secret' WHERE sequence = 7")
    (sentence,) = opened.check()
    assert "secret" not in sentence
    assert "notes_note" in sentence


def test_the_scrub_tells_how_far_it_is_and_stops_at_damage() -> None:
    opened = filled()
    file = opened.disk.files[NAME]
    walk = list(check.scrub(file, generation=1, end=file.size()))
    assert [damage for _, damage in walk] == [None] * 21
    assert walk[-1][0].offset == file.size()
    hurt = walk[9][0].offset
    file.written = file.written[: hurt + 50] + b"\0\0" + file.written[hurt + 52 :]
    *good, (position, damage) = check.scrub(file, generation=1, end=file.size())
    assert len(good) == 10
    assert position.offset == hurt
    assert damage is not None


def test_the_scrub_notices_a_frame_of_another_place_or_generation() -> None:
    opened = filled()
    file = opened.disk.files[NAME]
    assert next(check.scrub(file, generation=2, end=file.size()))[1] is not None
    first = next(check.scrub(file, generation=1, end=file.size()))[0].offset
    file.written = file.written[:first] + file.written
    assert list(check.scrub(file, generation=1, end=file.size()))[-1][1] is not None


def test_the_scrub_walks_through_a_state_to_its_end() -> None:
    opened = filled()
    opened.compact()
    opened.commit(Add(("afterwards",)))
    file = opened.disk.files[NAME]
    walk = list(check.scrub(file, generation=2, end=file.size()))
    assert [damage for _, damage in walk] == [None] * 3
    assert walk[-1][0] == opened.store.log.end
    state, *_ = walk
    *_, (_, damage) = check.scrub(file, generation=2, end=state[0].offset)
    assert damage is not None, "a state without its end"


def forged(*entries: tuple[int, tuple[Event, ...]]) -> tuple[FaultyFile, Callable[[], list[str]]]:
    """A log of batches with these (sequence, events), each one frame, and what is found wrong with it alone."""
    codec, file = Codec([NOTEBOOK]), FaultyFiles().open(NAME)
    log = Log(file, generation=1, end=Position(0, 1))
    for _, events in entries:
        log.append(codec.encode([ORIGIN], [(0, 0, events)]), 1)
    return file, lambda: check.check(file, None, [NOTEBOOK], ManualClock())


def added(note_id: str) -> tuple[Event, ...]:
    return (Added(note_id=note_id.rjust(26, "0"), note="n"),)


def test_without_an_index_the_log_alone_is_checked() -> None:
    _, found = forged((1, added("A")), (2, added("B")), (3, (Struck(sequence=1),)))
    assert found() == []


@pytest.mark.parametrize(("first", "second"), [("B", "A"), ("A", "A")])
def test_ids_that_the_store_made_rise_from_entry_to_entry(first: str, second: str) -> None:
    _, found = forged((1, added(first)), (2, added(second)), (3, added("C")))
    assert found() == ["the log: the id that entry 2 was given does not rise"]


def test_ids_of_one_entry_may_be_equal_and_kept_records_have_ids_of_any_kind() -> None:
    _, found = forged((1, added("A") + added("A")), (2, added("B")))
    assert found() == []
    opened = filled()
    opened.compact()
    opened.commit(Add(("afterwards",)))
    assert check.check(opened.disk.files[NAME], None, [NOTEBOOK], opened.clock) == []


def test_ids_rise_beyond_the_last_one_that_a_compacted_log_remembers() -> None:
    opened = filled()
    opened.compact()
    codec, end = Codec([NOTEBOOK]), opened.store.log.end
    log = Log(opened.disk.files[NAME], generation=2, end=end)
    log.append(codec.encode([ORIGIN], [(0, 0, added("0"))]), 1)
    found = check.check(opened.disk.files[NAME], None, [NOTEBOOK], opened.clock)
    assert found == [f"the log: the id that entry {end.next_sequence} was given does not rise"]


def test_a_whole_frame_that_says_nothing_known_is_damage() -> None:
    file, found = forged((1, added("A")))
    Log(file, generation=1, end=Position(file.size(), 2)).append(b"\x93\x90\x90\x90", 1)
    (sentence,) = found()
    assert "cannot be read" in sentence


def test_a_log_that_cannot_be_folded_is_said_to_be_so() -> None:
    def broken(connection: apsw.Connection, event: Struck, place: Place) -> None:
        assert event.sequence != 1, "only a live note was struck"

    domain = replace(NOTEBOOK, appliers={**NOTEBOOK.appliers, Struck: broken})
    file, _ = forged((1, added("A")), (2, (Struck(sequence=1),)))
    (sentence,) = check.check(file, None, [domain], ManualClock())
    assert sentence.startswith("the log cannot be folded")
    assert "only a live note was struck" in sentence


def test_the_rules_of_a_domain_hold_for_the_log_alone_too() -> None:
    domain = replace(NOTEBOOK, check=lambda connection: ["a rule is broken"])
    file, _ = forged((1, added("A")))
    assert check.check(file, None, [domain], ManualClock()) == ["notes: a rule is broken"]


def test_how_far_a_check_has_come_is_told_and_may_end_it() -> None:
    opened, told = filled(), []

    def tell(done: int, total: int, sentence: str) -> None:
        told.append(sentence)
        if sentence == "comparing the index":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check.check(opened.disk.files[NAME], opened.connection, [NOTEBOOK], opened.clock, tell)
    assert list(dict.fromkeys(told)) == ["reading the log", "folding the log", "comparing the index"]


def behind(opened: Opened, data: bytes) -> check.Found:
    """What is found once these bytes stand behind the end of the log."""
    file = opened.disk.files[NAME]
    file.written += data
    return check.look(file, opened.connection, [opened.domain], opened.clock)


def last_frame(opened: Opened) -> bytes:
    tail = opened.connection.execute("SELECT tail_offset FROM store_state").fetchone()
    assert tail is not None
    return opened.log()[int(str(tail[0])) :]


TORN = {
    "zeros": lambda last: bytes(100),
    "garbage": lambda last: b"\xffcvm" + b"strange" * 10,
    "a few bytes": lambda last: last[:7],
    "half a frame": lambda last: last[:-3],
}
REFUSED = {
    "the last frame again": lambda last: last,
    "a whole frame behind zeros": lambda last: bytes(30) + last,
    "a whole frame behind garbage": lambda last: b"garbage" * 9 + last + b"more",
    "a frame of a newer format": lambda last: newer(last),
}


def newer(data: bytes) -> bytes:
    head = data[:4] + b"\x09" + data[5:36]
    return head + crc32(head).to_bytes(4, "little") + data[40:]


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("tail", TORN)
def test_a_torn_end_is_no_fault_and_is_what_a_start_cuts_off(tail: str, is_compacted: bool) -> None:
    opened = filled()
    if is_compacted:
        opened.compact()
        opened.commit(Add(("afterwards",)))
    end = opened.store.log.end.offset
    found = behind(opened, TORN[tail](last_frame(opened)))
    assert found.violations == []
    assert found.torn is not None
    assert found.torn.startswith(f"the log, from byte {end} to {len(opened.log())}: ")
    alone = check.look(opened.disk.files[NAME], None, [opened.domain], opened.clock)
    assert alone == found, "without an index a start says the same"
    opened.store.close()
    again = open_store(opened.disk, index={opened.store.log.generation: opened.shelf.image()})
    assert again.report.bytes_cut == len(TORN[tail](last_frame(again)))


@pytest.mark.parametrize("tail", REFUSED)
def test_an_end_that_a_start_refuses_is_a_violation(tail: str) -> None:
    opened = filled()
    end = opened.store.log.end.offset
    found = behind(opened, REFUSED[tail](last_frame(opened)))
    assert found.torn is None
    (sentence,) = found.violations
    assert sentence.startswith(f"the log is damaged at byte {end}: ")
    opened.store.close()
    with pytest.raises((LogCorrupt, LogTooNew)):
        open_store(opened.disk, index=opened.shelf.image())


def test_frames_that_the_index_does_not_show_yet_are_no_fault() -> None:
    opened, later = filled(), filled()
    later.commit(Add(("more",)))
    later.commit(Strike(4))
    more = later.log()[len(opened.log()) :]
    assert later.log().startswith(opened.log())
    assert behind(opened, more) == check.Found([])


def test_frames_that_the_index_does_not_show_yet_must_be_foldable() -> None:
    def broken(connection: apsw.Connection, event: Struck, place: Place) -> None:
        assert event.sequence != 4, "only a live note was struck"
        struck(connection, event, place)

    opened, later = filled(), filled()
    later.commit(Strike(4))
    opened.domain = replace(NOTEBOOK, appliers={**NOTEBOOK.appliers, Struck: broken})
    (sentence,) = behind(opened, later.log()[len(opened.log()) :]).violations
    assert "only a live note was struck" in sentence


@dataclass
class Moving(FaultyFile):
    """A file that becomes another when it has been asked for its size so often."""

    becomes: bytes = b""
    asked: int = 0

    def size(self) -> int:
        self.asked += 1
        if self.asked == 2:
            self.written = self.becomes
        return super().size()


@pytest.mark.parametrize("half", ["the rest comes", "it is taken back"])
def test_a_frame_that_is_just_being_written_is_no_torn_end(half: str) -> None:
    opened, later = filled(), filled()
    later.commit(Add(("more",)))
    becomes = later.log() if half == "the rest comes" else opened.log()
    moving = Moving(opened.disk, written=later.log()[:-3], becomes=becomes)
    assert check.look(moving, opened.connection, [opened.domain], opened.clock) == check.Found([])


def test_an_index_that_stands_within_a_frame_is_named() -> None:
    opened = filled()
    end = opened.store.log.end.offset
    opened.connection.execute("UPDATE store_state SET end_offset = end_offset - 1")
    assert opened.check() == [f"the index stands at byte {end - 1} of the log, where no frame ends"]


def test_a_text_that_is_no_utf_8_is_damage_of_the_index() -> None:
    opened = filled()
    opened.connection.execute("UPDATE notes_note SET note = CAST(x'ff41' AS TEXT) WHERE sequence = 7")
    with pytest.raises(DAMAGE):
        opened.check()
