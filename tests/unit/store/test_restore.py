"""store/restore: a proof that notices every change, and a restore that is whole or not there."""

from dataclasses import replace
from typing import Any

import apsw
import msgspec
import pytest

from convmem.errors import BackupRefused, Stopping
from convmem.store import manifest, restore
from convmem.store.backup import TOKENS
from convmem.store.log import NAME
from convmem.store.manifest import MANIFEST, Manifest
from convmem.store.restore import Watch
from tests.support.backed_up import back_up, prove, restored
from tests.support.faulty_files import FaultyFiles
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK, Add, Strike, Struck, notes
from tests.support.stores import Opened, open_store


def backed_up(*, with_tokens: bool = False) -> tuple[Opened, FaultyFiles]:
    """A store with some history, and a backup of it."""
    opened, target = open_store(), FaultyFiles()
    for note in ("a" * 300, "b" * 500, "c"):
        opened.commit(Add((note,)))
    opened.commit(Strike(2))
    if with_tokens:
        opened.disk.open(TOKENS).write(0, b'{"laptop": "hash"}')
    back_up(opened, target, with_tokens=with_tokens)
    return opened, target


def rewritten(target: FaultyFiles, **changes: Any) -> None:
    """Put a manifest there that says something else, sealed as if it were meant."""
    known = manifest.read(target, MANIFEST, Manifest)
    assert known is not None
    manifest.put(target, MANIFEST, manifest.sealed(msgspec.structs.replace(known, **changes))[1])


def test_every_flipped_byte_of_every_file_is_noticed() -> None:
    _, target = backed_up(with_tokens=True)
    for name in target.names():
        data = target.files[name].written
        for at in range(len(data)):
            target.files[name].written = data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1 :]
            with pytest.raises(BackupRefused):
                prove(target)
        target.files[name].written = data
    prove(target)


def test_a_part_that_is_missing_or_short_is_named() -> None:
    _, target = backed_up()
    data = target.files["log-1"].written
    target.files["log-1"].written = data[:-1]
    with pytest.raises(BackupRefused, match="log-1 is shorter"):
        prove(target)
    target.files.pop("log-1")
    with pytest.raises(BackupRefused, match="log-1 is missing") as refused:
        prove(target)
    assert refused.value.details == {"part": "log-1"}


def test_a_log_that_was_added_to_by_a_backup_that_was_cut_is_no_harm() -> None:
    _, target = backed_up()
    file = target.files["log-1"]
    file.written += b"half of a frame"
    assert prove(target).live == 2


def test_where_there_is_no_backup_it_says_so() -> None:
    with pytest.raises(BackupRefused, match="there is no backup"):
        prove(FaultyFiles())


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"state_hash": "00" * 32}, "another state"),
        ({"sequence": 3}, "another entry"),
        ({"generation": 2}, "another place or generation"),
        ({"parts": ()}, "no backup of this convmem has"),
    ],
)
def test_a_log_that_comes_to_something_else_than_the_manifest_says_is_no_proof(
    changes: dict[str, Any], sentence: str
) -> None:
    _, target = backed_up()
    rewritten(target, **changes)
    with pytest.raises(BackupRefused, match=sentence):
        prove(target)


@pytest.mark.parametrize(
    ("name", "file"), [("../evil", "log-1"), (NAME, "../log-1"), ("index-1.db", "log-1"), (TOKENS, "log-1")]
)
def test_a_manifest_cannot_name_other_files_than_a_backup_has(name: str, file: str) -> None:
    _, target = backed_up()
    known = manifest.read(target, MANIFEST, Manifest)
    assert known is not None
    rewritten(target, parts=(msgspec.structs.replace(known.parts[0], name=name, file=file),))
    with pytest.raises(BackupRefused, match="no backup of this convmem has"):
        prove(target)


def test_an_index_that_had_drifted_from_its_log_makes_no_proof() -> None:
    opened = open_store().declare_damaged()
    opened.commit(Add(("a",)))
    opened.connection.execute("UPDATE notes_note SET note = 'another'")
    target = FaultyFiles()
    back_up(opened, target)
    with pytest.raises(BackupRefused, match="another state than the store had"):
        prove(target)


def test_a_log_that_breaks_the_rules_of_its_domain_is_no_proof() -> None:
    _, target = backed_up()
    domain = replace(NOTEBOOK, check=lambda connection: ["a note is not well"])
    with pytest.raises(BackupRefused, match="a note is not well"):
        restore.prove(target, apsw.Connection(":memory:"), [domain], ManualClock())


def test_events_that_are_not_known_here_name_a_newer_convmem() -> None:
    _, target = backed_up()
    known = {kind: apply for kind, apply in NOTEBOOK.appliers.items() if kind is not Struck}
    domain = replace(NOTEBOOK, appliers=known)
    with pytest.raises(BackupRefused, match="newer convmem"):
        restore.prove(target, apsw.Connection(":memory:"), [domain], ManualClock())


def test_a_proof_changes_nothing() -> None:
    _, target = backed_up(with_tokens=True)
    before = len(target.steps)
    prove(target)
    assert len(target.steps) == before


def test_a_restored_store_is_the_store_and_goes_on() -> None:
    opened, source = backed_up(with_tokens=True)
    target = FaultyFiles()
    for name in ("store.lock", "convmem.env"):
        target.open(name)
    proven = restored(source, target)
    assert proven.live == 2
    assert target.names() == ["convmem.env", NAME, "store.lock", TOKENS]
    assert target.files[TOKENS].written == b'{"laptop": "hash"}'
    again = open_store(target)
    assert notes(again.connection) == notes(opened.connection)
    assert again.report.bytes_cut == 0
    again.commit(Add(("later",)))
    assert again.check() == []
    assert back_up(again, source)[0].sequence == 5, "the backup goes on with it"


def test_ids_rise_on_after_a_restore() -> None:
    opened, source = backed_up()
    (made,) = opened.commit(Add(("d",)))
    back_up(opened, source)
    target = FaultyFiles()
    restored(source, target)
    (later,) = open_store(target, clock=ManualClock(at_ms=1)).commit(Add(("e",)))
    assert later["note_id"] > made["note_id"]


def test_a_compacted_store_can_be_restored() -> None:
    opened, source = backed_up()
    opened.compact()
    opened.commit(Add(("after",)))
    back_up(opened, source)
    target = FaultyFiles()
    restored(source, target)
    again = open_store(target)
    assert again.store.log.generation == 2
    assert notes(again.connection) == notes(opened.connection)


@pytest.mark.parametrize("name", [NAME, "index-1.db", "anything", TOKENS])
def test_a_directory_in_use_is_refused_and_left_alone(name: str) -> None:
    _, source = backed_up(with_tokens=True)
    target = FaultyFiles()
    target.open(name).write(0, b"something")
    with pytest.raises(BackupRefused, match=name):
        restored(source, target)
    assert target.names() == [name]
    assert target.files[name].written == b"something"


def test_a_damaged_backup_makes_no_store_and_leaves_nothing() -> None:
    _, source = backed_up(with_tokens=True)
    file = source.files["log-1"]
    file.written = file.written[:100] + b"?" + file.written[101:]
    target = FaultyFiles()
    with pytest.raises(BackupRefused, match="not what was written"):
        restored(source, target)
    assert target.names() == []


def test_a_state_that_differs_makes_no_store() -> None:
    _, source = backed_up()
    rewritten(source, state_hash="00" * 32)
    target = FaultyFiles()
    with pytest.raises(BackupRefused, match="another state"):
        restored(source, target)
    assert target.names() == []


def test_what_an_unfinished_restore_left_is_no_obstacle() -> None:
    _, source = backed_up(with_tokens=True)
    target = FaultyFiles()
    target.open(f"staging-{NAME}").write(0, b"x" * 5_000)
    target.open(TOKENS).write(0, b'{"laptop": "hash"}')
    restored(source, target)
    assert target.names() == [NAME, TOKENS]


def test_a_restore_and_a_proof_say_how_far_they_are_and_stop_when_told_to() -> None:
    _, source = backed_up()
    told: list[tuple[int, int, str]] = []
    watch = Watch(lambda done, total, sentence: told.append((done, total, sentence)))
    restore.prove(source, apsw.Connection(":memory:"), [NOTEBOOK], ManualClock(), watch)
    assert {sentence for _, _, sentence in told} == {"reading log-1", "replaying the log"}
    assert all(0 < done <= total for done, total, _ in told)
    for looks in range(4):
        answers = iter([False] * looks)
        target = FaultyFiles()
        with pytest.raises(Stopping):
            restore.restore(
                source,
                target,
                apsw.Connection(":memory:"),
                [NOTEBOOK],
                ManualClock(),
                beside=(),
                watch=Watch(is_stopped=lambda left=answers: next(left, True)),
            )
        assert target.names() == []
