"""What fits into the facts of a reply: long texts become previews, what still does not fit is counted.

A cut value never stands under its own name, so nobody writes a shortened text back: `value` is then `value_preview`,
with `total_bytes` if it is what the record is about, else with its name and size in `omitted`. All texts of a reply are
cut alike, as little as will do; so the longest lose most. A project stays whole: it is an argument of tools. Facts are
measured as the JSON they become: a control character takes six bytes there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from convmem.limits import MEMORY_FACTS_BYTES_MAX
from convmem.quoting import start

# The longest text of a record, then ever less of it. No id or hash is longer than the last.
CUTS = (4_000, 2_000, 1_000, 500, 250, 125, 64)
# What is a part of a text by its name already.
SNIPPET = "snippet"
PROJECT = "project"
# Line separators of other formats, three bytes of UTF-8; where lines matter they go out as six or seven.
_SEPARATORS = ("\u2028".encode(), "\u2029".encode())
_SEPARATOR_EXTRA_BYTES = 4

# The text that a record is about, by the list it stands in.
MAIN_TEXTS = {"preferences": "value", "sections": "content", "interactions": "content"}

Lists = Mapping[str, Sequence[Mapping[str, Any]]]


def fitted(lists: Lists, more: Mapping[str, int] | None = None, code_points_max: int = CUTS[0]) -> dict[str, Any]:
    """The lists as facts, in at most MEMORY_FACTS_BYTES_MAX bytes of JSON; and `more`, what is left out of each if
    anything is: those counted there already, and those from its end for which there is no room. No text is longer than
    `code_points_max`.
    """
    left_out = {name: count for name, count in (more or {}).items() if count}
    shown: dict[str, list[dict[str, Any]]] = {}
    for code_points in (code_points_max, *(fewer for fewer in CUTS if fewer < code_points_max)):
        shown = {
            name: [abridged(record, code_points, MAIN_TEXTS.get(name)) for record in records]
            for name, records in lists.items()
        }
        if json_bytes(shown) <= MEMORY_FACTS_BYTES_MAX:
            break
    sizes = {name: [json_bytes(record) + 1 for record in records] for name, records in shown.items()}
    left = MEMORY_FACTS_BYTES_MAX - sum(map(sum, sizes.values())) - sum(len(name) + 6 for name in sizes)
    while left < 0:
        longest = max(sizes, key=lambda name: len(sizes[name]))
        left += sizes[longest].pop()
        shown[longest].pop()
        left_out[longest] = left_out.get(longest, 0) + 1
    return {**shown, "more": left_out} if left_out else shown


def abridged(record: Mapping[str, Any], code_points_max: int, main: str | None = None) -> dict[str, Any]:
    """The facts of a record, with previews in the place of texts of more code points than that."""
    shown: dict[str, Any] = {}
    omitted: list[dict[str, Any]] = []
    for field, value in record.items():
        if isinstance(value, Mapping):
            inner = abridged(value, code_points_max)
            omitted += [{**one, "field": f"{field}.{one['field']}"} for one in inner.pop("omitted", ())]
            shown[field] = inner
        elif field == SNIPPET:
            shown[field] = start(value, code_points_max)
        elif isinstance(value, str) and len(value) > code_points_max and field != PROJECT:
            shown[f"{field}_preview"] = start(value, code_points_max)
            size_bytes = len(value.encode())
            if field == main:
                shown["total_bytes"] = size_bytes
            else:
                omitted.append({"field": field, "bytes": size_bytes})
        else:
            shown[field] = value
    return {**shown, "omitted": omitted} if omitted else shown


def json_bytes(facts: Any) -> int:
    """How many bytes these facts take in a reply."""
    encoded = msgspec.json.encode(facts)
    return len(encoded) + _SEPARATOR_EXTRA_BYTES * sum(map(encoded.count, _SEPARATORS))
