"""Fingerprints: what is left of a key or of arguments, to know them again by.

Sixteen bytes of SHA-256: two that are equal by chance are not to be expected, and nobody reads a text out of them.
"""

import hashlib

FINGERPRINT_BYTES = 16


def fingerprint(data: bytes) -> bytes:
    """The first 16 bytes of SHA-256."""
    return hashlib.sha256(data).digest()[:FINGERPRINT_BYTES]
