"""files: the door to the disk, on a real disk: private, positioned, counted, locked."""

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from convmem import files
from convmem.files import RealFiles
from tests.support.source import REPOSITORY


@pytest.fixture
def disk(tmp_path: Path) -> RealFiles:
    made = RealFiles(tmp_path / "a" / "b")
    made.prepare()
    return made


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_directory_and_files_are_for_the_owner_alone(disk: RealFiles):
    disk.open("log").close()
    assert mode(disk.root) == 0o700
    assert mode(disk.path("log")) == 0o600


def test_preparing_leaves_nothing_behind_and_may_be_repeated(disk: RealFiles):
    disk.prepare()
    assert disk.names() == []


def test_preparing_refuses_what_is_no_directory(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        RealFiles(tmp_path / "file").prepare()


def test_bytes_stand_where_they_were_put(disk: RealFiles):
    file = disk.open("log")
    file.write(0, b"one")
    file.write(3, b"two")
    file.write(1, b"N")
    assert (file.size(), file.read(0, 100), file.read(3, 2), file.read(6, 1)) == (6, b"oNetwo", b"tw", b"")
    file.truncate(2)
    assert file.read(0, 100) == b"oN"
    file.close()


def test_what_is_written_and_flushed_is_counted_and_reading_is_not(disk: RealFiles):
    file = disk.open("log")
    before = disk.counters.flushes
    file.write(0, b"12345")
    file.sync()
    file.read(0, 5)
    assert (disk.counters.writes, disk.counters.bytes, disk.counters.flushes - before) == (1, 5, 1)
    file.close()
    disk.open("log").close()
    assert disk.counters.flushes - before == 1, "only a new name costs a flush of the directory"


def test_a_file_without_a_name_is_noticed(disk: RealFiles):
    file = disk.open("log")
    assert file.is_linked()
    disk.remove("log")
    assert not file.is_linked()
    file.close()


def test_opening_to_read_makes_nothing_and_takes_no_write(disk: RealFiles):
    with pytest.raises(FileNotFoundError):
        disk.open_to_read("log")
    disk.open("log").close()
    file = disk.open_to_read("log")
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.write(0, b"x")
    file.close()


def test_a_missing_file_has_no_size_and_can_be_removed(disk: RealFiles):
    assert (disk.exists("log"), disk.size("log")) == (False, 0)
    disk.remove("log")
    files.remove(disk.path("log"))


@pytest.mark.slow
def test_a_lock_keeps_other_processes_out_until_its_holder_ends(disk: RealFiles):
    path = disk.path("store.lock")
    program = f"from convmem import files; from pathlib import Path; print(files.lock(Path({str(path)!r})) is None)"

    def is_taken() -> bool:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
        )
        return done.stdout == "True\n"

    held = files.lock(path)
    assert held is not None
    held.tell("a longer text than the next one")
    held.tell("pid 7")
    assert files.read_text(path, bytes_max=100) == b"pid 7"
    assert is_taken()
    held.close()
    assert not is_taken()
    assert not is_taken(), "a process that ended holds nothing, though its file is there"


def test_a_small_file_is_read_up_to_its_bound(tmp_path: Path):
    (tmp_path / "token").write_bytes(b"0123456789")
    assert files.read_text(tmp_path / "token", bytes_max=4) == b"0123"
    assert files.read_text(tmp_path / "none", bytes_max=4) is None
    assert files.read_text(tmp_path / "token" / "below", bytes_max=4) is None
    with pytest.raises(IsADirectoryError):
        files.read_text(tmp_path, bytes_max=4)


def test_what_others_make_inside_the_block_is_private(tmp_path: Path):
    before = os.umask(0o022)
    try:
        with files.private_files():
            (tmp_path / "inside").touch()
        (tmp_path / "outside").touch()
    finally:
        os.umask(before)
    assert (mode(tmp_path / "inside"), mode(tmp_path / "outside")) == (0o600, 0o644)
    files.make_private(tmp_path / "outside")
    assert mode(tmp_path / "outside") == 0o600


def test_threads_that_make_private_files_do_not_lift_each_other_s_mask(tmp_path: Path):
    is_inside, may_leave = threading.Event(), threading.Event()

    def first() -> None:
        with files.private_files():
            is_inside.set()
            assert may_leave.wait(10)

    def second() -> None:
        with files.private_files():
            (tmp_path / "second").touch()

    before = os.umask(0o022)
    try:
        threads = [threading.Thread(target=first), threading.Thread(target=second)]
        threads[0].start()
        assert is_inside.wait(10)
        threads[1].start()
        may_leave.set()
        for thread in threads:
            thread.join()
        (tmp_path / "outside").touch()
    finally:
        os.umask(before)
    assert (mode(tmp_path / "second"), mode(tmp_path / "outside")) == (0o600, 0o644)


def test_the_boot_has_a_name_that_stays(monkeypatch: pytest.MonkeyPatch):
    assert files.boot_id() == files.boot_id()
    monkeypatch.setattr(files, "read_text", lambda *_, **__: None)
    assert files.boot_id() == ""


def test_a_staged_file_is_empty_and_gets_its_name_by_one_step(disk: RealFiles):
    disk.open("log").write(0, b"old")
    before = disk.counters.flushes
    staged = disk.stage("staging")
    staged.write(0, b"half of an earlier try")
    staged.close()
    staged = disk.stage("staging")
    assert staged.size() == 0
    staged.write(0, b"new")
    assert disk.counters.flushes == before
    disk.rename("staging", "log")
    disk.sync_directory()
    assert disk.counters.flushes == before + 1
    assert disk.path("log").read_bytes() == b"new"
    assert disk.names() == ["log"]
    assert mode(disk.path("log")) == 0o600
    assert staged.is_linked()


def test_a_file_appears_once_it_is_whole(tmp_path: Path):
    target = tmp_path / "a.txt"
    with files.appearing(target) as write:
        write(b"one ")
        write(b"two")
        assert not target.exists()
    assert target.read_bytes() == b"one two"
    assert mode(target) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path):
    target = tmp_path / "a.txt"
    target.write_text("precious")

    def fail() -> None:
        with files.appearing(target) as write:
            write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert target.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_the_part_of_a_killed_process_is_swept_and_that_of_a_living_one_stays(tmp_path: Path):
    dead, living, other = (tmp_path / f".convmem-{name}.part" for name in ("999999999", "1", "x"))
    dead.write_text("half")
    living.write_text("half")
    os.mkfifo(other)
    with open(living, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with files.appearing(tmp_path / "a.txt") as write:
            write(b"x")
    assert not dead.exists()
    assert living.read_text() == "half"
    assert (tmp_path / "a.txt").read_bytes() == b"x"


def test_a_link_where_the_part_would_be_is_not_followed(tmp_path: Path):
    (tmp_path / "precious").write_text("years")
    (tmp_path / f".convmem-{os.getpid()}.part").symlink_to("precious")
    with pytest.raises(OSError, match="symbolic"), files.appearing(tmp_path / "a.txt"):
        pass
    assert (tmp_path / "precious").read_text() == "years"


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path):
    target, link = tmp_path / "a.txt", tmp_path / "link"
    link.symlink_to(target)
    with files.appearing(link) as write:
        write(b"x")
    assert link.is_symlink()
    assert target.read_bytes() == b"x"
    with files.appearing(Path("/dev/null")) as write:
        write(b"x")
    assert Path("/dev/null").is_char_device()


def test_only_a_regular_file_is_read(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(b"abc")
    file = files.regular(tmp_path / "a.txt")
    assert file.read(1, 9) == b"bc"
    file.close()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none", Path("/dev/null")):
        with pytest.raises(OSError):
            files.regular(path)


def test_a_flush_of_others_files_is_not_counted(disk: RealFiles):
    disk.path("other").write_bytes(b"x")
    before = disk.counters.flushes
    files.flush(disk.path("other"))
    assert disk.counters.flushes == before
