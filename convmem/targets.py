"""Where a command belongs: to the log, or to one table file, which is its own truth.

The idea: every command has one store, and says so itself. `target` names a table file; a command without one belongs
to the log. The writer routes by that and knows no domain. Nothing is atomic across stores.

    decide  command + what the file holds -> rows changed in the file's open transaction and an answer, or a refusal

There are no events here: what a table was is kept by its domain inside the file. Rejected: a name that the store looks
up. Which file a name means changes when tables are mounted anew, and a command must not change its store on the way.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import apsw

if TYPE_CHECKING:
    from convmem.domain import Origin


@dataclass(frozen=True)
class TableFile:
    """A store that is one SQLite file. Two that have the same path are the same store.

    `prepare(connection)` makes what a fresh file must hold, and lets an older one catch up. It runs in a transaction of
    its own each time the file is opened to be written, and may refuse the file with a CallerError.
    """

    path: Path
    prepare: Callable[[apsw.Connection], None] = field(compare=False, repr=False)


class TableStamp(NamedTuple):
    """What the writer gives a command of a table, so that deciding needs no clock and no dice. `new_id` makes ids of
    rows (UUID v4), each time another; `monotonic_ms` bounds what may take so long and no longer.
    """

    at_ms: int
    origin: "Origin"
    new_id: Callable[[], str]
    monotonic_ms: Callable[[], float] = lambda: 0.0


class TableCommand(Protocol):
    """An input left with the writer that belongs to a table file."""

    @property
    def size_bytes(self) -> int:
        """About how many bytes the command holds; bounds the mailbox and the batch."""

    @property
    def target(self) -> TableFile:
        """Its store."""


class Mounting(Protocol):
    """The tables that are mounted, for as long as the store is in use."""

    async def open(self, access: Any) -> None:
        """Mount what is there, once; the store takes commands. `access` is a domain.Access of the daemon itself."""

    def facts(self) -> dict[str, Any]:
        """What health says of them."""

    def kept_files(self) -> list[tuple[str, Path]] | None:
        """The files of the user's tables that a backup takes along: each by its path below the root, and where it is;
        None while nobody can know. Waits for the disk; may be called on any thread.
        """

    def reasons(self) -> list[str]:
        """Why they are not simply well, in sentences."""

    def close(self) -> None:
        """Let go of what is held."""


TableDecider = Callable[[apsw.Connection, Any, TableStamp], Any]


def target_of(command: object) -> TableFile | None:
    """Return the table file that a command belongs to; None is the log."""
    target = getattr(command, "target", None)
    # An input may have an argument of that name, which says nothing about stores.
    return target if isinstance(target, TableFile) else None
