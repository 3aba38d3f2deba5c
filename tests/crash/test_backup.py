"""Backup and restore with the power cut at every step, and with a disk that refuses every step once.

Whatever is left of a backup is the old one or the new one, proven by a replay, and the next backup goes on from there.
Whatever is left of a restore is the whole store, or none and a directory that the next restore takes.
"""

import errno
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from convmem.errors import BackupRefused, DiskFault
from convmem.store import copying
from convmem.store.backup import TOKENS
from convmem.store.log import NAME
from convmem.store.manifest import MANIFEST
from tests.support.backed_up import back_up, prove, restored
from tests.support.faulty_files import FaultyFile, FaultyFiles, Names, PowerLost, Tear
from tests.support.notebook import Add, Strike, notes
from tests.support.stores import Opened, open_store

BLOCK_BYTES = 700
NEW = "later"
WAYS = [(tear, names) for tear in Tear for names in Names]


@pytest.fixture(autouse=True)
def blocks_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small enough that a copy takes several steps."""
    monkeypatch.setattr(copying, "BLOCK_BYTES", BLOCK_BYTES)


def filled() -> Opened:
    opened = open_store()
    opened.disk.open(TOKENS).write(0, b'{"laptop": "one"}')
    for note in ("a" * 900, "b" * 500, "c"):
        opened.commit(Add((note,)))
    return opened


def grow(opened: Opened, target: FaultyFiles) -> None:
    opened.commit(Add((NEW * 200,)), Strike(2))


def compact(opened: Opened, target: FaultyFiles) -> None:
    grow(opened, target)
    opened.compact()


def replace_tokens(opened: Opened, target: FaultyFiles) -> None:
    grow(opened, target)
    opened.disk.stage(TOKENS).write(0, b'{"laptop": "two"}')


def damage_copy(opened: Opened, target: FaultyFiles) -> None:
    """The old backup cannot be proven; it can be once its log was copied anew."""
    grow(opened, target)
    data = target.files["log-1"].written
    target.files["log-1"] = FaultyFile(target, saved=data[:90] + b"?" + data[91:], written=data[:90] + b"?" + data[91:])
    target.synced_names = dict(target.files)


def leave_a_longer_copy(opened: Opened, target: FaultyFiles) -> None:
    """As a backup that was cut while it grew has left it."""
    grow(opened, target)
    target.files["log-1"].written += b"x" * 2_000
    target.files["log-1"].saved = target.files["log-1"].written


SCENES: dict[str, Callable[[Opened, FaultyFiles], None] | None] = {
    "the first backup": None,
    "new bytes": grow,
    "a new generation": compact,
    "other tokens": replace_tokens,
    "a damaged copy": damage_copy,
    "a copy that is too long": leave_a_longer_copy,
}


class Scene(NamedTuple):
    """A store, its backup so far, and the sequences that a backup left behind may have."""

    opened: Opened
    target: FaultyFiles
    allowed: set[int | None]


def scene(name: str) -> Scene:
    opened, target, prepare = filled(), FaultyFiles(), SCENES[name]
    if prepare is None:
        return Scene(opened, target, {None, 3})
    back_up(opened, target, with_tokens=True)
    target = target.after_power_loss(Tear.NOTHING, Names.AS_SYNCED)
    prepare(opened, target)
    return Scene(opened, target, {None, 3, 5} if prepare is damage_copy else {3, 5})


def found(target: FaultyFiles) -> int | None:
    """The sequence of the backup that can be proven; None if there is none."""
    try:
        return prove(target).manifest.sequence
    except BackupRefused:
        return None


def go_on(opened: Opened, target: FaultyFiles) -> None:
    """The next backup takes what was left, leaves nothing else there, and is proven."""
    made, _ = back_up(opened, target, with_tokens=True)
    assert prove(target).manifest == made
    assert set(target.names()) == {MANIFEST, *(part.file for part in made.parts)}


def steps(name: str) -> int:
    opened, target, _ = scene(name)
    back_up(opened, target, with_tokens=True)
    return len(target.steps)


def cases() -> Iterator[tuple[str, int]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "BLOCK_BYTES", BLOCK_BYTES)
        for name in SCENES:
            yield from ((name, step) for step in range(1, steps(name) + 1))


CASES = list(cases())


@pytest.mark.parametrize(("name", "step"), CASES)
def test_a_cut_leaves_the_old_backup_or_the_new_one(name: str, step: int) -> None:
    opened, target, allowed = scene(name)
    target.cut_at_step = step
    with pytest.raises(PowerLost):
        back_up(opened, target, with_tokens=True)
    for tear, names in WAYS:
        survivor = target.after_power_loss(tear, names)
        assert found(survivor) in allowed, (tear, names)
        go_on(opened, survivor)


@pytest.mark.parametrize("name", SCENES)
def test_a_backup_that_was_answered_survives(name: str) -> None:
    opened, target, _ = scene(name)
    made, _ = back_up(opened, target, with_tokens=True)
    for tear, names in WAYS:
        assert prove(target.after_power_loss(tear, names)).manifest == made, (tear, names)


@pytest.mark.parametrize("name", SCENES)
def test_what_a_manifest_names_has_its_name_on_the_disk_before_the_manifest_has(name: str) -> None:
    """A file system may save the later of two names first."""
    opened, target, _ = scene(name)
    back_up(opened, target, with_tokens=True)
    last = max(at for at, step in enumerate(target.steps) if step == "rename")
    before = max((at for at, step in enumerate(target.steps[:last]) if step == "rename"), default=0)
    assert "sync directory" in target.steps[before:last]


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize(("name", "step"), CASES)
def test_a_disk_that_refuses_a_step_leaves_the_old_backup_or_the_new_one(name: str, step: int, error: int) -> None:
    opened, target, allowed = scene(name)
    target.fail_at_step, target.error = step, error
    try:
        back_up(opened, target, with_tokens=True)
    except DiskFault:
        assert target.steps[step - 1] != "remove"
    else:
        assert target.steps[step - 1] == "remove", "only tidying up may fail unsaid"
        assert found(target) == max(sequence for sequence in allowed if sequence is not None)
    target.fail_at_step = None
    assert found(target) in allowed
    go_on(opened, target)


@pytest.mark.parametrize("name", SCENES)
def test_a_full_disk_costs_nothing_and_the_space_is_given_back(name: str) -> None:
    opened, target, allowed = scene(name)
    held = sum(len(file.written) for file in target.files.values())
    held -= 2_000 if SCENES[name] is leave_a_longer_copy else 0
    needed = 0
    while True:
        target.capacity = held + needed
        try:
            back_up(opened, target, with_tokens=True)
            break
        except DiskFault:
            assert found(target) in allowed
            assert sum(len(file.written) for file in target.files.values()) <= held
        needed += 150
    assert needed > 0
    target.capacity = None
    go_on(opened, target)


def restore_steps() -> int:
    opened, source = filled(), FaultyFiles()
    back_up(opened, source, with_tokens=True)
    target = FaultyFiles()
    restored(source, target)
    return len(target.steps)


@pytest.mark.parametrize("step", range(1, restore_steps() + 1))
def test_a_restore_that_is_cut_is_whole_or_can_be_done_again(step: int) -> None:
    opened, source, target = filled(), FaultyFiles(), FaultyFiles(cut_at_step=step)
    back_up(opened, source, with_tokens=True)
    with pytest.raises(PowerLost):
        restored(source, target)
    for tear, names in WAYS:
        survivor = target.after_power_loss(tear, names)
        if not survivor.exists(NAME):
            restored(source, survivor)
        assert survivor.files[TOKENS].written == b'{"laptop": "one"}', (tear, names)
        again = open_store(survivor)
        assert notes(again.connection) == notes(opened.connection), (tear, names)
        assert again.report.bytes_cut == 0


def test_a_restore_that_was_answered_survives_and_its_log_has_its_name_last() -> None:
    opened, source, target = filled(), FaultyFiles(), FaultyFiles()
    back_up(opened, source, with_tokens=True)
    restored(source, target)
    assert target.steps[-4:] == ["rename", "sync directory", "rename", "sync directory"]
    survivor = target.after_power_loss(Tear.NOTHING, Names.AS_SYNCED)
    assert survivor.names() == [NAME, TOKENS]
    assert notes(open_store(survivor).connection) == notes(opened.connection)


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("step", range(1, restore_steps() + 1))
def test_a_disk_that_refuses_a_restore_has_no_store_and_takes_the_next_one(step: int, error: int) -> None:
    opened, source, target = filled(), FaultyFiles(), FaultyFiles(fail_at_step=step, error=error)
    back_up(opened, source, with_tokens=True)
    with pytest.raises(DiskFault, match="there is no store yet"):
        restored(source, target)
    target.fail_at_step = None
    if not target.exists(NAME):
        restored(source, target)
    assert notes(open_store(target).connection) == notes(opened.connection)


def test_the_matrix_covers_every_kind_of_step() -> None:
    kinds = set()
    for name in SCENES:
        opened, target, _ = scene(name)
        back_up(opened, target, with_tokens=True)
        kinds |= set(target.steps)
    assert kinds == {"stage", "write", "sync", "rename", "sync directory", "truncate", "remove"}
