"""What facts cost in a reply.

A serialised result holds its facts twice: as structured content, and as a text block that is the same JSON escaped
once more. So what a record costs is measured on its JSON, never guessed from the length of its text: a control
character costs thirteen bytes, a quotation mark five, an ideograph six.
"""

from typing import Any

import msgspec

# Line separators of other formats, three bytes of UTF-8 each; where lines matter they go out as six or seven.
_SEPARATORS = ("\u2028".encode(), "\u2029".encode())
_SEPARATOR_EXTRA_BYTES = 8


def reply_bytes(facts: Any) -> int:
    """How many bytes these facts take in a serialised result, both copies."""
    encoded = msgspec.json.encode(facts)
    escapes = encoded.count(b'"') + encoded.count(b"\\")
    separators = sum(encoded.count(separator) for separator in _SEPARATORS)
    return 2 * len(encoded) + escapes + separators * _SEPARATOR_EXTRA_BYTES
