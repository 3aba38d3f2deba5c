"""store/salvage: whatever is damaged, what can be read is saved, what cannot is named, and nothing is changed."""

import errno
import zlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem import checking
from convmem.clock import SystemClock
from convmem.daemon import domains
from convmem.domain import Domain, Kept, Place
from convmem.errors import LogTooNew
from convmem.files import RealFile, RealFiles
from convmem.store import log, salvage, sqlite
from convmem.store.codec import Codec, Through
from convmem.store.frame import encode
from convmem.store.log import Log, Position
from convmem.store.rescue import UNREADABLE, LeftOut, Missing, Salvaged
from convmem.store.shelf import index_name
from tests.support.notebook import NOTEBOOK, Added, AddedKept, Struck, notes
from tests.support.stores import ORIGIN
from tests.support.wrecks import DAMAGES, LATER, MOVES, SCRIPT, Damage, Step, Wreck, expected, places, removed, runs

pytestmark = pytest.mark.slow


def silent(done: float, total: float, sentence: str) -> None:
    pass


def saved(wreck: Wreck, target: Path) -> Salvaged:
    """Salvage a store; nothing of it is changed, and what comes of it is a sound store."""
    before = wreck.image()
    found = salvaged(RealFiles(wreck.directory), target)
    assert wreck.image() == before
    assert checking.walk(RealFiles(target), domains(), SystemClock(), silent) == {"violations": [], "leftovers": []}
    assert sorted(Wreck(target).image()) == [log.NAME, index_name((found.generation or 0) + 1)]
    return found


def salvaged(source: RealFiles, target: Path) -> Salvaged:
    files = RealFiles(target)
    files.prepare()
    return salvage.salvage(source, files, domains(), SystemClock(), silent)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Wreck:
    """A store of one frame a step, with its index."""
    wreck = Wreck(tmp_path_factory.mktemp("whole"))
    wreck.play(SCRIPT)
    return wreck


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Wreck:
    """A store whose log opens with a state of several frames."""
    wreck = Wreck(tmp_path_factory.mktemp("compacted"))
    wreck.play(SCRIPT)
    wreck.compact()
    wreck.play(LATER)
    return wreck


@pytest.fixture
def spot(tmp_path: Path) -> Iterator[Path]:
    """A fresh directory for each of many cases: spot / "1", spot / "2", …"""
    return (tmp_path / str(number) for number in range(10_000))  # type: ignore[return-value]


def test_a_whole_store_is_saved_whole_from_its_index(whole: Wreck, tmp_path: Path):
    found = saved(whole, tmp_path / "to")
    assert (found.is_whole, found.used_index, found.frames, found.sequence) == (True, True, len(SCRIPT), len(SCRIPT))
    assert Wreck(tmp_path / "to").messages() == expected(whole.ids, [])[0]


def test_without_its_index_it_is_saved_whole_from_its_log(whole: Wreck, tmp_path: Path):
    found = saved(whole.copy(tmp_path / "from").drop_index(), tmp_path / "to")
    assert (found.is_whole, found.used_index, found.frames) == (True, False, len(SCRIPT))
    assert (found.gaps, found.missing, found.left_out) == ([], [], [])
    assert Wreck(tmp_path / "to").messages() == expected(whole.ids, [])[0]


@pytest.mark.parametrize("damage", (DAMAGES | MOVES).values(), ids=DAMAGES | MOVES)
def test_a_frame_is_lost_with_what_speaks_of_it_and_nothing_else(whole: Wreck, spot: Any, damage: Damage):
    for frame, lost in places(whole):
        wreck, target = whole.copy(next(spot)).drop_index(), next(spot)
        wreck.log.write_bytes(damage(whole.log.read_bytes(), frame.offset, frame.header.frame_size))
        found = saved(wreck, target)
        contents, left_out = expected(whole.ids, lost)
        assert Wreck(target).messages() == contents
        assert [entry.sequence for entry in found.left_out] == left_out
        assert found.missing == [Missing(first, None if last == len(SCRIPT) else last) for first, last in runs(lost)]
        assert [gap.offset for gap in found.gaps] == [frame.offset]
        assert (found.is_whole, found.frames) == (False, len(SCRIPT) - 1)


def test_a_frame_that_is_gone_without_a_trace_is_missed(whole: Wreck, spot: Any):
    for frame, lost in list(places(whole))[:-1]:
        wreck, target = whole.copy(next(spot)).drop_index(), next(spot)
        wreck.log.write_bytes(removed(whole.log.read_bytes(), frame.offset, frame.header.frame_size))
        found = saved(wreck, target)
        assert Wreck(target).messages() == expected(whole.ids, lost)[0]
        assert found.missing == [Missing(*span) for span in runs(lost)]
        assert not found.is_whole


def test_a_frame_of_many_entries_is_lost_as_one(tmp_path: Path):
    wreck = Wreck(tmp_path / "from")
    wreck.play(SCRIPT, frames_of=4)
    frame, lost = list(places(wreck.drop_index()))[1]
    wreck.log.write_bytes(DAMAGES["zeros"](wreck.log.read_bytes(), frame.offset, frame.header.frame_size))
    found = saved(wreck, tmp_path / "to")
    contents, left_out = expected(wreck.ids, lost)
    assert Wreck(tmp_path / "to").messages() == contents
    assert found.missing == [Missing(5, 8)]
    assert [entry.sequence for entry in found.left_out] == left_out == [10, 12]


def test_a_log_that_was_cut_is_saved_up_to_there(whole: Wreck, spot: Any):
    data = whole.log.read_bytes()
    for frame, lost in places(whole):
        wreck, target = whole.copy(next(spot)).drop_index(), next(spot)
        wreck.log.write_bytes(data[: frame.offset + frame.header.frame_size // 2])
        found = saved(wreck, target)
        first = min(lost)
        assert Wreck(target).messages() == expected(whole.ids, range(first, len(SCRIPT) + 1))[0]
        assert found.missing == [Missing(first, None)]


def test_a_frame_that_stands_twice_is_taken_once_and_nothing_is_missed(whole: Wreck, tmp_path: Path):
    wreck = whole.copy(tmp_path / "from").drop_index()
    data, frame = whole.log.read_bytes(), whole.frames()[3]
    doubled = data[frame.offset : frame.end.offset]
    wreck.log.write_bytes(data[: frame.end.offset] + doubled + data[frame.end.offset :])
    found = saved(wreck, tmp_path / "to")
    assert [(gap.offset, gap.size) for gap in found.gaps] == [(frame.end.offset, len(doubled))]
    assert found.is_whole
    assert Wreck(tmp_path / "to").messages() == expected(whole.ids, [])[0]


def test_a_frame_of_another_generation_is_not_taken_in(whole: Wreck, compacted: Wreck, tmp_path: Path):
    wreck = whole.copy(tmp_path / "from").drop_index()
    strange = compacted.frames()[-1]
    bytes_of_it = compacted.log.read_bytes()[strange.offset : strange.end.offset]
    wreck.log.write_bytes(whole.log.read_bytes() + bytes_of_it)
    found = saved(wreck, tmp_path / "to")
    assert [gap.reason for gap in found.gaps] == ["a whole frame of another place or generation"]
    assert Wreck(tmp_path / "to").messages() == expected(whole.ids, [])[0]


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_part_of_a_state_is_lost_and_the_rest_of_it_saved(compacted: Wreck, spot: Any, damage: Damage):
    all_contents, _ = expected(compacted.ids, [], SCRIPT + LATER)
    state = [frame for frame in compacted.frames() if frame.header.is_inside_state]
    assert len(state) > 2
    for frame in state:
        wreck, target = compacted.copy(next(spot)).drop_index(), next(spot)
        wreck.log.write_bytes(damage(compacted.log.read_bytes(), frame.offset, frame.header.frame_size))
        found = saved(wreck, target)
        contents = Wreck(target).messages()
        assert contents.keys() < all_contents.keys() | {compacted.ids[6]}
        assert not found.is_whole
        assert [gap.offset for gap in found.gaps] == [frame.offset]
        assert len(all_contents) - len(contents) <= frame.header.entry_count
        assert found.missing
        assert found.missing[0].first <= frame.header.sequence + 1


def test_numbers_that_a_state_leaves_out_are_not_missed(compacted: Wreck, tmp_path: Path):
    found = saved(compacted.copy(tmp_path / "from").drop_index(), tmp_path / "to")
    assert (found.is_whole, found.missing, found.frames) == (True, [], len(compacted.frames()))
    assert Wreck(tmp_path / "to").messages() == expected(compacted.ids, [], SCRIPT + LATER)[0]


def test_a_state_without_its_end_is_saved_all_the_same(compacted: Wreck, tmp_path: Path):
    (end,) = [frame for frame in compacted.frames() if frame.header.is_end_of_state]
    wreck = compacted.copy(tmp_path / "from").drop_index()
    wreck.log.write_bytes(DAMAGES["zeros"](compacted.log.read_bytes(), end.offset, end.header.frame_size))
    found = saved(wreck, tmp_path / "to")
    assert Wreck(tmp_path / "to").messages() == expected(compacted.ids, [], SCRIPT + LATER)[0]
    assert found.sequence == len(SCRIPT) + len(LATER)


def test_a_state_that_was_cut_is_missed(compacted: Wreck, tmp_path: Path):
    first, *_ = compacted.frames()
    wreck = compacted.copy(tmp_path / "from").drop_index()
    wreck.log.write_bytes(compacted.log.read_bytes()[: first.end.offset])
    found = saved(wreck, tmp_path / "to")
    assert (found.gaps, found.frames, found.is_whole) == ([], 1, False)
    assert found.missing[0].last is None


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_the_index_has_seen_is_not_lost_with_the_log(whole: Wreck, compacted: Wreck, spot: Any, damage: Damage):
    for wreck, script in ((whole, SCRIPT), (compacted, SCRIPT + LATER)):
        for frame in wreck.frames()[::3]:
            damaged, target = wreck.copy(next(spot)), next(spot)
            damaged.log.write_bytes(damage(wreck.log.read_bytes(), frame.offset, frame.header.frame_size))
            found = saved(damaged, target)
            assert (found.used_index, found.is_whole, found.gaps) == (True, True, [])
            assert found.in_index
            assert Wreck(target).messages() == expected(wreck.ids, [], script)[0]


def test_what_came_after_the_index_is_added_to_it(tmp_path: Path):
    """The index is of the seventh step; a frame before and one behind it are damaged."""
    wreck = Wreck(tmp_path / "from")
    wreck.play(SCRIPT[:7])
    older = (wreck.directory / "index-1.db").read_bytes()
    wreck.play(SCRIPT[7:])
    (wreck.directory / "index-1.db").write_bytes(older)
    frames = wreck.frames()
    for frame in (frames[2], frames[8]):
        wreck.log.write_bytes(DAMAGES["zeros"](wreck.log.read_bytes(), frame.offset, frame.header.frame_size))
    found = saved(wreck, tmp_path / "to")
    contents, left_out = expected(wreck.ids, [9])
    assert Wreck(tmp_path / "to").messages() == contents
    assert (found.frames, found.missing) == (len(SCRIPT) - 2, [Missing(9, 9)])
    assert [entry.sequence for entry in found.left_out] == left_out
    assert (len(found.in_index), len(found.gaps)) == (1, 1)


def test_what_the_index_has_seen_is_not_added_a_second_time(whole: Wreck, tmp_path: Path):
    wreck = whole.copy(tmp_path / "from")
    data, frame = whole.log.read_bytes(), whole.frames()[3]
    wreck.log.write_bytes(data + data[frame.offset : frame.end.offset])
    found = saved(wreck, tmp_path / "to")
    assert (found.frames, found.left_out, [gap.offset for gap in found.gaps]) == (len(SCRIPT), [], [len(data)])
    assert found.torn is None, "a whole frame is not torn"
    assert Wreck(tmp_path / "to").messages() == expected(whole.ids, [])[0]


def test_the_wal_of_an_index_that_a_daemon_left_behind_counts(whole: Wreck, tmp_path: Path):
    wreck = Wreck(tmp_path / "open")
    store = wreck.play(SCRIPT, closes=False)
    left = wreck.copy(tmp_path / "from")
    store.close()
    assert (left.directory / "index-1.db-wal").stat().st_size > 0
    left.log.write_bytes(bytes(100))
    found = saved(left, tmp_path / "to")
    assert (found.used_index, found.is_whole, found.generation) == (True, True, 1)
    assert Wreck(tmp_path / "to").messages() == expected(wreck.ids, [])[0]


def test_an_index_saves_a_store_whose_log_is_gone(whole: Wreck, tmp_path: Path):
    wreck = whole.copy(tmp_path / "from")
    wreck.log.unlink()
    found = saved(wreck, tmp_path / "to")
    assert (found.has_log, found.used_index, found.is_whole) == (False, True, True)
    assert Wreck(tmp_path / "to").messages() == expected(whole.ids, [])[0]


SURGERY = {
    "a truncated file": lambda path: path.write_bytes(path.read_bytes()[:10_000]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "an empty file": lambda path: path.write_bytes(b""),
    "no database": lambda path: path.write_bytes(b"hello" * 1000),
    "another version": lambda path: operated(path, "UPDATE store_state SET shape = 'x'"),
    "another generation": lambda path: operated(path, "UPDATE store_state SET generation = 7"),
    "a missing table": lambda path: operated(path, "DROP TABLE messages_group"),
    "a violated rule": lambda path: operated(path, "UPDATE messages_message SET content_bytes = 1"),
}


def operated(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("surgery", SURGERY)
def test_an_index_that_is_not_whole_is_not_believed(whole: Wreck, tmp_path: Path, surgery: str):
    wreck = whole.copy(tmp_path / "from")
    SURGERY[surgery](wreck.directory / "index-1.db")
    found = saved(wreck, tmp_path / "to")
    assert (found.used_index, found.is_whole) == (False, True)
    assert Wreck(tmp_path / "to").messages() == expected(whole.ids, [])[0]


def test_a_frame_whose_entries_nobody_knows_is_skipped_whole(whole: Wreck, tmp_path: Path):
    """Its checksums are right; what it says is not."""
    wreck = whole.copy(tmp_path / "from").drop_index()
    data, frame = whole.log.read_bytes(), whole.frames()[6]
    strange = encode(generation=1, sequence=frame.header.sequence, entry_count=1, payload=b"\x93\x90\x90\x90")
    wreck.log.write_bytes(data[: frame.offset] + strange + data[frame.end.offset :])
    found = saved(wreck, tmp_path / "to")
    assert [(gap.offset, gap.size, gap.reason) for gap in found.gaps] == [(frame.offset, len(strange), UNREADABLE)]
    assert found.missing == [Missing(frame.header.sequence, frame.header.sequence)]
    assert Wreck(tmp_path / "to").messages() == expected(whole.ids, [frame.header.sequence])[0]


def test_where_nothing_can_be_read_the_store_is_empty_and_says_so(whole: Wreck, tmp_path: Path):
    wreck = whole.copy(tmp_path / "from").drop_index()
    wreck.log.write_bytes(b"\xff" * 5_000)
    found = saved(wreck, tmp_path / "to")
    assert (found.is_whole, found.records, found.missing) == (False, 0, [Missing(1, None)])
    assert Wreck(tmp_path / "to").messages() == {}


def test_an_empty_store_is_saved_as_one(tmp_path: Path):
    Wreck(tmp_path / "from").play([])
    found = saved(Wreck(tmp_path / "from").drop_index(), tmp_path / "to")
    assert (found.is_whole, found.records) == (True, 0)


def test_what_a_newer_program_wrote_is_refused_before_anything_is_written(whole: Wreck, tmp_path: Path):
    wreck = whole.copy(tmp_path / "from")
    data = bytearray(whole.log.read_bytes())
    offset = whole.frames()[5].offset
    data[offset + 4] = 2
    data[offset + 36 : offset + 40] = zlib.crc32(data[offset : offset + 36]).to_bytes(4, "little")
    wreck.log.write_bytes(data)
    with pytest.raises(LogTooNew) as refused:
        saved(wreck, tmp_path / "to")
    assert refused.value.details["offset"] == offset
    assert list((tmp_path / "to").iterdir()) == []


def test_a_saved_store_goes_on(whole: Wreck, tmp_path: Path):
    """New entries, ids and repeated calls go on as if nothing had happened."""
    wreck = whole.copy(tmp_path / "from").drop_index()
    frame = whole.frames()[6]
    wreck.log.write_bytes(DAMAGES["zeros"](whole.log.read_bytes(), frame.offset, frame.header.frame_size))
    saved(wreck, tmp_path / "to")
    again = Wreck(tmp_path / "to", dict(whole.ids), whole.clock)
    before = again.messages()
    again.play([Step("write", 0)])
    assert again.messages() == before, "the key of a message that was saved still answers with it"
    again.play([Step("write", 20), Step("update", 20)])
    assert again.ids[20] > max(whole.ids.values())
    assert len(again.messages()) == len(before) + 1
    assert checking.walk(RealFiles(tmp_path / "to"), domains(), SystemClock(), silent)["violations"] == []


def notebook(directory: Path, domain: Domain) -> tuple[Codec, Log]:
    """An empty log of a toy's store, to write strange things into."""
    files = RealFiles(directory)
    files.prepare()
    return Codec([domain]), Log(files.open(log.NAME), generation=1, end=Position(0, 1))


def notes_saved(directory: Path, target: Path, domain: Domain) -> tuple[Salvaged, list[tuple[int, str]]]:
    files = RealFiles(target)
    files.prepare()
    found = salvage.salvage(RealFiles(directory), files, [domain], SystemClock(), silent)
    connection = sqlite.connect_to_read(files.path(index_name(2)))
    kept = notes(connection)
    connection.close()
    return found, kept


def test_an_entry_is_added_whole_or_not_at_all(tmp_path: Path):
    def strict(connection: apsw.Connection, event: Struck, place: Place) -> None:
        raise AssertionError

    domain = replace(NOTEBOOK, appliers={**NOTEBOOK.appliers, Struck: strict})
    codec, file = notebook(tmp_path / "from", domain)
    for number in range(3):
        events = [Added(note_id=f"{number:026}", note=f"note {number}"), *([Struck(sequence=9)] if number == 1 else [])]
        file.append(codec.encode([ORIGIN], [(0, 0, events)]), 1)
    file.close()
    found, kept = notes_saved(tmp_path / "from", tmp_path / "to", domain)
    assert kept == [(1, "note 0"), (3, "note 2")]
    assert found.left_out == [LeftOut(2, "it speaks of what is not there")]


def test_a_gap_in_a_state_is_a_loss_even_where_no_number_is_missing(tmp_path: Path):
    """Two notes of one entry stand in two frames, and the second is lost."""
    codec, file = notebook(tmp_path / "from", NOTEBOOK)
    for sequence, note in ((1, "a"), (2, "b"), (2, "c"), (3, "d")):
        event = AddedKept(note_id=f"{sequence:026}", note=note)
        state = codec.encode_state([(Kept(sequence, 0, ORIGIN, event), codec.encode_event(event))])
        file.append_state(state if note != "c" else b"junk", sequence, 1)
    file.append_state(codec.encode_through(Through()), 3, 0)
    file.close()
    found, kept = notes_saved(tmp_path / "from", tmp_path / "to", NOTEBOOK)
    assert kept == [(1, "a"), (2, "b"), (3, "d")]
    assert (found.missing, found.is_whole) == ([Missing(2, 2)], False)


class Bad(RealFile):
    """A file with places that cannot be read."""

    holes: Collection[range] = ()

    def read(self, offset: int, size: int) -> bytes:
        if any(offset < hole.stop and hole.start < offset + size for hole in self.holes):
            raise OSError(errno.EIO, "made to fail")
        return super().read(offset, size)


class BadDisk(RealFiles):
    """A directory of which some places cannot be read."""

    holes: dict[str, Collection[range]]

    def open_to_read(self, name: str) -> RealFile:
        file = Bad(self.root / name, self.counters, writable=False)
        file.holes = self.holes.get(name, ())
        return file


def test_places_that_cannot_be_read_are_skipped(tmp_path: Path):
    wreck = Wreck(tmp_path / "from")
    wreck.play(tuple(Step("write", number) for number in range(100)))
    disk = BadDisk(wreck.directory)
    disk.holes = {log.NAME: [range(8_192, 8_193)], "index-1.db": [range(4_096, 4_097)]}
    found = salvaged(disk, tmp_path / "to")
    lost = [sequence for frame, sequences in places(wreck) for sequence in sequences if overlaps(frame, 8_192, 12_288)]
    assert not found.used_index
    assert [range(first, last + 1) for first, last in found.missing if last] == [range(lost[0], lost[-1] + 1)]
    assert len(Wreck(tmp_path / "to").messages()) == 100 - len(lost)


def overlaps(frame: Any, start: int, end: int) -> bool:
    return bool(frame.offset < end and start < frame.end.offset)


class FullDisk(RealFiles):
    """A directory in which no log can be written."""

    def stage(self, name: str) -> RealFile:
        if name.endswith(".log"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().stage(name)


def test_where_the_disk_is_full_no_store_is_left(whole: Wreck, tmp_path: Path):
    target = FullDisk(tmp_path / "to")
    target.prepare()
    with pytest.raises(OSError, match="No space left"):
        salvage.salvage(RealFiles(whole.directory), target, domains(), SystemClock(), silent)
    assert list((tmp_path / "to").iterdir()) == []
