"""search-<generation>.db: tables that follow the index of a generation, opened if they can be trusted, else made anew.

They are disposable twice over: the log is the truth, the index is folded from it, and this file is fed from the index
by whole transactions with the watermark in them. So it is trusted by what it says of itself: made by this version for
this generation, never ahead of the index, and sound if the machine went down while it was open.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from convmem.domain import Domain, Searchable
from convmem.files import boot_id
from convmem.store.sqlite import DAMAGE, connect

STATE = """
CREATE TABLE search_state (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    shape TEXT NOT NULL,
    generation INTEGER NOT NULL,
    store_id TEXT NOT NULL,
    boot TEXT NOT NULL,
    clean INTEGER NOT NULL
) STRICT
"""
# Pages of the WAL that are moved into the file at once; as many bytes are flushed at once.
CHECKPOINT_PAGES = 2_000
HEALED = "; `convmem compact` makes them anew"
OTHER_VERSION, NOT_MADE = "of another version", "not finished"

Pause = Callable[[], None]


def searchables(domains: Sequence[Domain]) -> list[Searchable]:
    """What the domains keep beside the index to be searched by."""
    return [domain.search for domain in domains if domain.search is not None]


def shape(domains: Sequence[Domain]) -> str:
    """A hash of everything that decides what the tables look like and hold."""
    parts = [STATE, apsw.sqlite_lib_version()]
    for searchable in searchables(domains):
        parts += [searchable.version, searchable.create]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


class SearchIndex:
    """The writing connection of one file. Used by one thread at a time."""

    def __init__(self, connection: apsw.Connection, domains: Sequence[Domain]) -> None:
        self._connection = connection
        self._searchables = searchables(domains)

    def feed(self, index: apsw.Connection, pause: Pause) -> int:
        """Follow the index by at most one transaction a domain; how many records, 0 when all are known."""
        count = 0
        for searchable in self._searchables:
            with index:
                count += searchable.feed(self._connection, index, pause)
        return count

    def lag(self, index: apsw.Connection) -> int:
        """How many changes of the index are not known yet."""
        return sum(one.lag(index, one.watermark(self._connection)) for one in self._searchables)

    def is_sound(self, index: apsw.Connection) -> bool:
        """A quick look whether these can be the tables of this index. apsw.SQLError or sqlite.DAMAGE if they cannot be
        read.
        """
        with self._connection, index:
            found = [searchable.is_sound(self._connection, index) for searchable in self._searchables]
        return all(found)

    def rest(self, index: apsw.Connection) -> None:
        """Remember of which store this is, which an index knows from its first entry on, and move pages from the WAL
        into the file; readers go on.
        """
        store_id = shown_by(index).store_id
        self._connection.execute("UPDATE search_state SET store_id = ?1 WHERE store_id != ?1", (store_id,))
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def close(self) -> None:
        """Mark the file as left in order and close it."""
        with suppress(apsw.FullError, apsw.IOError, apsw.ReadOnlyError):
            self._connection.execute("UPDATE search_state SET clean = 1")
        self._connection.close()

    def abandon(self) -> None:
        """Close the connection of a file that is about to be removed."""
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._connection.close()


class Shown(NamedTuple):
    """What an index shows: the sequence through which, and of which store."""

    sequence: int
    store_id: str


def shown_by(index: apsw.Connection) -> Shown:
    """What this index says of itself."""
    sequence, store_id = index.execute("SELECT next_sequence - 1, store_id FROM store_state").fetchone() or (0, "")
    return Shown(int(sequence), str(store_id))


def make(path: Path, domains: Sequence[Domain], generation: int, index: apsw.Connection) -> SearchIndex:
    """Make the empty tables of an index in a fresh file."""
    connection = _connect(path)
    with connection:
        connection.execute(STATE)
        state = (shape(domains), generation, shown_by(index).store_id, boot_id())
        connection.execute("INSERT INTO search_state VALUES (1, ?, ?, ?, ?, 0)", state)
        for searchable in searchables(domains):
            connection.execute(searchable.create)
    return SearchIndex(connection, domains)


def reopen(path: Path, domains: Sequence[Domain], generation: int, index: apsw.Connection) -> SearchIndex | str:
    """Open a file that is there, for this index; or in words why it cannot be trusted."""
    connection = None
    try:
        connection = _connect(path)
        fault = _fault(connection, domains, generation, shown_by(index))
        if fault is None and not SearchIndex(connection, domains).is_sound(index):
            fault = "not of this index"
        if fault is None:
            store_id = shown_by(index).store_id
            connection.execute("UPDATE search_state SET clean = 0, boot = ?, store_id = ?", (boot_id(), store_id))
            return SearchIndex(connection, domains)
    except (apsw.SQLError, apsw.CantOpenError, *DAMAGE):
        fault = "damaged"
    if connection is not None:
        SearchIndex(connection, domains).abandon()
    return fault


def differences(
    search: apsw.Connection, index: apsw.Connection, domains: Sequence[Domain], generation: int
) -> list[str]:
    """What the tables say otherwise than the index, one sentence each. Tables of another version say nothing, they are
    made anew; nor do those that are just being made. apsw.SQLError or sqlite.DAMAGE if they cannot be read.
    """
    fault = _fault(search, domains, generation, shown_by(index))
    if fault is not None:
        return [] if fault in (OTHER_VERSION, NOT_MADE) else [f"the tables of search are {fault}{HEALED}"]
    return [sentence + HEALED for searchable in searchables(domains) for sentence in searchable.check(search, index)]


def _fault(connection: apsw.Connection, domains: Sequence[Domain], generation: int, shown: Shown) -> str | None:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema")]
    if not tables:
        return NOT_MADE
    if "search_state" not in tables:
        return "damaged"
    known = connection.execute("SELECT shape FROM search_state").fetchone()
    if known != (shape(domains),):
        return OTHER_VERSION
    state: Any = connection.execute("SELECT generation, store_id, boot, clean FROM search_state").fetchone()
    of_generation, store_id, boot, is_clean = state
    if of_generation != generation:
        return OTHER_VERSION
    # A store has no identity before its first entry.
    if store_id and store_id != shown.store_id:
        return "of another store"
    # SIGKILL does not harm a WAL database; what the operating system had not written when it died might have.
    may_be_harmed = not is_clean and (boot != boot_id() or not boot)
    if may_be_harmed and connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        return "damaged"
    if any(searchable.watermark(connection) > shown.sequence for searchable in searchables(domains)):
        return "ahead of the index"
    return None


def _connect(path: Path) -> apsw.Connection:
    connection = connect(path)
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    return connection
