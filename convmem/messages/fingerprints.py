"""Fingerprints of what hooks capture, to know an event again by."""

from typing import NamedTuple

from convmem.fingerprints import fingerprint


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
