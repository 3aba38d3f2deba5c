"""Where the indexes of all generations lie: one file each, named by its generation, beside one that is thrown away.

A database file is never renamed over another: SQLite would apply the old file's -wal to the new one. So each generation
has files of its own, and a name says which log it belongs to before it is opened.
"""

import re
from dataclasses import dataclass
from typing import Protocol

import apsw

from convmem.files import RealFiles, flush
from convmem.store.sqlite import connect, connect_to_build

SUFFIXES = ("", "-wal", "-shm", "-journal")
SCRATCH = "staging-scratch.db"


def index_name(generation: int) -> str:
    """The file name of a generation's index. A database file is never renamed over another."""
    return f"index-{generation}.db"


def search_name(generation: int) -> str:
    """The file name of a generation's tables of search; they lie beside its index and go with it."""
    return f"search-{generation}.db"


class Shelf(Protocol):
    """Where the indexes of all generations lie; tests keep theirs in memory."""

    def generations(self) -> list[int]:
        """Return the generations that have an index file, rising."""

    def searches(self) -> list[int]:
        """Return the generations that have a file of tables of search, rising."""

    def open(self, generation: int) -> apsw.Connection:
        """Open the writing connection; the file is made if it is missing. apsw.Error if it cannot be read."""

    def build(self, generation: int) -> apsw.Connection:
        """Open a connection that fills a fresh file quickly, without a WAL; settle() must follow its end."""

    def settle(self, generation: int) -> None:
        """Return when a file that was built and closed is on the medium."""

    def scratch(self) -> apsw.Connection:
        """Open a fresh index that is thrown away after use; drop_scratch() must follow its end."""

    def drop_scratch(self) -> None:
        """Delete the scratch index, which is closed."""

    def remove(self, generation: int) -> None:
        """Delete the file with its -wal and -shm, and the tables of search."""


@dataclass(frozen=True)
class FileShelf:
    """The indexes in a data directory."""

    files: RealFiles

    def generations(self) -> list[int]:
        return self._numbers("index")

    def searches(self) -> list[int]:
        return self._numbers("search")

    def _numbers(self, kind: str) -> list[int]:
        found = (re.fullmatch(kind + r"-([1-9][0-9]{0,18})\.db", file) for file in self.files.names())
        return sorted(int(match[1]) for match in found if match)

    def open(self, generation: int) -> apsw.Connection:
        return connect(self.files.path(index_name(generation)))

    def build(self, generation: int) -> apsw.Connection:
        self.remove(generation)
        return connect_to_build(self.files.path(index_name(generation)))

    def settle(self, generation: int) -> None:
        # Not while a connection is open: closing the descriptor would free SQLite's locks (POSIX, fcntl).
        flush(self.files.path(index_name(generation)))

    def scratch(self) -> apsw.Connection:
        self.drop_scratch()
        return connect_to_build(self.files.path(SCRATCH))

    def drop_scratch(self) -> None:
        self.files.remove(SCRATCH)

    def remove(self, generation: int) -> None:
        self.remove_search(generation)
        self._remove(index_name(generation))

    def remove_search(self, generation: int) -> None:
        """Delete the tables of search of a generation; they are made anew."""
        self._remove(search_name(generation))

    def _remove(self, name: str) -> None:
        """The file that is looked for goes last: what a killed process leaves is seen, and the next start ends it."""
        for suffix in reversed(SUFFIXES):
            self.files.remove(name + suffix)
