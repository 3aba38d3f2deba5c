"""Who a caller says it is: one short line of clean text, from the protocol or from HTTP.

It is shown to people and models beside what the caller wrote, so it holds no control characters and no marks that
turn the direction of text, and it is cut by bytes without splitting a character.
"""

import unicodedata
from functools import lru_cache
from typing import Any

from convmem.limits import CLIENT_BYTES_MAX


def client_of(client_info: Any) -> str | None:
    """`name/version` of an MCP clientInfo, None if it names nobody."""
    if type(client_info) is not dict:
        return None
    named = [part for part in (client_info.get("name"), client_info.get("version")) if type(part) is str and part]
    return label("/".join(named).encode(errors="replace"))


@lru_cache(maxsize=256)
def label(value: bytes) -> str | None:
    """A header's bytes as clean text of at most CLIENT_BYTES_MAX bytes of UTF-8, None if nothing is left."""
    text = value[: 4 * CLIENT_BYTES_MAX].decode(errors="replace")
    clean = "".join(character for character in text if unicodedata.category(character)[0] != "C").strip()
    return clean.encode()[:CLIENT_BYTES_MAX].decode(errors="ignore") or None
