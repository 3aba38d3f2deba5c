"""store/shelf.py: a file a generation, found by name, built fresh, removed with what stands beside it."""

from pathlib import Path

import pytest

from convmem.files import RealFiles
from convmem.store.log import Position
from convmem.store.made import Made
from convmem.store.shelf import SUFFIXES, FileShelf, index_name
from convmem.store.sqlite import Index
from tests.support.notebook import NOTEBOOK


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_an_index_that_was_built_is_one_file_for_the_owner_alone_and_opens_like_any_other(tmp_path: Path) -> None:
    shelf = FileShelf(RealFiles(tmp_path))
    built = Index(shelf.build(4), [NOTEBOOK], fresh_generation=4)
    with built.transaction():
        built.connection.execute("INSERT INTO notes_note VALUES ('a', 1, 1, 'd', 'n', 0)")
        built.move(Position(0, 1), Position(100, 2), Made("A"))
    built.close()
    shelf.settle(4)
    assert names(tmp_path) == ["index-4.db"]
    assert (tmp_path / "index-4.db").stat().st_mode & 0o777 == 0o600
    opened = Index(shelf.open(4), [NOTEBOOK], fresh_generation=None)
    assert (opened.state.generation, opened.state.end, opened.state.made) == (4, Position(100, 2), Made("A"))
    assert opened.connection.pragma("journal_mode") == "wal"
    assert opened.connection.pragma("secure_delete") == 1
    opened.close()


def test_an_index_is_built_in_a_fresh_file_whatever_lay_there(tmp_path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / (index_name(4) + suffix)).write_bytes(b"left behind by a draft")
    shelf = FileShelf(RealFiles(tmp_path))
    shelf.build(4).close()
    assert names(tmp_path) == ["index-4.db"]


def test_a_scratch_index_begins_empty_is_no_generation_and_goes_away(tmp_path: Path) -> None:
    shelf = FileShelf(RealFiles(tmp_path))
    for _ in range(2):
        # The second is made although the first was left behind.
        connection = shelf.scratch()
        connection.execute("CREATE TABLE t (n)")
        connection.close()
    assert shelf.generations() == []
    assert len(names(tmp_path)) == 1
    shelf.drop_scratch()
    shelf.drop_scratch()
    assert names(tmp_path) == []


def test_generations_are_found_by_name_rising_and_removed_with_what_stands_beside_them(tmp_path: Path) -> None:
    shelf = FileShelf(RealFiles(tmp_path))
    connections = [shelf.open(number) for number in (10, 9, 2)]
    for connection in connections:
        connection.execute("CREATE TABLE t (n)")
    (tmp_path / "index-3.db-wal").write_bytes(b"of nothing")
    assert shelf.generations() == [2, 9, 10]
    assert {"index-9.db-wal", "index-9.db-shm"} <= set(names(tmp_path))
    connections[1].close(True)
    (tmp_path / "index-9.db-wal").write_bytes(b"left behind by a crash")
    shelf.remove(9)
    shelf.remove(9)
    assert shelf.generations() == [2, 10]
    assert not [found for found in names(tmp_path) if found.startswith("index-9")]


class Killed(Exception):
    """The process was killed here."""


class Mortal(RealFiles):
    """Removes so many files, and is killed then."""

    left = 0

    def remove(self, name: str) -> None:
        if not self.left:
            raise Killed
        self.left -= 1
        super().remove(name)


@pytest.mark.parametrize("steps", range(8))
def test_whatever_a_process_that_is_killed_leaves_of_a_generation_is_found_again(tmp_path: Path, steps: int) -> None:
    for kind in ("index", "search"):
        for suffix in SUFFIXES:
            (tmp_path / f"{kind}-4.db{suffix}").write_bytes(b"deleted words")
    files = Mortal(tmp_path)
    files.left = steps
    with pytest.raises(Killed):
        FileShelf(files).remove(4)
    again = FileShelf(RealFiles(tmp_path))
    for kind, found in (("index", again.generations()), ("search", again.searches())):
        assert bool(found) == any(name.startswith(kind) for name in names(tmp_path))
    for generation in {*again.generations(), *again.searches()}:
        again.remove(generation)
    assert names(tmp_path) == []
