"""The Markdown file beside a row: its text, and the one directory in which it may stand.

The idea: `dump.dir` comes from a schema that may have come with somebody's repository, so it says where, and the daemon
says how far: the directory must lie, with every symbolic link followed, inside the table's scope root or the daemon's
working directory. The name of the file is the row's id and nothing else. What cannot be written is a warning: the row
is safe by then.

Rejected: making a safe path of an unsafe one (the file would be where nobody looks for it), and comparing paths as text
(a link inside leads outside).
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from convmem.row_text import markdown
from convmem.tables.model import Dump

# The directory that mini-app-mcp uses below its working directory; used if it is there.
THEIRS = ".mini-app"
_ID = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class DumpRefused(ValueError):
    """Where the file may not stand; the message says why, for the warning in the answer."""


def warnings(dump: Dump) -> list[str]:
    """What whoever wrote the schema should know."""
    if dump.sync == "bidirectional":
        return ["dump.sync is bidirectional: files are written and never read back, as with write-only"]
    return []


def text(dump: Dump, data: Mapping[str, Any]) -> str:
    """The file of a row. A field that holds no text stands as its JSON, an absent one is empty."""
    return markdown(data, title_field=dump.title_field, body_field=dump.body_field)


def directory(dump: Dump, *, table: str, scope_root: Path, working_directory: Path) -> Path:
    """Where the files of a table stand, with all links followed; it need not be there yet.

    DumpRefused if that is neither inside the scope root nor inside the working directory.
    """
    if dump.dir is None:
        theirs = working_directory / THEIRS / table
        chosen = theirs if theirs.is_dir() else scope_root / table / "dump"
    elif "\0" in dump.dir or not dump.dir:
        raise DumpRefused("dump.dir is no path")
    else:
        chosen = working_directory / dump.dir
    found = _followed(chosen)
    # A daemon that works in / would have the whole machine inside.
    roots = [root for root in map(_followed, (scope_root, working_directory)) if root != root.parent]
    if not any(found.is_relative_to(root) for root in roots):
        raise DumpRefused("dump.dir must lie inside the table's scope or the daemon's working directory")
    return found


def target(dump: Dump, row_id: str, *, table: str, scope_root: Path, working_directory: Path) -> Path:
    """The file of a row. DumpRefused as `directory`, and if the id is none that a file may be named by, or the name is
    that of a link.
    """
    if not _ID.fullmatch(row_id):
        raise DumpRefused("this row has an id of another kind, so no file is written for it")
    file = directory(dump, table=table, scope_root=scope_root, working_directory=working_directory) / f"{row_id}.md"
    if file.is_symlink():
        raise DumpRefused("there is a link where the file of this row would stand")
    return file


def _followed(path: Path) -> Path:
    """The path without links; what is not there yet follows what is."""
    try:
        return Path(os.path.realpath(path, strict=False))
    except OSError as error:
        raise DumpRefused("dump.dir cannot be followed") from error
