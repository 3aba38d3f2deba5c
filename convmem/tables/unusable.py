"""What cannot be used, and why: a table, or a whole root. Health and every list of tables say the same of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from convmem.errors import ConvmemError
from convmem.tables.names import visible
from convmem.tables.places import Scope

# How many of the tables that cannot be used stand by name among the reasons why the daemon is not simply well.
REASONS_SHOWN = 3


@dataclass(frozen=True)
class Broken:
    """What cannot be used: a table, or a whole root (`table` None), and why."""

    table: str | None
    scope: Scope
    reason: str
    line: int | None = None
    column: int | None = None
    is_default: bool = False
    # Of the error that it is, where it is one.
    code: str | None = None

    def facts(self) -> dict[str, Any]:
        """The same for programs; what is not known is left out."""
        table = None if self.table is None else visible(self.table)
        facts = {"table": table, "scope": self.scope, "code": self.code, "reason": visible(self.reason)}
        return {name: value for name, value in (facts | {"line": self.line, "column": self.column}).items() if value}


class Unusable(Exception):
    """A table that cannot be mounted; the sentence says why."""

    def __init__(self, reason: str, error: ConvmemError | None = None) -> None:
        super().__init__(reason)
        details = {} if error is None else error.details
        self.line, self.column = details.get("line"), details.get("column")
        self.code = None if error is None else error.code

    def broken(self, table: str | None, scope: Scope, *, is_default: bool = False) -> Broken:
        """The same for the list of what cannot be used."""
        return Broken(table, scope, str(self), self.line, self.column, is_default, self.code)


def reasons(broken: Sequence[Broken]) -> list[str]:
    """Sentences about roots and tables that cannot be used, a few of the tables by name."""
    closed = [one for one in broken if one.table is None and not one.is_default]
    tables = [one for one in broken if one not in closed]
    named = [f"{_name(one)} cannot be used: {visible(one.reason)}" for one in tables[:REASONS_SHOWN]]
    more = len(tables) - len(named)
    roots = [f"tables of scope {one.scope}: {one.reason}" for one in closed]
    return roots + named + ([f"{more} more tables cannot be used"] if more else [])


def _name(broken: Broken) -> str:
    return "the one table that is the default" if broken.table is None else f"the table {visible(broken.table)}"
