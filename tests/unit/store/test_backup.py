"""store/backup: what is copied, what is added to, and what a good backup is kept from."""

import apsw
import pytest

from convmem.errors import BackupRefused, Busy, LogCorrupt, Stopping
from convmem.store import backup, copying
from convmem.store.backup import KINDS, TOKENS
from convmem.store.log import NAME
from convmem.store.manifest import MANIFEST
from tests.support.backed_up import back_up, copy_of, looked_at, prove
from tests.support.faulty_files import FaultyFiles
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK, Add, Strike
from tests.support.stores import Opened, open_store


@pytest.fixture(params=[100, 301, copying.BLOCK_BYTES], autouse=True)
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copying goes block by block: whatever their size, the copy is the same."""
    monkeypatch.setattr(copying, "BLOCK_BYTES", request.param)


def filled(*notes: str) -> Opened:
    opened = open_store()
    for note in notes or ("a" * 300, "b" * 500, "c"):
        opened.commit(Add((note,)))
    return opened


def test_a_backup_holds_the_log_and_a_manifest_and_is_proven() -> None:
    opened, target = filled(), FaultyFiles()
    made, copied_bytes = back_up(opened, target)
    assert target.names() == ["log-1", MANIFEST]
    assert target.files["log-1"].written == opened.log()
    assert copied_bytes == made.log_bytes == len(opened.log())
    assert (made.generation, made.sequence) == (1, 3)
    assert prove(target).manifest == made
    assert prove(target).live == 3


def test_a_store_that_holds_nothing_can_be_backed_up() -> None:
    target = FaultyFiles()
    made, _ = back_up(open_store(), target)
    assert (made.sequence, made.log_bytes, prove(target).live) == (0, 0, 0)


def test_the_second_backup_copies_only_what_is_new() -> None:
    opened, target = filled(), FaultyFiles()
    first, _ = back_up(opened, target)
    opened.commit(Add(("later",)))
    before = target.counters.bytes
    second, copied_bytes = back_up(opened, target)
    assert copied_bytes == second.log_bytes - first.log_bytes > 0
    assert target.counters.bytes - before < copied_bytes + 1_000, "beside that only the manifest is written"
    assert prove(target).live == 4


def test_a_backup_with_nothing_new_is_one_new_manifest() -> None:
    opened, target = filled(), FaultyFiles()
    back_up(opened, target)
    opened.clock.pass_ms(1000)
    made, copied_bytes = back_up(opened, target)
    assert copied_bytes == 0
    assert made.created_at == "2023-11-14T22:13:21.000Z"
    assert prove(target).manifest == made


def test_after_a_compaction_the_new_log_is_copied_whole_and_the_old_one_goes() -> None:
    opened, target = filled(), FaultyFiles()
    first, _ = back_up(opened, target)
    opened.compact()
    second, copied_bytes = back_up(opened, target)
    assert target.names() == ["log-2", MANIFEST]
    assert copied_bytes == second.log_bytes
    assert second.generation == 2
    assert second.state_hash == first.state_hash, "a compaction changes no live record"
    assert prove(target).live == 3


def test_the_state_hash_is_of_what_lives_whatever_its_history() -> None:
    opened = filled()
    before = digest(opened)
    opened.commit(Add(("d",)))
    assert digest(opened) != before
    opened.commit(Strike(4))
    assert digest(opened) == before
    opened.compact()
    assert digest(opened) == before
    opened.commit(Strike(1))
    assert digest(opened) != before


def digest(opened: Opened) -> str:
    return backup.state_hash(opened.connection, [NOTEBOOK], lambda: False)[0]


def test_tokens_are_copied_only_when_asked_for_and_as_they_are() -> None:
    opened, target = filled(), FaultyFiles()
    opened.disk.open(TOKENS).write(0, b'{"laptop": "one"}')
    back_up(opened, target)
    assert target.names() == ["log-1", MANIFEST]
    made, _ = back_up(opened, target, with_tokens=True)
    part = made.part(TOKENS)
    assert part is not None
    assert target.files[part.file].written == b'{"laptop": "one"}'
    opened.disk.stage(TOKENS).write(0, b'{"laptop": "two"}')
    made, _ = back_up(opened, target, with_tokens=True)
    prove(target)
    assert len(target.names()) == 3, "those that were replaced are gone"
    back_up(opened, target)
    assert target.names() == ["log-1", MANIFEST], "without being asked for, they do not stay"


def test_asking_for_tokens_where_there_are_none_is_no_error() -> None:
    target = FaultyFiles()
    made, _ = back_up(filled(), target, with_tokens=True)
    assert [part.name for part in made.parts] == [NAME]


def test_the_log_is_the_first_part_and_every_part_has_one_name() -> None:
    names = [kind.name for kind in KINDS]
    assert names[0] == NAME
    assert len(set(names)) == len(names)


def test_a_directory_with_other_things_in_it_is_refused_and_left_alone() -> None:
    target = FaultyFiles()
    target.open("thesis.odt").write(0, b"years of work")
    with pytest.raises(BackupRefused, match="other things"):
        back_up(filled(), target)
    assert target.names() == ["thesis.odt"]


def test_what_others_put_beside_a_backup_stays() -> None:
    opened, target = filled(), FaultyFiles()
    back_up(opened, target)
    target.open("notes.txt")
    target.open("lost+found")
    opened.compact()
    back_up(opened, target)
    assert target.names() == ["log-2", "lost+found", MANIFEST, "notes.txt"]


def test_what_an_unfinished_first_backup_left_is_no_obstacle() -> None:
    opened, target = filled(), FaultyFiles()
    for name in (
        "staging-log-1",
        "log-1",
        "staging-manifest.json",
        "lost+found",
        "backup.lock",
        "tokens-" + "0" * 16 + ".json",
    ):
        target.open(name).write(0, b"half of it")
    made, _ = back_up(opened, target)
    assert target.names() == ["backup.lock", "log-1", "lost+found", MANIFEST]
    assert prove(target).manifest == made


def test_a_damaged_manifest_is_not_written_over() -> None:
    opened, target = filled(), FaultyFiles()
    back_up(opened, target)
    target.files[MANIFEST].written = b"{}" + target.files[MANIFEST].written
    with pytest.raises(BackupRefused, match="not what was written"):
        back_up(opened, target)


def test_another_store_of_the_same_generation_is_refused_and_the_backup_stays() -> None:
    target = FaultyFiles()
    back_up(filled("a", "b"), target)
    before = files_of(target)
    for other in (filled("other", "store", "longer"), filled("A", "b")):
        with pytest.raises(BackupRefused, match="choose another directory"):
            back_up(other, target)
    assert files_of(target) == before
    prove(target)


def test_another_store_is_refused_also_when_it_has_compacted_past_the_backup() -> None:
    target = FaultyFiles()
    back_up(filled("a", "b"), target)
    before = files_of(target)
    other = filled(*(f"other {number}" for number in range(9)))
    other.commit(Strike(1))
    other.compact()
    with pytest.raises(BackupRefused, match="of another store"):
        back_up(other, target)
    assert files_of(target) == before
    assert prove(target).live == 2


def test_the_same_store_is_known_behind_any_number_of_compactions() -> None:
    target, opened = FaultyFiles(), filled("a", "b")
    made, _ = back_up(opened, target)
    for number in range(3):
        opened.commit(Add((f"later {number}",)))
        opened.compact()
        again, _ = back_up(opened, target)
        assert again.store_id == made.store_id
    assert len(made.store_id) == 32


@pytest.mark.parametrize("is_compacted", [False, True])
def test_an_older_history_is_refused(is_compacted: bool) -> None:
    """As after the restore of an older backup: what is there is newer, and may be the only copy of it."""
    older = open_store()
    older.commit(Add(("a",)))
    image = FaultyFiles()
    image.open(NAME).write(0, older.log())
    newer, target = open_store(image), FaultyFiles()
    newer.commit(Add(("b",)))
    if is_compacted:
        newer.compact()
    back_up(newer, target)
    with pytest.raises(BackupRefused, match="newer than this store"):
        back_up(older, target)


def test_a_damaged_log_is_never_copied_over_a_good_backup() -> None:
    opened, target = filled(), FaultyFiles()
    back_up(opened, target)
    opened.commit(Add(("later",)))
    before = files_of(target)
    opened.declare_damaged()
    log = opened.disk.files[NAME]
    log.written = log.written[:70] + b"?" + log.written[71:]
    with pytest.raises(LogCorrupt) as refused:
        back_up(opened, target)
    assert refused.value.details["offset"] == 0
    assert files_of(target) == before
    prove(target)


def test_damage_in_what_is_new_is_not_copied_either() -> None:
    opened, target = filled(), FaultyFiles()
    made, _ = back_up(opened, target)
    opened.commit(Add(("later",)))
    opened.declare_damaged()
    log = opened.disk.files[NAME]
    log.written = log.written[:-1] + b"?"
    with pytest.raises(LogCorrupt) as refused:
        back_up(opened, target)
    assert refused.value.details["offset"] == made.log_bytes
    assert prove(target).live == 3


def test_a_copy_that_was_damaged_is_made_anew() -> None:
    opened, target = filled(), FaultyFiles()
    back_up(opened, target)
    opened.commit(Add(("later",)))
    for damaged in (b"", opened.log()[:100], b"?" + opened.log()[1:]):
        target.files["log-1"].written = damaged
        _, copied_bytes = back_up(opened, target)
        assert copied_bytes == len(opened.log())
        assert target.names() == ["log-1", MANIFEST]
        assert prove(target).live == 4
    target.files.pop("log-1")
    back_up(opened, target)
    assert prove(target).live == 4


def test_a_stop_leaves_the_backup_as_it_was_and_no_half_of_another() -> None:
    opened, target = filled(), FaultyFiles()
    back_up(opened, target)
    before = files_of(target)
    opened.commit(Add(("later",)))
    looks = 0
    while True:
        answers = iter([False] * looks)
        try:
            back_up(opened, target, is_stopped=lambda left=answers: next(left, True))
            break
        except Stopping:
            assert files_of(target) == before
        looks += 1
    assert looks > 3
    assert prove(target).live == 4


def files_of(disk: FaultyFiles) -> dict[str, bytes]:
    return {name: disk.files[name].written for name in disk.names()}


def test_a_look_during_a_swap_is_taken_again_until_log_and_index_fit() -> None:
    opened = filled()
    asked: list[int] = []

    def connect(generation: int) -> apsw.Connection:
        asked.append(generation)
        if len(asked) == 1:
            # Between the look at the log and that at its index another generation takes over.
            opened.compact()
            raise apsw.CantOpenError("unable to open database file")
        return copy_of(opened.shelf.image(generation))

    with backup.looked_at(opened.disk, connect, [NOTEBOOK]) as source:
        assert (source.generation, source.end.offset) == (2, len(opened.log()))
    assert asked == [1, 2]


def test_a_look_sees_one_moment_while_writes_go_on() -> None:
    opened, target = filled(), FaultyFiles()
    with looked_at(opened) as source:
        opened.commit(Add(("later",)))
        made, _ = backup.back_up(source, target, ManualClock())
    assert made.sequence == 3
    assert prove(target).live == 3


def test_a_store_that_never_stands_still_is_busy() -> None:
    opened = filled()

    def gone(generation: int) -> apsw.Connection:
        raise apsw.CantOpenError("unable to open database file")

    with pytest.raises(Busy), backup.looked_at(opened.disk, gone, [NOTEBOOK]):
        pass


def test_a_log_whose_first_header_is_damaged_is_not_busy_for_ever() -> None:
    opened = filled().declare_damaged()
    opened.compact()
    log = opened.disk.files[NAME]
    log.written = b"?" + log.written[1:]
    with pytest.raises(LogCorrupt), looked_at(opened):
        pass
