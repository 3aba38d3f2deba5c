"""Whether a table still stands where it was mounted: the same file, in the same directory, with no link in between.

The idea: mounting looks at what stands in a place, and what was found then must still be there whenever the table is
asked for. Rows that were acknowledged are in that file; whatever another program has put in its place is looked at by
mounting first, as anything is. Two calls of lstat say so.

Rejected: to take what stands there as the table without a word. A link may lead anywhere, and a table whose file was
deleted would come back without a single row.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

Which = tuple[int, int]


class Standing(NamedTuple):
    """The directory of a table's file and the file: device and number of each. No file: it is not made yet."""

    directory: Which | None
    file: Which | None

    def fault(self, file: Path) -> str | None:
        """Why the table is no longer what was mounted, None if it is."""
        directory, found = _at(file.parent), _at(file)
        if directory is None:
            return "its directory is gone"
        if stat.S_ISLNK(directory.st_mode):
            return "its directory was replaced by a link; a table must stand in the directory itself"
        if self.directory != _which(directory):
            return "its directory was replaced; look at it, then call reload"
        if found is None:
            return None if self.file is None else "its file is gone; put it back, or call reload for an empty one"
        if not stat.S_ISREG(found.st_mode):
            return "its file was replaced by a link, or by no file"
        if self.file not in (None, _which(found)):
            return "its file was replaced; look at it, then call reload"
        return None


UNKNOWN = Standing(None, None)


def of(file: Path) -> Standing:
    """Where the file of a table stands now."""
    directory, found = _at(file.parent), _at(file)
    return Standing(directory and _which(directory), found and _which(found))


def _at(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _which(found: os.stat_result) -> Which:
    return found.st_dev, found.st_ino
