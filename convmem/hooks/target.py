"""Which daemon a hook talks to: the one at a URL, else the one that holds the data directory of this user.

    --url, --data-dir > CONVMEM_URL > CONVMEM_DATA_DIR > the platform's data directory

Its name is what its spool is named by, so it must not change while the daemon is away. A convmem.env is not read: a
hook runs wherever its host works, and the files of a foreign project do not say where this user's words go.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from convmem import data_dir, file_descriptors, strict_json
from convmem.hooks.options import Options
from convmem.limits import LOCK_TEXT_BYTES_MAX, TOKEN_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from convmem.hooks.named_tuple import NamedTuple

LOCK = "store.lock"
# Scheme, host (a name, an address of version 4 or, in brackets, 6), port, path. No user, no query, no fragment.
URL = r"(https?)://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::([0-9]{1,5}))?(/[!-\"$->@-~]*)?"
MCP = r"/mcp(/[a-z]*)?$"
PORTS = {"http": 80, "https": 443}
PORT_MAX = 65_535
# Hosts that answer at once if they answer at all. Names are looked up for as long as that takes, and networks are slow.
LOOPBACK = ("::1", "localhost")


class Misplaced(ValueError):
    """There is no such place; the sentence says why."""


class Address(NamedTuple):
    """Where to connect: the path of a local socket, or a host and what goes before the daemon's paths there."""

    socket: str = ""
    host: str = ""
    port: int = 0
    is_tls: bool = False
    prefix: str = ""
    authority: str = "localhost"

    def __str__(self) -> str:
        return self.socket or f"{'https' if self.is_tls else 'http'}://{self.authority}{self.prefix}"


class Target:
    """A daemon. `name` is the same for every hook that means it; `is_near` if asking it cannot take long by itself."""

    def __init__(self, url: Address | None, directory: str, environment: Mapping[str, str], token_file: str) -> None:
        self._url = url
        self._directory = directory
        self._environment = environment
        self._token_file = token_file
        self._socket = data_dir.socket_path(directory, environment) if url is None else None
        self.name = str(url) if url else self._socket or os.path.join(directory, data_dir.SOCKET)
        self.is_near = url is None or (not url.is_tls and _is_loopback(url.host))

    def addresses(self) -> Iterator[Address]:
        """Where it may listen, the likeliest first. The lock's text is read only if the local socket was of no use."""
        if self._url is not None:
            yield self._url
            return
        if self._socket is not None:
            yield Address(socket=self._socket)
        yield from (address for address in self._of_holder() if address.socket != self._socket)

    def token(self) -> bytes | None:
        """The token to send, read anew each time: it may be mended. Misplaced if there should be one and is not."""
        token_file = self._token_file
        text = self._environment.get("CONVMEM_TOKEN")
        if not token_file and text is None and self._url is None:
            # Whoever holds the store of this machine was given its token the same way.
            token_file = os.path.expanduser(self._environment.get("CONVMEM_HTTP_TOKEN_FILE", ""))
            text = self._environment.get("CONVMEM_HTTP_TOKEN")
        if token_file:
            try:
                data = file_descriptors.read_small(token_file, TOKEN_BYTES_MAX + 3)
            except OSError as error:
                raise Misplaced(f"the token file cannot be read: {error.strerror}") from None
            if data is None:
                raise Misplaced("the token file is not there")
            return _token(data[:-2] if data.endswith(b"\r\n") else data.removesuffix(b"\n"))
        return None if text is None else _token(os.fsencode(text))

    def _of_holder(self) -> Iterator[Address]:
        """What the lock says of whoever holds it. A process that is gone has left its text behind; its port may be
        anybody's by now.
        """
        try:
            text = file_descriptors.read_small(os.path.join(self._directory, LOCK), LOCK_TEXT_BYTES_MAX)
            said = strict_json.parse(text or b"{}")
            os.kill(said["pid"], 0)
        except PermissionError:
            pass  # It lives, as somebody else.
        except (OSError, OverflowError, ValueError, TypeError, KeyError):
            return
        path, url = said.get("socket"), said.get("url")
        if isinstance(path, str) and os.path.isabs(path):
            yield Address(socket=path)
        if isinstance(url, str):
            try:
                yield address_of(url)
            except Misplaced:
                return


def target_of(options: Options, environment: Mapping[str, str], working_directory: str) -> Target:
    """The daemon that is meant. Misplaced if none can be."""
    texts = options.texts
    url = texts.get("--url") or ("" if "--data-dir" in texts else environment.get("CONVMEM_URL", ""))
    token_file = texts.get("--token-file", "")
    if token_file:
        token_file = os.path.join(working_directory, os.path.expanduser(token_file))
    if url:
        return Target(address_of(url), "", environment, token_file)
    directory = texts.get("--data-dir") or environment.get("CONVMEM_DATA_DIR") or data_dir.default(environment)
    if directory is None:
        raise Misplaced("there is no home directory: name a daemon with --url or --data-dir")
    if "\0" in directory:
        raise Misplaced("the data directory cannot be named so")
    directory = os.path.join(working_directory, os.path.expanduser(directory))
    return Target(None, os.path.realpath(directory), environment, token_file)


def address_of(url: str) -> Address:
    """Where a URL points; it may name the MCP endpoint, as the daemon's own line does. Misplaced if it is none."""
    # Imported here: most hooks are not given one.
    import re

    found = re.fullmatch(URL, url)
    port = int((found and found[3]) or PORTS[found[1]]) if found else 0
    if found is None or not 0 < port <= PORT_MAX:
        raise Misplaced("the URL is not one like http://host:8484")
    host = found[2].lower()
    prefix = re.sub(MCP, "", (found[4] or "").rstrip("/")).rstrip("/")
    authority = host if port == PORTS[found[1]] else f"{host}:{port}"
    return Address(host=host.strip("[]"), port=port, is_tls=found[1] == "https", prefix=prefix, authority=authority)


def _is_loopback(host: str) -> bool:
    return host in LOOPBACK or (host.startswith("127.") and set(host) <= set("0123456789."))


def _token(data: bytes) -> bytes:
    if not data or data != data.strip() or len(data) > TOKEN_BYTES_MAX:
        raise Misplaced("the token is blank, too long, or has blanks at an end")
    if any(byte < 0x20 or byte == 0x7F for byte in data):
        raise Misplaced("the token holds control characters")
    return data
