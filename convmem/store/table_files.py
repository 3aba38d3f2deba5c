"""Which table files are open: to be written, by the writer's thread, and to be read, by anybody's.

The idea: a file is opened when it is needed and closed when others are needed more (least recently used), so that any
number of tables costs a bounded number of open files. Every outcome stays with its file: one that is locked, full,
damaged or gone refuses its own commands and is opened anew when it is asked again.

A file that is closed because others are written is left tidy: SQLite moves the WAL into it. One that is closed because
others are read stays as it is: reads write nothing. Rejected: one connection a file for both; a reader must see one
moment while the writer goes on.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from convmem.clock import Clock
from convmem.domain import Domain
from convmem.errors import Busy, CallerError, RetryError
from convmem.limits import BUSY_RETRY_MS, TABLE_FILES_OPEN_MAX
from convmem.store.store import Ticket
from convmem.store.table_sqlite import OF_THE_FILE, FileIdentity, connect_to_read_table, identity, refusal
from convmem.store.table_store import TableStore
from convmem.targets import TableFile

Result = TypeVar("Result")


class TableFiles:
    """The table files that are open to be written, by one thread at a time, and `readers` for any thread."""

    def __init__(self, domains: Sequence[Domain], clock: Clock) -> None:
        self._deciders = {kind: decide for domain in domains for kind, decide in domain.table_deciders.items()}
        self._clock = clock
        # The least recently used first.
        self._open: OrderedDict[Path, TableStore] = OrderedDict()
        # Held while a file is in use here, against readers who find that it was replaced.
        self._lock = threading.RLock()
        self.readers = TableReaders(self._let_go)

    @property
    def waiting_pages(self) -> int:
        """How many pages wait in the WAL of the file where most do. May be asked on any thread."""
        return max((store.waiting_pages for store in list(self._open.values())), default=0)

    def commit(self, file: TableFile, tickets: Sequence[Ticket]) -> list[Any]:
        """Make commands of one file durable. Return one outcome a ticket, in order: its answer or a ConvmemError."""
        assert tickets
        with self._lock:
            try:
                store = self._opened(file)
            except (CallerError, RetryError) as told:
                return [told] * len(tickets)
            try:
                return store.commit(tickets)
            finally:
                if store.is_doubtful:
                    self._close(file.path)

    def _opened(self, file: TableFile) -> TableStore:
        """Return the store of a file, which is then the most recently used one."""
        self._let_go(file.path)
        if file.path not in self._open:
            while len(self._open) >= TABLE_FILES_OPEN_MAX:
                self._close(next(iter(self._open)))
            self.readers.let_go(file.path)
            self._open[file.path] = TableStore(file, self._deciders, self._clock)
        self._open.move_to_end(file.path)
        return self._open[file.path]

    def _let_go(self, path: Path) -> None:
        """Close what is open of a path where the file is not as it was left. Busy while somebody reads what it was."""
        store = self._open.get(path)
        if store is None or store.is_as_left:
            return
        with self._lock:
            if store is not self._open.get(path):
                return
            if not store.part():
                raise Busy("the table's file was replaced and is still being used", retry_after_ms=BUSY_RETRY_MS)
            del self._open[path]

    def _close(self, path: Path) -> None:
        self._open.pop(path).close()

    def release(self, path: Path) -> bool:
        """Close a file wherever it is open; False if a question still runs on it. What is asked later opens it anew."""
        with self._lock:
            is_free = self.readers.release(path)
            if path in self._open:
                self._close(path)
            return is_free

    def rest(self) -> None:
        """Move what waits in WALs into their files, so that a copy of the file alone is whole."""
        with self._lock:
            for store in self._open.values():
                if store.waiting_pages:
                    store.rest()

    def close(self) -> None:
        """Close all files; called when nobody reads any more."""
        self.readers.close()
        with self._lock:
            for path in list(self._open):
                self._close(path)


class Opened(NamedTuple):
    """What a connection reads, and what these files were when it was opened."""

    paths: tuple[Path, ...]
    files: tuple[FileIdentity, ...]

    def of(self, path: Path) -> FileIdentity:
        """What one of the files was."""
        return self.files[self.paths.index(path)]


class Reading(NamedTuple):
    """A connection that reads."""

    opened: Opened
    connection: apsw.Connection


class TableReaders:
    """Connections that read table files, kept for the next question. Any thread may ask.

    `let_go` closes what is open elsewhere of a path whose file was replaced: what was opened of the old one and of the
    new one must not meet, for SQLite would take both to share a WAL.
    """

    def __init__(self, let_go: Callable[[Path], None]) -> None:
        self._let_go_elsewhere = let_go
        self._lock = threading.Lock()
        # The least recently used first.
        self._idle: list[Reading] = []
        self._lent: list[Opened] = []

    def read(self, paths: Sequence[Path], query: Callable[..., Result], *arguments: Any) -> Result:
        """Return `query(connection, *arguments)`, which sees one moment of each file. Waits for the disk and the query.

        The first path is the connection's own file, the others are its schemas `source_1`, `source_2`, … Busy where
        another program shuts readers out, StorageFault where a file cannot be read; nothing else is harmed by it.
        """
        with self._lend(tuple(paths)) as connection:
            try:
                return query(connection, *arguments)
            except OF_THE_FILE as error:
                raise refusal(error, connection) from error

    @contextmanager
    def _lend(self, paths: tuple[Path, ...]) -> Iterator[apsw.Connection]:
        reading = self._take(paths)
        connection, is_sound = reading.connection, False
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")
            is_sound = True
        finally:
            # Whatever was raised on it, nobody shall meet that again.
            if not is_sound:
                connection.close()
            self._give_back(reading, is_sound=is_sound)

    def _take(self, paths: tuple[Path, ...]) -> Reading:
        """An idle connection to these very files, or a new one."""
        for path in paths:
            self._let_go_elsewhere(path)
        with self._lock:
            opened = Opened(paths, tuple(identity(path) for path in paths))
            for path, now in zip(*opened, strict=True):
                self._close_older(path, now)
            known = next((reading for reading in reversed(self._idle) if reading.opened.paths == paths), None)
            if known is not None:
                self._idle.remove(known)
                opened = known.opened
            self._lent.append(opened)
        if known is not None:
            return known
        # Not under the lock: who has to wait for a file holds up nobody else.
        try:
            return Reading(opened, connect_to_read_table(paths[0], paths[1:]))
        except OF_THE_FILE as error:
            with self._lock:
                self._lent.remove(opened)
            raise refusal(error, None) from error

    def _close_older(self, path: Path, now: FileIdentity) -> None:
        self._close_idle(lambda opened: path in opened.paths and opened.of(path)._replace(wal=now.wal) != now)
        if any(path in opened.paths and opened.of(path).file != now.file for opened in self._lent):
            raise Busy("the table's file was replaced and is still being read", retry_after_ms=BUSY_RETRY_MS)

    def _close_idle(self, is_meant: Callable[[Opened], bool]) -> None:
        for reading in [reading for reading in self._idle if is_meant(reading.opened)]:
            self._idle.remove(reading)
            reading.connection.close()

    def _give_back(self, reading: Reading, *, is_sound: bool) -> None:
        with self._lock:
            self._lent.remove(reading.opened)
            if is_sound:
                self._idle.append(reading)
            while sum(len(idle.opened.paths) for idle in self._idle) > TABLE_FILES_OPEN_MAX:
                self._idle.pop(0).connection.close()

    def let_go(self, path: Path) -> None:
        """Close idle connections to what a path was before. Busy while another file that bore the name is read."""
        with self._lock:
            self._close_older(path, identity(path))

    def release(self, path: Path) -> bool:
        """Close the idle connections that have a file open; True if no question runs on it either."""
        with self._lock:
            self._close_idle(lambda opened: path in opened.paths)
            return not any(path in opened.paths for opened in self._lent)

    def close(self) -> None:
        """Close all idle connections; called when nobody asks any more."""
        with self._lock:
            self._close_idle(lambda opened: True)
