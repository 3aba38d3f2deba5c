"""Host and Origin headers, read strictly: a whole host and port, or nothing.

A browser that was lured to a name which resolves to this machine sends that name in Host. A test that looks only at
the beginning of the header lets such names through (`127.0.0.1:80.evil.com`), so the header is parsed to its last byte
(RFC 3986 section 3.2, without user information and without a final dot) and then compared as a whole.
"""

import ipaddress
import re

PORT_MAX = 65_535
AUTHORITY = re.compile(rb"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9_.-]{1,253}))(?::([0-9]{1,5}))?")
LABELS = re.compile(rb"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62}))*")
ORIGIN = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]{0,31})://([^/?#]+)")


class Malformed(ValueError):
    """The header names no host in a way that everybody reads alike."""


def host(authority: bytes) -> str:
    """Return the host of `host[:port]` in lower case, an IPv6 address in its shortest spelling; else Malformed."""
    match = AUTHORITY.fullmatch(authority)
    if not match or (match[3] and not 0 < int(match[3]) <= PORT_MAX):
        raise Malformed
    if match[1]:
        try:
            return str(ipaddress.IPv6Address(match[1].decode()))
        except ValueError:
            raise Malformed from None
    if not LABELS.fullmatch(match[2]):
        raise Malformed
    return match[2].decode().lower()


def origin(value: bytes) -> str | None:
    """Return the host of an Origin (RFC 6454 section 7), None for the opaque origin `null`; Malformed if it is none."""
    if value == b"null":
        return None
    match = ORIGIN.fullmatch(value)
    if not match:
        raise Malformed
    return host(match[2])


def is_loopback(name: str) -> bool:
    """True for names of this very machine, as `host` returns them: localhost and the loopback addresses."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
