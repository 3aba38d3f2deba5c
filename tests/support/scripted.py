"""A server that says exactly the bytes that a test gives it: for answers that no good server would give."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Scripted:
    """What was asked, and where."""

    url: str
    asked: list[bytes] = field(default_factory=list)


def head(status: str, *headers: str) -> bytes:
    """A status line and headers."""
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode()


def chunked(*pieces: bytes, is_ended: bool = True) -> bytes:
    """Pieces as a chunked body, with or without its end (RFC 9112 section 7.1)."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + (b"0\r\n\r\n" if is_ended else b"")


@contextmanager
def scripted(answer: bytes, *, reads: bytes = b"\r\n\r\n", unix: Path | None = None) -> Iterator[Scripted]:
    """Serve one connection: read until `reads` was seen, say `answer`, close."""
    listener = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
    listener.bind(str(unix) if unix else ("127.0.0.1", 0))
    listener.listen()
    served = Scripted("" if unix else f"http://127.0.0.1:{listener.getsockname()[1]}")

    def serve() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # nobody came
        with connection:
            asked = b""
            while reads not in asked and (piece := connection.recv(65536)):
                asked += piece
            served.asked.append(asked)
            connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield served
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
