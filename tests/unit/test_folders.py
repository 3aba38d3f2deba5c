"""Directories of the user's: nothing goes through a link, and what is written appears whole."""

import os
from pathlib import Path

import pytest

from convmem import folders


def test_what_stands_in_a_place_is_asked_of_the_place_itself(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "directory").mkdir()
    (tmp_path / "to-file").symlink_to(tmp_path / "file")
    (tmp_path / "to-directory").symlink_to(tmp_path / "directory")
    (tmp_path / "to-nothing").symlink_to(tmp_path / "nothing")
    names = folders.names(tmp_path)
    assert [name for name in names if folders.is_file(tmp_path / name)] == ["file"]
    assert [name for name in names if folders.is_directory(tmp_path / name)] == ["directory"]
    assert all(folders.is_anything(tmp_path / name) for name in names)
    assert not folders.is_anything(tmp_path / "nothing")
    assert folders.names(tmp_path / "nothing") == []
    assert folders.size(tmp_path / "file") == 1
    assert folders.size(tmp_path / "nothing") == 0


def test_nothing_is_read_or_written_through_a_link(tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    for act in (
        lambda: folders.read(link, 10),
        lambda: folders.write(link, b"x"),
        lambda: folders.copy(link, tmp_path / "copy"),
    ):
        with pytest.raises(OSError):
            act()
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "copy").exists()


def test_a_pipe_is_no_file_and_nobody_waits_for_it(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError):
        folders.read(tmp_path / "pipe", 10)


def test_directories_are_made_for_the_owner_alone(tmp_path: Path):
    folders.make(tmp_path / "a" / "b" / "c")
    folders.make(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_file_is_written_copied_moved_and_removed(tmp_path: Path):
    folders.write(tmp_path / "a", b"x" * 1_000_000)
    folders.copy(tmp_path / "a", tmp_path / "b")
    folders.move(tmp_path / "b", tmp_path / "c")
    folders.remove(tmp_path / "a")
    folders.remove(tmp_path / "a")
    assert folders.names(tmp_path) == ["c"]
    assert folders.read(tmp_path / "c", 2_000_000) == b"x" * 1_000_000
    assert folders.read(tmp_path / "c", 3) == b"xxx"
    (tmp_path / "d").mkdir()
    folders.remove_empty(tmp_path / "d")
    folders.remove_empty(tmp_path)
    assert folders.names(tmp_path) == ["c"]


def test_many_files_of_a_directory_each_appear_whole(tmp_path: Path):
    (tmp_path / ".convmem-1.part").write_text("what a killed process left")
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "old")
    with folders.filling(tmp_path) as put:
        assert not (tmp_path / ".convmem-1.part").exists()
        put("a", b"one")
        assert (tmp_path / "a").read_bytes() == b"one"
        put("a", b"two")
        with pytest.raises(OSError, match="symbolic"):
            put("link", b"three")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a": b"two",
        "old": b"old",
        "link": b"old",
    }
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_a_file_among_many_that_cannot_be_written_leaves_nothing_and_the_others(tmp_path: Path):
    with folders.filling(tmp_path) as put:
        put("a", b"one")
        (tmp_path / "taken").mkdir()
        with pytest.raises(OSError, match="directory"):
            put("taken", b"two")
        put("b", b"three")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "taken"]


def test_the_names_of_many_files_are_seen_to_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    flushed: list[tuple[Path, int]] = []
    monkeypatch.setattr(folders, "flush_directory", lambda path: flushed.append((path, len(os.listdir(path)))))
    with folders.filling(tmp_path) as put:
        put("a", b"one")
        put("b", b"two")
    assert flushed == [(tmp_path, 2)]
