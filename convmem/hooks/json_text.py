"""JSON out, for a process that has no time: what `json.dumps` makes of an event, without importing it.

Events, and what a spool says of itself, are flat: texts and whole numbers by name. `json` is imported for what has more
in it, which only a tool's input does. Strings are written by the C function behind `json.dumps`.
"""

from __future__ import annotations

from _json import encode_basestring
from collections.abc import Callable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def encoded(value: Any) -> bytes:
    """One JSON text in UTF-8 without a line break in it."""
    if isinstance(value, Mapping) and all(type(part) in WRITTEN for part in value.values()):
        parts = (f"{encode_basestring(name)}:{WRITTEN[type(part)](part)}" for name, part in value.items())
        return f"{{{','.join(parts)}}}".encode()
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# How a value that has no others in it is written, by its type.
WRITTEN: Mapping[type, Callable[[Any], str]] = {str: encode_basestring, int: str, type(None): lambda _: "null"}
