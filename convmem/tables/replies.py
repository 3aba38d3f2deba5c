"""What of a row fits into a reply.

A cut value never stands under its own name: a field that does not fit is left out, and `omitted` says its name and its
size, so nobody writes a shortened text back. Of a row that is too large the largest fields go first. A change echoes
only so much of the data as a caller needs to see what it has done.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from convmem.limits import REPLY_ENVELOPE_BYTES, ROW_ECHO_BYTES_MAX
from convmem.reply_bytes import reply_bytes
from convmem.tables import data as row_data
from convmem.tables.model import Row

# How much of a field's name stands in `omitted`, beside the name that it has.
OF_A_ROW = ("id", "data", "created_at", "updated_at")


class Budget:
    """How many bytes of a reply are left."""

    def __init__(self, bytes_max: int) -> None:
        self.left = bytes_max - REPLY_ENVELOPE_BYTES

    def fit(self, facts: Mapping[str, Any], *, is_first: bool) -> dict[str, Any] | None:
        """The facts of a row if they still fit; the first row always does, without its largest fields if need be."""
        cost = reply_bytes(facts) + 2
        if cost > self.left:
            if not is_first:
                return None
            facts = _without_largest(facts, self.left)
            cost = reply_bytes(facts) + 2
        self.left -= cost
        return dict(facts)


def _without_largest(facts: Mapping[str, Any], bytes_max: int) -> dict[str, Any]:
    """The facts of a row without so many of its largest fields that the others fit; `omitted` names them."""
    left = dict(facts["data"])
    sizes = {name: len(msgspec.json.encode(value)) for name, value in left.items()}
    omitted: list[dict[str, Any]] = []
    shown = dict(facts)
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        del left[name]
        omitted.append({"field": name, "bytes": sizes[name]})
        shown = {**facts, "data": left, "omitted": omitted}
        if reply_bytes(shown) + 2 <= bytes_max:
            break
    return shown


def changed(row: Row, version: int | None) -> dict[str, Any]:
    """The receipt of a change: the row with up to ROW_ECHO_BYTES_MAX of its data, `version` if history is kept, and the
    hash that a guard is compared with.
    """
    facts = row.facts()
    if len(row_data.stored(row.data)) > ROW_ECHO_BYTES_MAX:
        left, shown, omitted = ROW_ECHO_BYTES_MAX, {}, []
        for name, value in row.data.items():
            size = len(msgspec.json.encode(value))
            if size <= left:
                shown[name] = value
                left -= size
            else:
                omitted.append({"field": name, "bytes": size})
        facts |= {"data": shown, "omitted": omitted}
    kept = {} if version is None else {"version": version}
    return {**facts, **kept, "sha256": row_data.sha256(row.data)}
