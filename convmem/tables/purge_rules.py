"""What a purge leaves of consecutive entries of a row: pure values, so that counting and doing are the same.

An entry goes if it is old; the newest of a row stays in any case. What an entry says is what the row was after it, and
of a deletion what it took away: a deletion that stays takes that along if only the entry before said it. What any other
entry holds of the state before it belongs to the entry before, and goes with that: it is a text that nobody keeps.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from convmem.tables.chunks import Entry

# What stands for the row that a deletion took away, once nobody shall know it: JSON, as what it stands for.
PURGED = "null"


class Left(NamedTuple):
    """The entries that stay, those of them that were changed, how many went, and the last one if it went."""

    entries: list[Entry]
    changed: list[Entry]
    gone: int
    last_gone: Entry | None


def left_of(entries: Iterable[Entry], is_old: Callable[[Entry], bool], newest: int) -> Left:
    """What stays of entries, oldest first. `newest` is the version of the row's newest entry; if that is old, it stays
    without its texts.
    """
    left, changed, gone = list[Entry](), list[Entry](), 0
    before: Entry | None = None
    for entry in entries:
        kept: Entry | None = entry
        if is_old(entry) and entry.version == newest:
            kept = _emptied(entry)
            gone += kept != entry
        elif is_old(entry):
            kept, gone = None, gone + 1
        elif before is not None:
            kept = without_before(entry, before)
        if kept is not None:
            left.append(kept)
            changed += [kept] if kept != entry else []
        before = entry if kept is None else None
    return Left(left, changed, gone, before)


def without_before(entry: Entry, before: Entry | None = None) -> Entry:
    """An entry that stays without the one before it; None if that was never recorded."""
    if entry.op != "delete":
        return msgspec.structs.replace(entry, prev_data_json=None)
    if entry.prev_data_json is not None or before is None:
        return entry
    # Where that one says nothing either, an older one must not be taken for it.
    return msgspec.structs.replace(entry, prev_data_json=before.data_json or PURGED)


def _emptied(entry: Entry) -> Entry:
    """An entry without its texts. Of a deletion that says nothing of what it deleted, others would look for it in the
    entry before.
    """
    return msgspec.structs.replace(entry, data_json=None, prev_data_json=PURGED if entry.op == "delete" else None)
