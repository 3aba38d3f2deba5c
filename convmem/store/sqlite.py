"""index.db: the one place that opens SQLite for the log's index, and the row that says how far the index has come.

The index is disposable. Its row `store_state` is written in the same transaction as the rows it speaks of: generation
of the log, where the last applied frame begins and ends, the last id the store made. That makes the index a witness
of what may have been acknowledged (store/recovery.py). `shape` is a hash of all CREATE statements: another shape, or
a file that SQLite finds damaged, is thrown away and folded again from the log.

Checkpoints are ours (autocheckpoint is off): they run when nobody waits, as long as that does not take too long, and
their flushes can be counted.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from convmem.domain import Domain
from convmem.files import boot_id, private_files
from convmem.store.log import Position
from convmem.store.made import Made
from convmem.store.recovery import Witness

# What a read of a damaged file raises; a text that is no UTF-8 comes as Python's own error.
DAMAGE = (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError)
CACHE_KIB, BUILD_CACHE_KIB = 8 * 1024, 32 * 1024
WAIT_MS = 2_000
# Raised when the meaning of a table changes without its CREATE statement.
FORMAT = 1
STATE = """
CREATE TABLE store_state (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    shape TEXT NOT NULL, schema TEXT NOT NULL,
    generation INTEGER NOT NULL,
    tail_offset INTEGER NOT NULL, tail_sequence INTEGER NOT NULL,
    end_offset INTEGER NOT NULL, next_sequence INTEGER NOT NULL,
    tail_checksum INTEGER NOT NULL,
    last_id TEXT NOT NULL, last_number INTEGER NOT NULL,
    store_id TEXT NOT NULL,
    boot TEXT NOT NULL,
    clean INTEGER NOT NULL,
    damage_offset INTEGER
) STRICT
"""


class State(NamedTuple):
    """How far the index has come, and whether it was left in order."""

    generation: int
    tail: Position
    end: Position
    tail_checksum: int
    made: Made
    store_id: str
    boot: str
    is_clean: bool
    damage_offset: int | None

    @property
    def witness(self) -> Witness:
        """The same, as recovery asks for it."""
        return Witness(self.generation, self.tail, self.end, self.tail_checksum)


FRESH = State(1, Position(0, 1), Position(0, 1), 0, Made(), "", "", True, None)


@dataclass
class IndexCounters:
    """SQLite's share of the disk: commits, bytes of pages written, flushes (two a checkpoint: WAL and database)."""

    writes: int = 0
    bytes: int = 0
    flushes: int = 0
    # Of the indexes before this one, since start.
    bytes_before: int = 0


def shape(domains: Sequence[Domain]) -> str:
    """A hash of everything that an index of these domains looks like."""
    text = "\n".join([str(FORMAT), STATE, *(domain.create for domain in domains)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def connect(path: Path | str) -> apsw.Connection:
    """Open the writing connection; the file is made (0600) if it is missing."""
    with private_files():
        connection = apsw.Connection(os.fspath(path))
        connection.set_busy_timeout(WAIT_MS)
        configure(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def connect_to_build(path: Path | str) -> apsw.Connection:
    """Open a connection that fills a fresh file as quickly as can be: nothing in it counts until it is whole."""
    with private_files():
        connection = apsw.Connection(os.fspath(path))
        configure(connection)
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"PRAGMA cache_size = -{BUILD_CACHE_KIB}")
    return connection


def connect_to_read(path: Path | str) -> apsw.Connection:
    """Open a connection that cannot write. apsw.CantOpenError if there is no such file."""
    connection = apsw.Connection(os.fspath(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    connection.set_busy_timeout(WAIT_MS)
    configure(connection)
    return connection


def attach_search(connection: apsw.Connection, path: Path) -> None:
    """Let a reading connection see another file as schema `search`. apsw.CantOpenError if there is no such file."""
    connection.execute("ATTACH ? AS search", (f"{path.absolute().as_uri()}?mode=ro",))
    connection.execute(f"PRAGMA search.cache_size = -{CACHE_KIB}")


def hold_moment(connection: apsw.Connection) -> None:
    """Let a connection see one moment of its file from now on: what is committed afterwards is not seen."""
    connection.execute("BEGIN")
    # A transaction begins with its first read.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()


def connect_to_still(path: Path) -> apsw.Connection:
    """Open a file that nobody writes, and that has no WAL, as if on a medium that cannot change: no lock is taken and
    no other file is made. Whoever reads must look afterwards whether it stayed as it was.
    """
    connection = apsw.Connection(
        f"{path.absolute().as_uri()}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    configure(connection)
    return connection


def configure(connection: apsw.Connection) -> None:
    # A misspelt column in double quotes must be an error, not a string (sqlite.org/quirks.html).
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute("PRAGMA temp_store = MEMORY")


def read_state(connection: apsw.Connection, expected_shape: str) -> State | None:
    """Return the state row; None if this is no index of the expected shape. apsw.Error if the file is damaged."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'store_state'").fetchone():
        return None
    columns = {row[1] for row in connection.execute("PRAGMA table_info(store_state)")}
    if "shape" not in columns:
        return None
    found = connection.execute("SELECT shape FROM store_state").fetchone()
    if found is None or found[0] != expected_shape:
        return None
    if connection.execute("SELECT schema FROM store_state").fetchone() != (_schema(connection),):
        return None
    row: Any = connection.execute(
        "SELECT generation, tail_offset, tail_sequence, end_offset, next_sequence, tail_checksum, last_id,"
        " last_number, store_id, boot, clean, damage_offset FROM store_state"
    ).fetchone()
    generation, *positions, tail_checksum, last_id, last_number, store_id, boot, is_clean, damage_offset = row
    tail, end, made = Position(*positions[:2]), Position(*positions[2:]), Made(last_id, last_number)
    return State(generation, tail, end, tail_checksum, made, store_id, boot, bool(is_clean), damage_offset)


def _schema(connection: apsw.Connection) -> str:
    """A hash of the tables as SQLite has them: what is not as it was made cannot be trusted, whatever else it says."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:32]


class Index:
    """The writing connection of one index, and its state row. Used by one thread at a time."""

    def __init__(self, connection: apsw.Connection, domains: Sequence[Domain], *, fresh_generation: int | None) -> None:
        """Take over a connection; with `fresh_generation` the tables are made first (the file must be empty)."""
        self.connection = connection
        self._shape = shape(domains)
        self._domains = domains
        self.counters = IndexCounters()
        self._page_bytes = int(connection.pragma("page_size"))
        self._boot = boot_id()
        self._written_pages = self._moved_pages = 0
        self.state = self._before = FRESH
        if fresh_generation is not None:
            with self.transaction():
                self.create(fresh_generation)
        state = read_state(connection, self._shape)
        assert state is not None
        self.state = state

    def create(self, generation: int) -> None:
        """Inside a transaction: drop what is there and make empty tables for `generation`."""
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        for (table,) in self.connection.execute(tables).fetchall():
            self.connection.execute(f'DROP TABLE "{table}"')
        self.connection.execute(STATE)
        for domain in self._domains:
            self.connection.execute(domain.create)
        self.connection.execute(
            "INSERT INTO store_state VALUES (1, ?, ?, ?, 0, 1, 0, 1, 0, '', 0, '', ?, 0, NULL)",
            (self._shape, _schema(self.connection), generation, self._boot),
        )
        self.state = FRESH._replace(generation=generation, boot=self._boot, is_clean=False)

    def begin(self) -> None:
        """Open the batch's transaction."""
        self._before = self.state
        self.connection.execute("BEGIN IMMEDIATE")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction around the block: COMMIT at its end, nothing of it if anything is raised."""
        self.begin()
        try:
            yield
            self.commit()
        finally:
            if self.connection.in_transaction:
                self.rollback()

    def move(
        self, tail: Position, end: Position, made: Made, *, tail_checksum: int = 0, store_id: str | None = None
    ) -> None:
        """Inside a transaction: say how far it will have come, and that it is in use under this boot.

        The mark of the start may not have fitted on a full disk; this one is written with the first rows that do.
        """
        store_id = self.state.store_id if store_id is None else store_id
        self.connection.execute(
            "UPDATE store_state SET tail_offset = ?, tail_sequence = ?, end_offset = ?, next_sequence = ?,"
            " tail_checksum = ?, last_id = ?, last_number = ?, store_id = ?, clean = 0, boot = ?",
            (*tail, *end, tail_checksum, *made, store_id, self._boot),
        )
        self.state = self.state._replace(
            tail=tail,
            end=end,
            tail_checksum=tail_checksum,
            made=made,
            store_id=store_id,
            is_clean=False,
            boot=self._boot,
        )

    def commit(self) -> None:
        """Make the batch visible to readers."""
        self.connection.execute("COMMIT")
        self.counters.writes += 1

    def rollback(self) -> None:
        """Undo the batch. SQLite may have done so already after a full disk."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        self.state = self._before

    def mark(self, *, is_clean: bool, damage_offset: int | None) -> None:
        """Remember how the index was left, in a transaction of its own."""
        with self.transaction():
            self.connection.execute(
                "UPDATE store_state SET clean = ?, boot = ?, damage_offset = ?", (is_clean, self._boot, damage_offset)
            )
        self.state = self.state._replace(is_clean=is_clean, boot=self._boot, damage_offset=damage_offset)

    def checkpoint(self) -> None:
        """Move pages from the WAL into the database file; readers go on. What a reader still needs stays for later."""
        written, moved = self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        self.counters.flushes += 2
        self.count()
        self._moved_pages = self._written_pages - max(0, written - moved)

    def count(self) -> None:
        """Bring the byte counter up to date from SQLite's own count of pages written."""
        self._written_pages, _ = self.connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
        self.counters.bytes = self.counters.bytes_before + self._written_pages * self._page_bytes

    @property
    def waiting_pages(self) -> int:
        """How many pages were written since the WAL was last moved into the file, as of the last count."""
        return self._written_pages - self._moved_pages

    def close(self) -> None:
        """Close the connection; SQLite folds the WAL into the file if it is the last one."""
        self.connection.close()

    def abandon(self) -> None:
        """Close the connection of a file that is about to be removed: its WAL need not be folded in."""
        self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.connection.close()
