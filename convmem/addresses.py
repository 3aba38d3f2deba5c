"""Addresses as people write them: HOST:PORT to listen on, host names, IP addresses, each in its one spelling.

The idea: an address is parsed once and as a whole, so that nothing which merely begins like a good one passes.
Rejected: a bare port or an empty host. In one program they mean this machine, in the next everybody.
"""

import ipaddress
import re
from typing import NamedTuple

PORT_MAX = 65_535
HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}))*\.?", re.ASCII
)
HOST_AND_PORT = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:]*)):([0-9]{1,5})", re.ASCII)


class Address(NamedTuple):
    """Where the daemon listens. `host` is a name or an IP address without brackets; port 0 is any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True if only this machine reaches it. A name other than localhost may mean anything, so it does not count."""
        try:
            known = ipaddress.ip_address(self.host)
        except ValueError:
            return self.host == "localhost"
        return (getattr(known, "ipv4_mapped", None) or known).is_loopback


def parse(text: str) -> Address:
    """Return the address that HOST:PORT says, IPv6 in brackets; ValueError if it says none."""
    match = HOST_AND_PORT.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not HOST:PORT, for example 127.0.0.1:8484 or [::1]:8484")
    port = int(match[3])
    if port > PORT_MAX:
        raise ValueError(f"{text!r}: a port is at most {PORT_MAX}")
    if match[1] is not None:
        return Address(str(_version_6(match[1])), port)
    if not match[2]:
        raise ValueError(f"{text!r} names no host: 127.0.0.1:{port} is this machine, 0.0.0.0:{port} everybody")
    return Address(host(match[2]), port)


def host(text: str) -> str:
    """Return a host name or IP address in lower case, without brackets and final dot; ValueError if it is none."""
    if text.startswith("[") and text.endswith("]"):
        return str(_version_6(text[1:-1]))
    if text.count(":") > 1 or re.fullmatch(r"[0-9.]+", text):
        return ip(text)
    if not HOST_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no host name" + (": leave the port out" if ":" in text else ""))
    return text.lower().removesuffix(".")


def ip(text: str) -> str:
    """Return an IP address in its shortest spelling; ValueError if it is none."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"{text!r} is no IP address") from None


def _version_6(text: str) -> ipaddress.IPv6Address:
    try:
        return ipaddress.IPv6Address(text)
    except ValueError:
        raise ValueError(f"[{text!r}] is no IPv6 address") from None
