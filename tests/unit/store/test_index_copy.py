"""store/index_copy: the copy is one state of an index that was whole, or there is none; the original is only read."""

import errno
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import msgspec
import pytest

from convmem import memory, messages
from convmem.daemon import domains
from convmem.domain import Kept
from convmem.files import RealFile, RealFiles
from convmem.store import index_copy
from convmem.store.index_copy import COPY
from tests.support.wrecks import SCRIPT, Step, Wreck

pytestmark = pytest.mark.slow


@pytest.fixture
def wreck(tmp_path: Path) -> Wreck:
    made = Wreck(tmp_path / "from")
    made.play(SCRIPT)
    return made


@pytest.fixture
def target(tmp_path: Path) -> RealFiles:
    files = RealFiles(tmp_path / "to")
    files.prepare()
    return files


class Watched(RealFiles):
    """A directory in which something happens whenever a file has been opened to be read."""

    happens: Callable[[str], None]

    def open_to_read(self, name: str) -> RealFile:
        file = super().open_to_read(name)
        self.happens(name)
        return file


def test_a_copy_says_how_far_the_index_has_come(wreck: Wreck, target: RealFiles):
    before = wreck.image()
    copied = index_copy.whole_copy(RealFiles(wreck.directory), target, 1, domains())
    assert copied is not None
    connection, state = copied
    assert state.end.next_sequence == len(SCRIPT) + 1
    assert connection.execute("SELECT count(*) FROM messages_message").fetchall() == [(6,)]
    connection.close()
    assert wreck.image() == before
    index_copy.drop(target)
    assert target.names() == []


def test_there_is_no_copy_of_what_is_not_there(wreck: Wreck, target: RealFiles):
    assert index_copy.whole_copy(RealFiles(wreck.directory), target, 2, domains()) is None


def test_a_copy_that_changed_while_it_was_made_is_made_again(wreck: Wreck, target: RealFiles):
    """As beside a daemon: the WAL appears and grows between two looks."""
    source = Watched(wreck.directory)
    stores = []

    def write(name: str) -> None:
        if name == "index-1.db" and not stores:
            stores.append(wreck.play(SCRIPT[:1], closes=False))

    source.happens = write
    copied = index_copy.whole_copy(source, target, 1, domains())
    assert copied is not None
    connection, state = copied
    assert state == stores[0]._index.state, "the copy is of a moment behind the change"
    connection.close()
    stores[0].close()


def test_a_wal_that_went_away_meanwhile_is_no_part_of_the_copy(wreck: Wreck, target: RealFiles):
    """Played into what came later it would turn that back."""
    source, stores = Watched(wreck.directory), [wreck.play(SCRIPT[:1], closes=False)]

    def close(name: str) -> None:
        if name.endswith("-wal") and stores:
            stores.pop().close()
            wreck.play([Step("write", 30), Step("write", 31)])

    source.happens = close
    copied = index_copy.whole_copy(source, target, 1, domains())
    assert copied is not None
    connection, state = copied
    connection.close()
    assert state.end.offset == wreck.log.stat().st_size


def test_an_index_that_never_stands_still_is_not_copied(wreck: Wreck, target: RealFiles):
    source = Watched(wreck.directory)
    path = wreck.directory / "index-1.db-wal"
    count = 0

    def grow(name: str) -> None:
        nonlocal count
        count += 1
        path.write_bytes(b"x" * count)

    source.happens = grow
    assert index_copy.whole_copy(source, target, 1, domains()) is None


def test_an_index_that_is_removed_meanwhile_is_not_copied(wreck: Wreck, target: RealFiles):
    source = Watched(wreck.directory)
    source.happens = lambda name: (wreck.directory / name).unlink()
    assert index_copy.whole_copy(source, target, 1, domains()) is None


def test_an_index_on_bad_places_of_the_disk_is_not_copied(wreck: Wreck, target: RealFiles):
    def fail(name: str) -> None:
        raise OSError(errno.EIO, "made to fail")

    source = Watched(wreck.directory)
    source.happens = fail
    assert index_copy.whole_copy(source, target, 1, domains()) is None


def test_an_index_that_may_not_be_read_is_said_to_be_so(wreck: Wreck, target: RealFiles):
    def fail(name: str) -> None:
        raise PermissionError(errno.EACCES, "made to fail")

    source = Watched(wreck.directory)
    source.happens = fail
    with pytest.raises(PermissionError):
        index_copy.whole_copy(source, target, 1, domains())


def test_an_older_copy_is_no_part_of_a_new_one(wreck: Wreck, target: RealFiles):
    target.path(COPY).write_bytes(b"old")
    target.path(f"{COPY}-wal").write_bytes(b"old")
    copied = index_copy.whole_copy(RealFiles(wreck.directory), target, 1, domains())
    assert copied is not None
    copied[0].close()
    assert not target.exists(f"{COPY}-wal")


@pytest.mark.parametrize("column", ["content", "session_id", "summary"])
def test_an_index_with_a_text_that_is_no_utf_8_is_not_whole(wreck: Wreck, target: RealFiles, column: str):
    connection = apsw.Connection(str(wreck.directory / "index-1.db"))
    size = "content_bytes = 1" if column == "content" else "content_bytes = content_bytes"
    connection.execute(f"UPDATE messages_message SET {column} = CAST(x'ff' AS TEXT), {size}")
    connection.close()
    assert index_copy.whole_copy(RealFiles(wreck.directory), target, 1, domains()) is None


def test_an_index_whose_records_no_log_could_hold_is_not_whole(wreck: Wreck, target: RealFiles):
    """SQLite and the domain find nothing wrong with it."""

    def strange(connection: apsw.Connection) -> Iterator[Kept]:
        for kept in messages.DOMAIN.live(connection):
            yield kept._replace(event=msgspec.structs.replace(kept.event, role="stranger"))

    files = RealFiles(wreck.directory)
    assert index_copy.whole_copy(files, target, 1, [replace(messages.DOMAIN, live=strange), memory.DOMAIN]) is None
    copied = index_copy.whole_copy(files, target, 1, domains())
    assert copied is not None
    copied[0].close()
