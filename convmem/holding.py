"""What a process takes before anything else, and gives back last: the data directory, its lock, and the sockets.

The lock comes first: whoever holds it may remove a socket that was left behind. Nothing heavy is imported here.
"""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from convmem import files, strict_json
from convmem.config import Settings
from convmem.errors import AddressUnusable, DataDirectoryUnusable, StoreLocked
from convmem.limits import LOCK_TEXT_BYTES_MAX

LOCK = "store.lock"


@contextmanager
def usable(data_dir: Path) -> Iterator[None]:
    """Turn what the disk refuses inside the block into DataDirectoryUnusable: who, where, and the fix."""
    try:
        yield
    except (OSError, apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError) as error:
        place = getattr(error, "filename", None) or data_dir
        reason = getattr(error, "strerror", None) or error
        uid = os.getuid()
        raise DataDirectoryUnusable(
            f"uid {uid} cannot use {place} ({reason}): give it to this user (chown -R {uid} {data_dir}),"
            " free some space, or choose another --data-dir",
            path=str(data_dir),
            uid=uid,
        ) from error


class Held(NamedTuple):
    """The data directory and its lock, which others see taken until `close`."""

    directory: files.RealFiles
    lock: files.HeldLock

    def close(self) -> None:
        """Let others have the store."""
        self.lock.close()


def take(settings: Settings) -> Held:
    """The data directory, made if missing, and its lock. DataDirectoryUnusable, StoreLocked."""
    directory = files.RealFiles(settings.data_dir)
    with usable(settings.data_dir):
        directory.prepare()
        lock = files.lock(directory.path(LOCK))
    if lock is None:
        holder = holder_text(settings.data_dir) or "a process that did not name itself"
        raise StoreLocked(f"{settings.data_dir} is held by {holder}", holder=holder)
    return Held(directory, lock)


def holder_text(data_dir: Path) -> str:
    """What whoever holds the store wrote into the lock, blank if nothing."""
    text = files.read_text(data_dir / LOCK, bytes_max=LOCK_TEXT_BYTES_MAX) or b""
    return text.decode(errors="replace").strip()


class Holder(NamedTuple):
    """What whoever holds the store says of itself: a daemon names a URL, a process that serves an agent program only
    its local socket.
    """

    pid: int
    is_daemon: bool
    socket: str | None

    @property
    def is_alive(self) -> bool:
        """False if there is no such process: the text was left behind."""
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            return True  # It lives, as somebody else.
        except (OSError, OverflowError):
            return False
        return True


def holder_of(text: str) -> Holder | None:
    """The holder that a text in the lock names, None if it names none."""
    try:
        said = strict_json.parse(text.encode())
    except strict_json.MalformedJSON:
        return None
    if type(said) is not dict or type(said.get("pid")) is not int or said["pid"] <= 0:
        return None
    path = said.get("socket")
    return Holder(said["pid"], "url" in said, path if type(path) is str else None)


def lock_text(settings: Settings, tcp: socket.socket | None) -> str:
    """What store.lock says of its holder: pid, URL, local socket."""
    text: dict[str, Any] = {"pid": os.getpid()}
    if tcp is not None:
        text["url"] = url_of(tcp)
    if settings.socket is not None:
        text["socket"] = str(settings.socket)
    return json.dumps(text)


@contextmanager
def listening(settings: Settings) -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    """The TCP socket and, where Unix sockets are to be had, the local one. AddressUnusable."""
    host, port = settings.bind.host, settings.bind.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        tcp = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise AddressUnusable(
            f"cannot listen on {settings.bind} ({error.strerror}): choose another with --bind",
            address=str(settings.bind),
        ) from None
    with tcp, local_socket(settings) as unix:
        yield tcp, unix


@contextmanager
def local_socket(settings: Settings) -> Iterator[list[socket.socket]]:
    """convmem.sock (0600), listening; a leftover is removed first, since the lock is held. Empty without a path for
    it.
    """
    if settings.socket is None:
        yield []
        return
    files.remove(settings.socket)
    with socket.socket(socket.AF_UNIX) as unix:
        try:
            with files.private_files():
                unix.bind(str(settings.socket))
            files.make_private(settings.socket)
        except OSError as error:
            raise DataDirectoryUnusable(
                f"cannot make the local socket {settings.socket} ({error.strerror})",
                path=str(settings.socket),
                uid=os.getuid(),
            ) from None
        unix.listen(1024)
        try:
            yield [unix]
        finally:
            files.remove(settings.socket)


def url_of(tcp: socket.socket) -> str:
    """The URL of the MCP endpoint on this socket."""
    host, port = tcp.getsockname()[:2]
    return f"http://[{host}]:{port}/mcp" if ":" in host else f"http://{host}:{port}/mcp"
