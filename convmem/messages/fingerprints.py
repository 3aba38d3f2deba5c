"""Fingerprints: what is left of a key, of arguments or of a hook's event, to know them again by.

Sixteen bytes of SHA-256: two that are equal by chance are not to be expected, and nobody reads a text out of them.
"""

import hashlib
from typing import NamedTuple

FINGERPRINT_BYTES = 16


def fingerprint(data: bytes) -> bytes:
    """The first 16 bytes of SHA-256."""
    return hashlib.sha256(data).digest()[:FINGERPRINT_BYTES]


class Mark(NamedTuple):
    """What an event of a hook leaves behind: which session, which event of it, and which text of which kind."""

    session: bytes
    event: bytes
    text: bytes


def mark(session_id: str, event_id: str, kind: str, content: str) -> Mark:
    """The mark of a captured event; ids hold no U+0000, so that nothing can be read as two different ones."""
    event = f"{session_id}\0{event_id}"
    return Mark(
        fingerprint(session_id.encode()), fingerprint(event.encode()), fingerprint(f"{kind}\0{content}".encode())
    )
