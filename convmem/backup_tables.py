"""The files of tables for a backup: which there are, and each as it is at one moment.

A file of rows is in use while it is copied, so what goes into the backup is a copy that SQLite makes; a schema is
replaced as a whole and can be read as it is.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NoReturn

from convmem import files, folders
from convmem.errors import Invalid
from convmem.files import RealFiles
from convmem.store import backup, table_copy
from convmem.store.copying import TablePart
from convmem.store.generation import STAGING
from convmem.store.restore import TABLE_PART
from convmem.targets import Mounting

SCRATCH = f"{STAGING}table.db"


def parts(mounting: Mounting | None, own_files: RealFiles, is_stopped: Callable[[], bool]) -> list[TablePart] | None:
    """The files that a backup takes along, each to be read when its turn comes; None if nobody can know them.

    `own_files` is where a copy may stand for as long as it is needed.
    """
    if (found := [] if mounting is None else mounting.kept_files()) is None:
        return None
    made: list[TablePart] = []
    taken: set[str] = set()
    for below, path in found:
        name = f"tables/{below}"
        opened: Callable[[], AbstractContextManager[files.File]]
        opened = partial(_rows if below.endswith(".db") else _schema, path, own_files, is_stopped)
        if not TABLE_PART.fullmatch(name):
            name, opened = ascii(name)[1:-1], partial(_refused, "no table may have this name")
        elif name.lower() in taken:
            name, opened = f"{name} (of two)", partial(_refused, "the name of the other one differs by case alone")
        taken.add(name.lower())
        made.append(TablePart(name, opened))
    return made


def _refused(sentence: str) -> NoReturn:
    """Refuse what no restore could bring back: a manifest that named it would be refused as a whole."""
    raise Invalid(sentence, field="table")


@contextmanager
def _schema(path: Path, own_files: RealFiles, is_stopped: Callable[[], bool]) -> Iterator[files.File]:
    with backup.refused_by_disk("the table is as it was"):
        _refuse_links(path)
        file = files.regular(path)
        try:
            yield file
        finally:
            file.close()


@contextmanager
def _rows(path: Path, own_files: RealFiles, is_stopped: Callable[[], bool]) -> Iterator[files.File]:
    """A file of rows, or of aliases, as it is at one moment."""
    with backup.refused_by_disk("the table is as it was"), ExitStack() as undone:
        _refuse_links(path)
        copy = own_files.path(SCRATCH)
        undone.callback(own_files.remove, SCRATCH)
        own_files.remove(SCRATCH)
        table_copy.copy(path, copy, is_stopped=is_stopped)
        file = files.regular(copy)
        undone.callback(file.close)
        yield file


def _refuse_links(path: Path) -> None:
    """OSError if a link stands in the path: what it leads to is no table's."""
    if folders.real(path) != path:
        raise OSError(errno.ELOOP, "a link stands in its place", str(path))
