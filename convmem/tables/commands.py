"""Inputs left with the writer, together with the mount of the table that they are for.

The store of a command is the file of its mount (convmem/targets.py).
"""

from dataclasses import dataclass
from typing import Any

from convmem.inputs import Input
from convmem.tables.scanning import Mount
from convmem.targets import TableFile


@dataclass(frozen=True)
class OnTable:
    """A change of one table, asked for while it was mounted so."""

    mount: Mount
    ask: Any

    @property
    def target(self) -> TableFile:
        """The table's file."""
        return self.mount.file

    @property
    def size_bytes(self) -> int:
        """About how many bytes the command holds."""
        assert isinstance(self.ask, Input)
        return self.ask.size_bytes

    def refuse_if_retired(self) -> None:
        """Busy if the schema that the mount shows is no longer the one that counts: come again with the new one."""
        self.mount.refuse_if_retired()


class CreateRow(OnTable):
    """Add a row."""


class UpdateRow(OnTable):
    """Change fields of a row."""


class DeleteRow(OnTable):
    """Take a row away."""


class ReplaceText(OnTable):
    """Replace a passage in a text of a row."""


class InsertText(OnTable):
    """Insert lines into a text of a row."""


class RestoreRow(OnTable):
    """Write back what a row was."""


@dataclass(frozen=True)
class DeclareSchema:
    """Commit a schema together with the rows that it is for; without one (`yaml` None) the table is taken away.

    `mount` is the table as it is mounted, None for a new one; `adopts`: rows that are there already are no hindrance.
    """

    target: TableFile
    yaml: bytes | None
    mount: Mount | None
    adopts: bool = True

    @property
    def size_bytes(self) -> int:
        """About how many bytes the command holds."""
        return 1024 + len(self.yaml or b"")
