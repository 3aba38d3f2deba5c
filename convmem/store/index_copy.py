"""A copy of an index that is not ours to touch: to look at it as SQLite does, without a lock and without a new file.

SQLite makes -wal and -shm beside whatever it opens, and mends what it finds. So a damaged store's index is copied byte
by byte, with its WAL, and only the copy is opened. A copy that changed while it was made (a daemon was at work) is made
again; what is the same afterwards was one state of the index all the while.
"""

import errno
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import apsw
import msgspec

from convmem.domain import Domain
from convmem.files import RealFiles
from convmem.limits import MIB, SALVAGE_COPIES_MAX
from convmem.store.codec import Codec
from convmem.store.compaction import live
from convmem.store.frame import STATE, Header
from convmem.store.log import Frame
from convmem.store.shelf import SUFFIXES, index_name
from convmem.store.sqlite import DAMAGE, State, connect_to_build, read_state, shape

COPY = "staging-copy.db"


def whole_copy(
    source: RealFiles, target: RealFiles, generation: int, domains: Sequence[Domain]
) -> tuple[apsw.Connection, State] | None:
    """A copy of an index, open, and how far it has come; None if it is not there, not whole, or not ours to read."""
    if not copied(source, target, index_name(generation)):
        return None
    connection = None
    try:
        connection = connect_to_build(target.path(COPY))
        state = read_state(connection, shape(domains))
        if state is not None and state.generation == generation and _is_sound(connection, domains):
            return connection, state
    except apsw.FullError:
        raise
    except (apsw.Error, *DAMAGE):
        pass  # However it is damaged: the log has to do without it.
    if connection is not None:
        connection.close()
    return None


def drop(target: RealFiles) -> None:
    """Remove the copy; no connection to it is open."""
    for suffix in SUFFIXES:
        target.remove(COPY + suffix)


def _is_sound(connection: apsw.Connection, domains: Sequence[Domain]) -> bool:
    """True if SQLite, the domains and the form of a log's state accept all that is in an index."""
    checked = connection.execute("PRAGMA quick_check(1)").fetchall()
    if checked != [("ok",)] or any(domain.check(connection) for domain in domains):
        return False
    codec = Codec(domains)
    try:
        for kept in live(connection, domains):
            payload = codec.encode_state([(kept, codec.encode_event(kept.event))])
            codec.decode(Frame(0, Header(STATE, 1, kept.sequence, 1, len(payload), 0), payload))
    except msgspec.MsgspecError:
        return False
    return True


def copied(source: RealFiles, target: RealFiles, name: str) -> bool:
    """Copy a database with its WAL into COPY; True once nothing has changed while that was done."""
    of = {COPY + suffix: name + suffix for suffix in ("", "-wal")}
    for _ in range(SALVAGE_COPIES_MAX):
        drop(target)
        there = {copy: original for copy, original in of.items() if source.exists(original)}
        if COPY not in there:
            return False
        try:
            for copy, original in there.items():
                _copy(source, original, target, copy)
            if all(source.exists(original) == (copy in there) for copy, original in of.items()) and all(
                _is_same(source, original, target, copy) for copy, original in there.items()
            ):
                return True
        except FileNotFoundError:
            continue  # A daemon has removed it since.
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
    return False


def _copy(source: RealFiles, original: str, target: RealFiles, copy: str) -> None:
    file = target.stage(copy)
    try:
        offset = 0
        for piece in _pieces(source, original):
            file.write(offset, piece)
            offset += len(piece)
    finally:
        file.close()


def _is_same(source: RealFiles, original: str, target: RealFiles, copy: str) -> bool:
    return all(left == right for left, right in zip_longest(_pieces(source, original), _pieces(target, copy)))


def _pieces(files: RealFiles, name: str) -> Iterator[bytes]:
    file = files.open_to_read(name)
    try:
        offset = 0
        while piece := file.read(offset, MIB):
            yield piece
            offset += len(piece)
    finally:
        file.close()
