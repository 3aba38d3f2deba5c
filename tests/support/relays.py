"""What can stand between a client and its daemon: proxies of many manners, tunnels without an end, and strangers.

A server takes one request a connection. What it does with it is a function from the request's bytes to the answer's;
`forwarding` makes one that asks a daemon and changes what goes there and what comes back.
"""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

WAIT_S = 20
Answering = Callable[[bytes], bytes]
Edit = Callable[[bytes], bytes]


@dataclass
class Server:
    """A listening socket, and what has come over it."""

    listener: socket.socket
    asked: list[bytes] = field(default_factory=list)

    @property
    def port(self) -> int:
        found: int = self.listener.getsockname()[1]
        return found


@contextmanager
def serving(
    take: Callable[[Server, socket.socket], None],
    *,
    tls: ssl.SSLContext | None = None,
    unix: Path | None = None,
) -> Iterator[Server]:
    """Give each connection to `take`, in a thread of its own, until the block ends."""
    if unix is None:
        listener = socket.create_server(("127.0.0.1", 0))
    else:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(unix))
        listener.listen()
    server = Server(listener)
    threads: list[threading.Thread] = []
    open_ones: list[socket.socket] = []

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(WAIT_S)
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True)
            with connection:
                take(server, connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_ones.append(connection)
            threads.append(threading.Thread(target=one, args=(connection,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield server
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(WAIT_S)
        for connection in open_ones:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(WAIT_S)


@contextmanager
def answering(answer: Answering, *, tls: ssl.SSLContext | None = None, unix: Path | None = None) -> Iterator[Server]:
    """Answer each whole request with what the function makes of it; nothing for an empty answer."""

    def take(server: Server, connection: socket.socket) -> None:
        request = received(connection)
        if request:  # else somebody only looked whether anybody is there
            server.asked.append(request)
            connection.sendall(answer(request))

    with serving(take, tls=tls, unix=unix) as server:
        yield server


@contextmanager
def silent() -> Iterator[Server]:
    """Accept, read, and never say a word."""

    def take(server: Server, connection: socket.socket) -> None:
        while data := connection.recv(65_536):
            server.asked.append(data)

    with serving(take) as server:
        yield server


@contextmanager
def dripping() -> Iterator[Server]:
    """Send a byte of a header for every one that could time out a client that waits for each read anew."""
    gone = threading.Event()

    def take(server: Server, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
        while not gone.wait(0.02):
            connection.sendall(b"y")

    with serving(take) as server:
        try:
            yield server
        finally:
            gone.set()


@contextmanager
def resetting() -> Iterator[Server]:
    """Accept and reset, as a tunnel does whose far end refuses."""

    def take(server: Server, connection: socket.socket) -> None:
        connection.recv(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with serving(take) as server:
        yield server


@contextmanager
def full() -> Iterator[int]:
    """A port whose queue of connections is full: what else comes is dropped, as by a firewall."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        place = listener.getsockname()
        queued = [socket.socket() for _ in range(4)]
        for one in queued:
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.connect(place)
        try:
            yield place[1]
        finally:
            for one in queued:
                one.close()


def received(connection: socket.socket, body_bytes_max: int | None = None) -> bytes:
    """One whole request, nothing if it breaks off; of a body that is larger than so many bytes, the head alone."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65_536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    size = length_of(head)
    if body_bytes_max is not None and size > body_bytes_max:
        return head + b"\r\n\r\n"
    pieces, got = [body], len(body)
    while got < size and (piece := connection.recv(1 << 20)):
        pieces.append(piece)
        got += len(piece)
    if got < size:
        return b""
    return head + b"\r\n\r\n" + b"".join(pieces)


def length_of(head: bytes) -> int:
    """What Content-Length says; 0 if nothing."""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def forwarded(port: int, request: bytes) -> bytes:
    """Ask a daemon, and everything it answers until it closes; nothing for nothing."""
    if not request:
        return b""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
        connection.sendall(request)
        return connection.makefile("rb").read()


def forwarding(port: int, *, to: Edit = bytes, back: Edit = bytes) -> Answering:
    """A proxy: `to` changes a request, `back` an answer."""
    return lambda request: back(forwarded(port, to(request)))


def page(status: str, body: bytes = b"<html>no</html>", *lines: bytes, kind: bytes = b"text/html") -> bytes:
    """A whole answer."""
    own = [b"HTTP/1.1 " + status.encode(), b"Content-Type: " + kind, b"Content-Length: %d" % len(body)]
    return b"\r\n".join([*own, *lines, b"", body])


def whole(answer: bytes) -> tuple[list[bytes], bytes]:
    """An answer's header lines without those of its framing, and its body in one piece."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    if any(line.lower().startswith(b"transfer-encoding:") for line in lines):
        parts, rest = [], body
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            count = int(size, 16)
            parts.append(rest[:count])
            rest = rest[count + 2 :] if count else b""
        body = b"".join(parts)
    framing = (b"transfer-encoding:", b"content-length:")
    return [line for line in lines if not line.lower().startswith(framing)], body


def joined(lines: list[bytes], body: bytes) -> bytes:
    """The answer again, with its length."""
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])


def without(name: bytes) -> Edit:
    """Take a header out, of a request or an answer."""

    def edit(data: bytes) -> bytes:
        head, _, body = data.partition(b"\r\n\r\n")
        kept = [line for line in head.split(b"\r\n") if not line.lower().startswith(name.lower())]
        return b"\r\n".join(kept) + b"\r\n\r\n" + body

    return edit
