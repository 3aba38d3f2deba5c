"""The names of copies, and which of them are too many.

    _backup/<table>.<unix ms>.yaml   _backup/<table>.<unix ms>.db   _snapshots/<table>.<unix ms>.db

mini-app-mcp wrote the time in seconds; such names are read and purged too. A table's own name may hold digits and
dashes, so a name is read from its end. What is not named so is nobody's to purge.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from convmem.tables.places import GLOBAL_FILE

GLOBAL = GLOBAL_FILE.removesuffix(".db")
NAME = re.compile(r"(_global|[A-Za-z0-9][A-Za-z0-9_-]{0,63})\.([0-9]{9,16})\.(yaml|db)")
# A time in seconds has so many digits at most; in milliseconds it has more, since 2001.
SECONDS_DIGITS_MAX = 11


class Copy(NamedTuple):
    """What a name says: of which table, when it was made in ms since the Unix epoch, and what it holds."""

    table: str
    at_ms: int
    suffix: str


def name(table: str, at_ms: int, suffix: str) -> str:
    """The name of a copy made now; `suffix` is yaml or db."""
    return f"{table}.{at_ms}.{suffix}"


def parsed(file_name: str) -> Copy | None:
    """What a name says; None if it is not that of a copy."""
    found = NAME.fullmatch(file_name)
    if found is None:
        return None
    number = int(found[2])
    return Copy(found[1], number * 1000 if len(found[2]) <= SECONDS_DIGITS_MAX else number, found[3])


def surplus(names: Iterable[str], table: str, keep: int) -> list[str]:
    """The names to purge so that a table keeps its newest copies, oldest first. A schema and the rows of one moment are
    one copy.
    """
    by_time: dict[int, list[str]] = {}
    for file_name in names:
        found = parsed(file_name)
        if found is not None and found.table == table:
            by_time.setdefault(found.at_ms, []).append(file_name)
    return [
        file_name for at_ms in sorted(by_time)[: max(0, len(by_time) - keep)] for file_name in sorted(by_time[at_ms])
    ]


def free_at(names: Iterable[str], table: str, at_ms: int) -> int:
    """The first moment from `at_ms` on that no copy of a table bears."""
    taken = {found.at_ms for found in map(parsed, names) if found is not None and found.table == table}
    while at_ms in taken:
        at_ms += 1
    return at_ms
