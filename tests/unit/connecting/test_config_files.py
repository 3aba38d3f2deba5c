"""connecting/config_files: a file of somebody else's is replaced as a whole or not at all, and stays what it was."""

import os
from pathlib import Path

import pytest

from convmem.connecting import config_files
from convmem.connecting.config_files import Changed
from convmem.limits import CONFIG_BYTES_MAX

TIME = "20260131T080000Z"
BACKUP = f"a.json{config_files.BACKUP_MARK}{TIME}"


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400])
def test_what_takes_its_place_and_the_copy_have_the_mode_of_the_file(tmp_path: Path, mode: int):
    path = tmp_path / "a.json"
    path.write_bytes(b"before")
    path.chmod(mode)
    assert config_files.replace(path, b"before", b"after", TIME) == tmp_path / BACKUP
    assert (path.read_bytes(), (tmp_path / BACKUP).read_bytes()) == (b"after", b"before")
    assert [entry.stat().st_mode & 0o777 for entry in (path, tmp_path / BACKUP)] == [mode, mode]
    assert names(tmp_path) == ["a.json", BACKUP]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
def test_the_owner_stays(tmp_path: Path):
    path = tmp_path / "a.json"
    path.write_bytes(b"before")
    os.chown(path, 1234, 2345)
    backup = config_files.replace(path, b"before", b"after", TIME)
    assert backup is not None
    assert {(one.stat().st_uid, one.stat().st_gid) for one in (path, backup)} == {(1234, 2345)}


def test_an_owner_that_cannot_be_kept_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.json"
    path.write_bytes(b"before")
    real = os.stat

    def others(where: Path) -> os.stat_result:
        return os.stat_result([*real(where)[:4], 4321, *real(where)[5:10]])

    def refused(*given: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(config_files.os, "stat", others)
    monkeypatch.setattr(config_files.os, "fchown", refused)
    with pytest.raises(PermissionError):
        config_files.replace(path, b"before", b"after", TIME)
    assert (path.read_bytes(), names(tmp_path)) == (b"before", ["a.json"])


def test_a_link_stays_a_link_and_the_copy_stands_beside_the_file(tmp_path: Path):
    (tmp_path / "dots").mkdir()
    path, link = tmp_path / "dots" / "a.json", tmp_path / "link.json"
    path.write_bytes(b"before")
    link.symlink_to("dots/a.json")
    assert config_files.replace(link, b"before", b"after", TIME) == path.with_name(BACKUP)
    assert link.is_symlink()
    assert path.read_bytes() == b"after"
    assert names(tmp_path) == ["dots", "link.json"]


def test_a_new_file_and_its_directories_are_for_the_owner_alone(tmp_path: Path):
    path = tmp_path / "a" / "b" / "c.json"
    assert config_files.read(path) is None
    assert config_files.replace(path, None, b"after", TIME) is None
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert names(path.parent) == ["c.json"]


@pytest.mark.parametrize("before", [b"before", None])
def test_what_somebody_else_wrote_meanwhile_stays(tmp_path: Path, before: bytes | None):
    path = tmp_path / "a.json"
    path.write_bytes(b"theirs")
    with pytest.raises(Changed):
        config_files.replace(path, before, b"after", TIME)
    assert (path.read_bytes(), names(tmp_path)) == (b"theirs", ["a.json"])
    path.unlink()
    if before is not None:
        with pytest.raises((Changed, FileNotFoundError)):
            config_files.replace(path, before, b"after", TIME)
        assert names(tmp_path) == []


@pytest.mark.parametrize("fault_at", [1, 2])
def test_a_full_disk_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault_at: int
):
    path = tmp_path / "a.json"
    path.write_bytes(b"before")
    real, flushes = os.fsync, []

    def fsync(descriptor: int) -> None:
        flushes.append(descriptor)
        if len(flushes) == fault_at:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        config_files.replace(path, b"before", b"after", TIME)
    assert (path.read_bytes(), names(tmp_path)) == (b"before", ["a.json"])


def test_everything_is_on_the_disk_before_the_file_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.json"
    path.write_bytes(b"before")
    steps: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, name=name, real=real: (steps.append(name), real(*given)))
    config_files.replace(path, b"before", b"after", TIME)
    assert steps == ["fsync", "fsync", "replace", "fsync"]


def test_two_copies_of_one_second_are_two_files(tmp_path: Path):
    path = tmp_path / "a.json"
    path.write_bytes(b"0")
    for number in range(3):
        config_files.replace(path, b"%d" % number, b"%d" % (number + 1), TIME)
    assert names(tmp_path) == ["a.json", BACKUP, f"{BACKUP}-1", f"{BACKUP}-2"]
    assert (tmp_path / f"{BACKUP}-2").read_bytes() == b"2"


def test_the_part_of_a_killed_process_is_swept_and_that_of_a_living_one_stays(tmp_path: Path):
    dead, living = tmp_path / ".a.json.convmem-99999999.part", tmp_path / f".a.json.convmem-{os.getppid()}.part"
    for part in (dead, living):
        part.write_bytes(b"half")
    config_files.replace(tmp_path / "a.json", None, b"after", TIME)
    assert names(tmp_path) == [living.name, "a.json"]


def test_only_a_regular_file_of_some_size_is_read(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match="not a regular file"):
            config_files.read(path)
    with open(tmp_path / "large", "wb") as file:
        file.truncate(CONFIG_BYTES_MAX + 1)
    with pytest.raises(OSError, match="larger than"):
        config_files.read(tmp_path / "large")


def test_a_file_is_private_if_nobody_else_can_read_it(tmp_path: Path):
    path = tmp_path / "token"
    path.touch(mode=0o600)
    assert config_files.is_private(path)
    path.chmod(0o640)
    assert not config_files.is_private(path)
