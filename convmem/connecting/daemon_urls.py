"""The URL that an agent program is to call: checked as a whole, completed with the path of a profile, without secrets.

What is refused is not quoted: whoever writes a password or a token into a URL should not find it in a log as well.
"""

import re
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from convmem.addresses import Address, host

SCHEMES = ("http", "https")
MCP = "/mcp"
# What begins like a token of ours, wherever it stands.
TOKEN = re.compile("cvm_", re.IGNORECASE)
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 — what others listen on, said as what we call


class DaemonURL(NamedTuple):
    """`base` is what was given, `url` with the path of MCP. `is_loopback`: it cannot leave this machine."""

    base: str
    url: str
    is_loopback: bool
    is_encrypted: bool


def of_bind(bind: Address, profile: str | None) -> DaemonURL:
    """The URL at which a daemon answers that listens there; ValueError for port 0."""
    if not bind.port:
        raise ValueError("the daemon listens on any free port: name where it is with --url, or give it a port")
    return read(f"http://{Address(ANY_ADDRESS.get(bind.host, bind.host), bind.port)}", profile)


def read(text: str, profile: str | None) -> DaemonURL:
    """The URL that a person names, for a profile or for the daemon's own; ValueError if it cannot be meant."""
    if TOKEN.search(text):
        raise ValueError("a token does not belong in a URL, where others can read it: set CONVMEM_TOKEN")
    parts = _parts(text)
    path = parts.path.rstrip("/")
    if not path:
        path = MCP + (f"/{profile}" if profile else "")
    elif profile and path.endswith(MCP):
        path += f"/{profile}"
    elif profile and not path.endswith(f"{MCP}/{profile}"):
        raise ValueError(f"the path of the URL is not {MCP}: leave --profile or the path out")
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    name = parts.hostname or ""
    return DaemonURL(
        base, f"{parts.scheme}://{parts.netloc}{path}", Address(name, 0).is_loopback, parts.scheme == "https"
    )


def _parts(text: str) -> SplitResult:
    if not text.isascii() or not text.isprintable() or set(text) & set(' "<>\\^`{|}$'):
        raise ValueError("a URL holds no blanks, braces, dollars or other characters that a program could read as more")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("this is no URL like http://host:8484") from None
    if parts.scheme not in SCHEMES or not parts.hostname or port == 0:
        raise ValueError("this is no URL like http://host:8484")
    if "@" in parts.netloc:
        raise ValueError("a URL must not hold a user or a password: set CONVMEM_TOKEN")
    if "?" in text or "#" in text:
        raise ValueError("a URL must not hold a query or a fragment")
    host(parts.hostname)
    return parts
