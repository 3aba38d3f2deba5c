"""file_descriptors: the small door to the disk: private, whole, locked."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from convmem import file_descriptors as disk
from tests.support.manual_clock import ManualClock
from tests.support.source import REPOSITORY

SIZE_MAX = 64
FULL = "File too large|No space left"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def small_files() -> Iterator[None]:
    """No file can grow beyond SIZE_MAX bytes, as on a disk that is full there."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE_MAX, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = disk.open_file(str(tmp_path / "file"))
    yield descriptor
    disk.close(descriptor)


def test_what_is_made_is_for_the_owner_alone(tmp_path: Path):
    disk.make_directory(str(tmp_path / "a" / "b"))
    disk.close(disk.open_file(str(tmp_path / "a" / "b" / "c")))
    assert (mode(tmp_path / "a"), mode(tmp_path / "a" / "b"), mode(tmp_path / "a" / "b" / "c")) == (0o700, 0o700, 0o600)


def test_what_was_open_to_others_is_closed_to_them(tmp_path: Path):
    (tmp_path / "d").mkdir(mode=0o755)
    (tmp_path / "d" / "f").touch(mode=0o644)
    disk.make_directory(str(tmp_path / "d"))
    disk.close(disk.open_file(str(tmp_path / "d" / "f")))
    assert (mode(tmp_path / "d"), mode(tmp_path / "d" / "f")) == (0o700, 0o600)


def test_no_link_is_followed(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="link"):
        disk.open_file(str(tmp_path / "link"))
    assert not (tmp_path / "elsewhere").exists()


def test_bytes_are_put_behind_those_that_are_there(file: int):
    disk.write_at_end(file, 0, b"one")
    disk.write_at_end(file, 3, b"two")
    assert disk.read(file, 1, 100) == b"netwo"
    assert disk.size_and_number(file) == (6, os.fstat(file).st_ino)


def test_a_full_disk_leaves_the_file_as_it_was(file: int):
    disk.write_at_end(file, 0, b"x" * 60)
    with small_files(), pytest.raises(OSError, match=FULL):
        disk.write_at_end(file, 60, b"y" * 10)
    assert disk.read(file, 0, 100) == b"x" * 60


def test_replacing_is_all_or_nothing_and_leaves_no_part_behind(tmp_path: Path):
    path = tmp_path / "state"
    disk.replace(str(path), b"one")
    with small_files(), pytest.raises(OSError, match=FULL):
        disk.replace(str(path), b"x" * 100)
    assert path.read_bytes() == b"one"
    (tmp_path / "state.part").write_text("what a killed process left, longer than what comes")
    disk.replace(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert [found.name for found in tmp_path.iterdir()] == ["state"]


def test_the_rest_of_a_file_takes_its_place(tmp_path: Path, file: int):
    data = bytes(range(256)) * 4096
    disk.write_at_end(file, 0, data)
    disk.keep_from(str(tmp_path / "file"), file, 1000)
    assert (tmp_path / "file").read_bytes() == data[1000:]
    assert not disk.is_linked(file)


def test_a_lock_is_taken_once_and_freed_by_closing(tmp_path: Path):
    first, second = (disk.open_file(str(tmp_path / "lock")) for _ in range(2))
    rests: list[float] = []
    clock = ManualClock()
    assert disk.lock(first)
    assert not disk.lock_within(second, 5, clock.monotonic_ms, rests.append)
    assert sum(rests) == 5
    disk.close(first)
    assert disk.lock_within(second, 5, clock.monotonic_ms, rests.append)
    assert sum(rests) == 5
    disk.close(second)


def test_rests_that_take_longer_than_they_should_do_not_add_up(tmp_path: Path):
    first, second = (disk.open_file(str(tmp_path / "lock")) for _ in range(2))
    clock = ManualClock()
    rests: list[float] = []

    def oversleep(duration_ms: float) -> None:
        rests.append(duration_ms)
        clock.pass_ms(8)

    assert disk.lock(first)
    assert not disk.lock_within(second, 15, clock.monotonic_ms, oversleep)
    assert len(rests) == 2
    disk.close(first)
    disk.close(second)


def test_a_small_file_that_is_not_there_is_none(tmp_path: Path):
    assert disk.read_small(str(tmp_path / "a" / "b"), 10) is None
    (tmp_path / "c").write_bytes(b"0123456789abc")
    assert disk.read_small(str(tmp_path / "c"), 10) == b"0123456789"
    assert (disk.size(str(tmp_path / "c")), disk.size(str(tmp_path / "d"))) == (13, 0)


def test_what_is_no_file_has_no_bytes_and_what_is_no_path_cannot_be_looked_at(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    assert disk.size(str(tmp_path)) == 0
    assert disk.is_there(str(tmp_path / "file"))
    assert not disk.is_there(str(tmp_path / "a" / "b"))
    with pytest.raises(NotADirectoryError):
        disk.is_there(str(tmp_path / "file" / "b"))


def test_letting_go_closes_every_pipe_but_keeps_the_lock(tmp_path: Path):
    program = (
        "import os, sys; from convmem import file_descriptors as disk\n"
        f"kept = disk.open_file({str(tmp_path / 'lock')!r})\n"
        "others = [os.dup(1) for _ in range(5)]\n"
        "disk.let_go_of_everything(kept)\n"
        "print('nobody reads this', flush=True)\n"
        "streams = {os.path.realpath(f'/proc/self/fd/{number}') for number in range(3)}\n"
        "os.write(kept, b'kept' if streams == {'/dev/null'} else b'')\n"
        "os.write(kept, str(sum(os.path.exists(f'/proc/self/fd/{n}') for n in others)).encode())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "lock").read_text() == "kept0"
