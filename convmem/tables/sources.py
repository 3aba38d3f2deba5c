"""Which tables an aggregate looks at: one, several, or all whose names fit a pattern.

A pattern is matched when it is asked, not when it is stored: a table made tomorrow is among `shop_*` tomorrow. `*` is
the only sign; a name is what stands on disk, so upper and lower case differ as they do there.

Rejected: the other signs of a shell (`?`, `[…]`): nobody would miss them, and each is one more way to be surprised.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from convmem.errors import AggregateRefused
from convmem.limits import AGGREGATE_SOURCES_MAX, TABLE_PATTERN_CODE_POINTS_MAX
from convmem.tables.filters import object_at, refuse
from convmem.tables.names import folded

ANY = "*"


class Sources(NamedTuple):
    """`single` and `multi` name tables, `pattern` has one text to match them with."""

    kind: str
    values: tuple[str, ...]

    def cover(self, table: str) -> bool:
        """True if a table of this name is, or would be, one of them."""
        return fits(table, self.values[0]) if self.kind == "pattern" else table in self.values

    def among(self, tables: Collection[str]) -> tuple[str, ...]:
        """The names of the tables to look at: as they were given, or all that fit, sorted. AggregateRefused if none of
        those that there are fits the pattern. Whether tables that were named exist is for the caller to say.
        """
        if self.kind != "pattern":
            return self.values
        found = tuple(sorted(table for table in tables if self.cover(table)))
        if not found:
            raise AggregateRefused("no table has a name that fits the pattern")
        return found


# How the value of each kind is read: as one name, a list of names, or a pattern.
KINDS: Mapping[str, str] = {
    "single": "must be the name of a table",
    "multi": f"must be a list of 1 to {AGGREGATE_SOURCES_MAX} names of tables",
    "pattern": f"must be a text of 1 to {TABLE_PATTERN_CODE_POINTS_MAX} characters, in which * stands for any",
}


def parse(value: Any, at: str = "sources") -> Sources:
    """`{kind, value}` as sources. Invalid with the path of the fault."""
    object_at(value, at, ("kind", "value"))
    kind, given = value["kind"], value["value"]
    if not isinstance(kind, str) or kind not in KINDS:
        refuse(f"{at}.kind", f"must be one of {', '.join(KINDS)}")
    at = f"{at}.value"
    names = given if kind == "multi" else [given]
    if not isinstance(names, list) or not 1 <= len(names) <= AGGREGATE_SOURCES_MAX:
        refuse(at, KINDS[kind])
    for number, name in enumerate(names):
        if not isinstance(name, str) or not 1 <= len(name) <= TABLE_PATTERN_CODE_POINTS_MAX:
            refuse(f"{at}.{number}" if kind == "multi" else at, KINDS["single" if kind == "multi" else kind])
    if len(set(map(folded, names))) < len(names):
        refuse(at, "must not name a table twice: its rows would count twice")
    return Sources(kind, tuple(names))


def fits(name: str, pattern: str) -> bool:
    """True if the whole name is as the pattern says. Each part is looked for once, from left to right."""
    first, *parts = pattern.split(ANY)
    if not parts:
        return name == pattern
    *middle, last = parts
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
