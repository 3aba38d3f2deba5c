"""doctor/here: who holds a lock, by the kernel's word alone."""

import os
from pathlib import Path

import pytest

from convmem import files
from convmem.doctor import here
from convmem.doctor.here import is_alive, lock_holder, name_of, program_of


def test_the_kernel_names_who_holds_a_lock(tmp_path: Path):
    path = tmp_path / "store.lock"
    assert lock_holder(path) is None
    held = files.lock(path)
    assert held is not None
    assert lock_holder(path) == os.getpid()
    assert lock_holder(tmp_path / "another") is None
    held.close()
    assert lock_holder(path) is None


def test_where_another_device_is_named_the_likely_pid_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, locks = tmp_path / "store.lock", tmp_path / "locks"
    path.touch()
    number = path.stat().st_ino
    locks.write_text(
        f"1: POSIX  ADVISORY  WRITE 41 00:99:{number} 0 EOF\n2: FLOCK\n"
        f"3: FLOCK  ADVISORY  WRITE 42 00:99:{number} 0 EOF\n"
    )
    monkeypatch.setattr(here, "LOCKS", locks)
    assert lock_holder(path) is None
    assert lock_holder(path, 41) is None
    assert lock_holder(path, 42) == 42


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b"x", b'{"pid":"1"}', b'{"pid":-1}', b'{"pid":1,"socket":"a/b","url":2}']
)
def test_a_lock_s_text_is_believed_only_as_far_as_it_can_be_meant(text: bytes):
    found = here._holder(text)
    assert found.pid in (None, 1)
    assert (found.url, found.socket) == ("", "")


def test_processes_are_known_by_name_and_life():
    assert is_alive(os.getpid())
    assert not is_alive(2**22 + 1)
    assert "pytest" in program_of(os.getpid())
    assert name_of(os.getpid())
    assert program_of(2**22 + 1) == name_of(2**22 + 1) == ""
