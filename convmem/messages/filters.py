"""The filters of a search: as SQL on the row, and as tokens that let the search tables skip what they exclude.

A token is made from a hash, so two values may share one: whoever finds a row by tokens looks at the row as well.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from convmem.messages.inputs import SearchMessages

# An argument that filters, and its condition; not every ask has the last one. `+` keeps SQLite from an index that does
# not go by sequence.
CONDITIONS: Mapping[str, str] = {
    "session_id": "session_id = :session_id",
    "project": "+project = :project",
    "role": "+role = :role",
    "kind": "+memory_kind = :kind",
    "tier": "memory_tier = :tier",
    "min_importance": "importance >= :min_importance",
    "since": "timestamp >= :since",
    "until": "timestamp <= :until",
    "captured_kind": "+capture_kind = :captured_kind",
}
NO_PROJECT = "+project IS NULL"
# Those of them that have tokens, in the order of the code points that these use.
WITH_TOKENS = ("session_id", "project", "role", "kind", "tier", "captured_kind")
# What stands for the project of a message that has none: no project holds it.
NOWHERE = "\0"
# Private use, plane 15: a block of code points for each filter, three of them for a value. No adjacent three of two
# values are mistaken for one value.
_FIRST_CODE_POINT, _BLOCK_BITS, _TOKEN_CODE_POINTS = 0xF0000, 12, 3


class Selection(NamedTuple):
    """What a search selects from, in SQL: conditions on the row `m` of a message, and their values."""

    conditions: str
    bindings: dict[str, Any]


def selection(ask: SearchMessages) -> Selection:
    """The filters of a search as conditions; true if there are none."""
    bindings = {name: value for name in CONDITIONS if (value := getattr(ask, name, None)) is not None}
    conditions = ["1", *(CONDITIONS[name] for name in bindings)]
    if getattr(ask, "unassigned", False):
        conditions.append(NO_PROJECT)
    if ask.tag is not None:
        conditions.append("EXISTS (SELECT 1 FROM messages_tag AS t WHERE t.tag = :tag AND t.sequence = m.sequence)")
        bindings["tag"] = ask.tag
    return Selection(" AND ".join(conditions), bindings)


@lru_cache(maxsize=4_096)
def token(name: str, value: str) -> str:
    """The token of a filter's value, three code points."""
    bits = int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8).digest(), "big")
    block = _FIRST_CODE_POINT + (WITH_TOKENS.index(name) << _BLOCK_BITS)
    mask = (1 << _BLOCK_BITS) - 1
    return "".join(chr(block + (bits >> (_BLOCK_BITS * at) & mask)) for at in range(_TOKEN_CODE_POINTS))


def tokens_of(values: Mapping[str, str | None]) -> list[str]:
    """The tokens of a message, by the names in WITH_TOKENS."""
    named = {**values, "project": NOWHERE if values["project"] is None else values["project"]}
    return [token(name, value) for name in WITH_TOKENS if (value := named[name]) is not None]


def tokens_asked(ask: SearchMessages) -> Iterator[str]:
    """The tokens that every message must have that a search may find."""
    for name in WITH_TOKENS:
        if (value := getattr(ask, name, None)) is not None:
            yield token(name, value)
    if getattr(ask, "unassigned", False):
        yield token("project", NOWHERE)
