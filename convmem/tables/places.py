"""Where tables are: their roots, the one table of single-table mode, and what is kept beside them.

A root is a directory of directories. The idea: what a caller names is a table and a scope, never a path; every path is
made here of a root that a person has set and of a name that has passed names.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from convmem.tables.history import Keeping

Scope = Literal["user", "project"]
SCHEMA_FILE, GLOBAL_FILE, LOCK_FILE = "schema.yaml", "_global.db", ".lock"
BACKUPS, SNAPSHOTS = "_backup", "_snapshots"


@dataclass(frozen=True)
class Root:
    """A directory of tables: every link in its path is followed already."""

    scope: Scope
    path: Path

    def directory(self, table: str) -> Path:
        """Where a table stands."""
        return self.path / table

    def schema(self, table: str) -> Path:
        """Its schema."""
        return self.path / table / SCHEMA_FILE

    def rows(self, table: str) -> Path:
        """Its rows."""
        return self.path / table / f"{table}.db"

    @property
    def aliases(self) -> Path:
        """The file of the aliases of this scope."""
        return self.path / GLOBAL_FILE

    @property
    def backups(self) -> Path:
        """Where copies from before a change of a schema are kept."""
        return self.path / BACKUPS

    @property
    def snapshots(self) -> Path:
        """Where snapshots are kept."""
        return self.path / SNAPSHOTS


@dataclass(frozen=True)
class Single:
    """The one table of single-table mode: its two files, wherever they are."""

    schema: Path
    database: Path


@dataclass(frozen=True, kw_only=True)
class Places:
    """All of it. `upload` is what was said of the other host for snapshots (upload.py); `redacts` has secrets taken out
    of every row.
    """

    user: Path
    project: Path | None = None
    single: Single | None = None
    working_directory: Path
    keeping: Keeping = field(default_factory=Keeping)
    backups_kept: int = 10
    snapshots_kept: int = 10
    redacts: bool = False
    upload: Mapping[str, str] = field(default_factory=dict, repr=False)
