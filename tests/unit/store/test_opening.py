"""store/opening.py: which index is trusted, which is thrown away, and when."""

from pathlib import Path

import apsw
import pytest

from convmem.errors import LogCorrupt
from convmem.files import RealFiles
from convmem.store import opening, sqlite
from convmem.store.compaction import Parts, Rewrite
from convmem.store.log import NAME
from convmem.store.recovery import Report
from convmem.store.shelf import FileShelf
from convmem.store.store import Store, Ticket
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK, Add, notes
from tests.support.stores import ORIGIN

INDEX = "index-1.db"


def start(
    directory: Path, monkeypatch: pytest.MonkeyPatch | None = None, boot: str | None = None
) -> tuple[Store, Report]:
    if monkeypatch is not None:
        monkeypatch.setattr(opening, "boot_id", lambda: boot)
        monkeypatch.setattr(sqlite, "boot_id", lambda: boot)
    files = RealFiles(directory)
    store, report = opening.open_store(files, FileShelf(files), [NOTEBOOK], ManualClock())
    store.catch_up(lambda done, total: None)
    return store, report


def fill(directory: Path, count: int = 40) -> None:
    store, _ = start(directory)
    for number in range(count):
        store.commit([Ticket(Add((f"note {number} " + "x" * 900,)), ORIGIN)])
    store.close()


def read(directory: Path) -> list[tuple[int, str]]:
    return notes(sqlite.connect_to_read(directory / INDEX))


def test_a_first_start_makes_an_empty_store(tmp_path: Path) -> None:
    store, report = start(tmp_path)
    assert report.index == "missing, made anew"
    assert store.facts().sequence == 0
    store.close()
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / INDEX).stat().st_mode & 0o777 == 0o600


def test_an_index_in_order_is_kept(tmp_path: Path) -> None:
    fill(tmp_path)
    store, report = start(tmp_path)
    assert report == Report(index="kept")
    store.close()


@pytest.mark.parametrize("harm", ["garbage", "empty", "directory missing", "half"])
def test_an_index_that_is_damaged_or_gone_is_made_anew_and_loses_nothing(tmp_path: Path, harm: str) -> None:
    fill(tmp_path)
    before, path = read(tmp_path), tmp_path / INDEX
    match harm:
        case "garbage":
            path.write_bytes(b"this is no database" * 400)
        case "empty":
            path.write_bytes(b"")
        case "half":
            path.write_bytes(path.read_bytes()[:100] + b"\xaa" * 20_000)
        case _:
            path.unlink()
    store, report = start(tmp_path)
    assert report.index != "kept"
    assert read(tmp_path) == before
    store.close()


def test_an_index_of_another_shape_is_made_anew(tmp_path: Path) -> None:
    fill(tmp_path)
    before = read(tmp_path)
    connection = sqlite.connect(tmp_path / INDEX)
    connection.execute("UPDATE store_state SET shape = 'older'")
    connection.close()
    store, report = start(tmp_path)
    assert report.index == "of another version, made anew"
    assert read(tmp_path) == before
    store.close()


def damage_a_page(path: Path) -> None:
    """Overwrite the middle of the file, where only table pages are."""
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\xaa" * 4096
    path.write_bytes(bytes(data))


def test_after_a_crash_of_the_machine_the_index_must_pass_its_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    before = read(tmp_path)
    store, _ = start(tmp_path, monkeypatch, "monday")
    store._index.close()  # as a crash leaves it: never marked as left in order
    damage_a_page(tmp_path / INDEX)
    store, report = start(tmp_path, monkeypatch, "tuesday")
    assert report.index == "damaged, made anew"
    assert read(tmp_path) == before
    store.close()


def test_after_sigkill_the_index_is_trusted_without_a_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    store, _ = start(tmp_path, monkeypatch, "monday")
    store._index.close()
    damage_a_page(tmp_path / INDEX)
    store, report = start(tmp_path, monkeypatch, "monday")
    assert report.index == "kept"
    store.close()


def test_a_refused_log_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path)
    log = tmp_path / NAME
    log.write_bytes(log.read_bytes()[:-1])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(LogCorrupt):
        start(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_marked_damage_makes_the_next_start_read_the_whole_log(tmp_path: Path) -> None:
    fill(tmp_path)
    log = tmp_path / NAME
    data = bytearray(log.read_bytes())
    data[60] ^= 1
    log.write_bytes(bytes(data))
    store, _ = start(tmp_path)
    store.mark_damage(0)
    store.close()
    with pytest.raises(LogCorrupt) as refused:
        start(tmp_path)
    assert refused.value.details["offset"] == 0


def test_marked_damage_that_was_mended_is_forgotten(tmp_path: Path) -> None:
    fill(tmp_path)
    store, _ = start(tmp_path)
    store.mark_damage(0)
    store.close()
    for _ in range(2):
        store, report = start(tmp_path)
        assert report.index == "kept"
        store.close()
    connection = sqlite.connect_to_read(tmp_path / INDEX)
    state = sqlite.read_state(connection, sqlite.shape([NOTEBOOK]))
    assert state is not None
    assert state.damage_offset is None


def test_files_of_other_generations_are_deleted(tmp_path: Path) -> None:
    fill(tmp_path)
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"index-7.db{suffix}").write_bytes(b"left behind")
    store, _ = start(tmp_path)
    store.close()
    assert not list(tmp_path.glob("index-7*"))
    assert len(read(tmp_path)) == 40


def test_what_a_generation_in_the_making_left_behind_is_swept_away(tmp_path: Path) -> None:
    fill(tmp_path)
    before = read(tmp_path)
    for name in ("staging-2.log", "staging-scratch.db", "index-2.db"):
        (tmp_path / name).write_bytes(b"half of it")
    store, report = start(tmp_path)
    assert report == Report(index="kept")
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, INDEX]
    assert read(tmp_path) == before


def compact(directory: Path) -> None:
    files = RealFiles(directory)
    store, _ = start(directory)
    rewrite = Rewrite(Parts(files, FileShelf(files), [NOTEBOOK], ManualClock()), store.log, lambda: store.log.end)
    rewrite.prepare()
    rewrite.finish(store)
    rewrite.clean()
    store.close()


def test_the_index_of_the_generation_that_the_log_says_is_the_one_that_is_read(tmp_path: Path) -> None:
    fill(tmp_path)
    before, old_index = read(tmp_path), (tmp_path / INDEX).read_bytes()
    compact(tmp_path)
    # Cut between the rename and the removal of the old index: both are there.
    (tmp_path / INDEX).write_bytes(old_index)
    store, report = start(tmp_path)
    assert report == Report(index="kept")
    assert store.facts().generation == 2
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, "index-2.db"]
    assert notes(sqlite.connect_to_read(tmp_path / "index-2.db")) == before


@pytest.mark.parametrize("found", ["old", "none"])
def test_a_later_generation_without_its_index_is_folded_again(tmp_path: Path, found: str) -> None:
    fill(tmp_path)
    before, old_index = read(tmp_path), (tmp_path / INDEX).read_bytes()
    compact(tmp_path)
    (tmp_path / "index-2.db").unlink()
    if found == "old":
        (tmp_path / INDEX).write_bytes(old_index)
    store, report = start(tmp_path)
    assert report.index == "missing, made anew"
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, "index-2.db"]
    assert notes(sqlite.connect_to_read(tmp_path / "index-2.db")) == before


def test_the_log_of_an_older_generation_beside_the_index_of_a_later_one_is_read_for_what_it_is(tmp_path: Path) -> None:
    """Cut before the names were on the disk: the old log, and the index that was made for the new one."""
    fill(tmp_path)
    before, old_log = read(tmp_path), (tmp_path / NAME).read_bytes()
    compact(tmp_path)
    (tmp_path / NAME).write_bytes(old_log)
    store, report = start(tmp_path)
    assert report.index == "missing, made anew"
    assert store.facts().generation == 1
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, INDEX]
    assert read(tmp_path) == before


def test_a_missing_log_beside_the_index_of_a_later_generation_is_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    compact(tmp_path)
    (tmp_path / NAME).unlink()
    with pytest.raises(LogCorrupt):
        start(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["index-2.db"]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "index-1.db.bak").write_bytes(b"mine")
    (tmp_path / "index-01.db").write_bytes(b"mine")
    fill(tmp_path)
    assert (tmp_path / "index-1.db.bak").read_bytes() == (tmp_path / "index-01.db").read_bytes() == b"mine"


def test_an_index_cannot_be_written_through_a_reader(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(apsw.ReadOnlyError):
        sqlite.connect_to_read(tmp_path / INDEX).execute("DELETE FROM notes_note")


def test_an_index_of_another_log_is_made_anew_however_well_it_fits(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for directory, word in ((ours, "ours"), (theirs, "others")):
        directory.mkdir()
        store, _ = start(directory)
        store.commit([Ticket(Add((f"{word:10}",)), ORIGIN)])
        store.close()
    assert (ours / NAME).stat().st_size == (theirs / NAME).stat().st_size
    (ours / INDEX).write_bytes((theirs / INDEX).read_bytes())
    store, report = start(ours)
    assert report.index == "of another log, made anew"
    assert [note.strip() for _, note in read(ours)] == ["ours"]
    store.close()


@pytest.mark.parametrize("text", [b"tail_offset", b"note 7 ", b"notes_note"])
def test_an_index_with_a_byte_that_is_no_utf8_does_not_keep_the_log_from_being_served(
    tmp_path: Path, text: bytes
) -> None:
    fill(tmp_path)
    path = tmp_path / INDEX
    assert text in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(text, text[:-1] + b"\xff"))
    store, report = start(tmp_path)
    if text != b"note 7 ":  # a text of a row is not looked at by a start
        assert report.index != "kept"
        assert len(read(tmp_path)) == 40
    store.close()
