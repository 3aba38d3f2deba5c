"""One POST /capture, and what came of it. It has so long and no longer, whatever the other end does.

Written by hand on a socket, since importing an HTTP client takes as long as the whole hook may. It sends one kind of
request and believes only an answer that is whole: a status line, headers, and a body that ends where it says. Whatever
else comes is no answer; the events are kept, and the daemon stores each once however often it comes.
"""

from __future__ import annotations

import _socket
import os
from collections.abc import Mapping, Sequence

from convmem import __version__, strict_json
from convmem.clock import Clock
from convmem.hooks.json_text import encoded
from convmem.hooks.target import Address, Misplaced, Target
from convmem.limits import DELIVERY_ANSWER_BYTES_MAX, DELIVERY_RETRY_AFTER_MS_MAX, HEADERS_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any, NamedTuple
else:
    from convmem.hooks.named_tuple import NamedTuple

PATH = "/capture"
OK, REFUSED, NO_ANSWER, NOT_ASKED = 200, 400, 0, -1
PIECE_BYTES = 64 * 1024
BLANK = "BLANK"
# What a socket says where no daemon of ours listens: none was started, one was killed, or it is not for us.
NOBODY = (ConnectionRefusedError, FileNotFoundError, NotADirectoryError, PermissionError)
VERSIONS = (b"HTTP/1.1", b"HTTP/1.0")
CHUNK = rb"([0-9A-Fa-f]{1,8})(?:;[^\r\n]*)?\r\n"


class Unanswered(Exception):
    """No whole answer came; the sentence says how it went."""


class Answer(NamedTuple):
    """What the other end said."""

    status: int
    body: bytes
    retry_after_ms: int


class Outcome(NamedTuple):
    """What became of the events: an HTTP status (NO_ANSWER: none came; NOT_ASKED: nobody was there to ask, or there was
    no token to show), how many of them the daemon will never take, how long it wants to be left alone, and what
    happened in words.
    """

    status: int
    refused: int = 0
    retry_after_ms: int = 0
    reason: str = ""


def deliver(
    target: Target, events: Sequence[bytes], spool: Mapping[str, Any] | None, wait_ms: float, clock: Clock
) -> Outcome:
    """Send events, each one JSON text, with what the spool says of itself; never raises for what the other end does.

    No events are sent only to tell of a spool.
    """
    said = b"" if spool is None else b',"spool":%b' % encoded(spool)
    body = b'{"events":[%b]%b}' % (b",".join(events), said)
    deadline_ms = clock.monotonic_ms() + wait_ms
    reason = "no daemon is running"
    for address in target.addresses():
        try:
            # The local socket asks for no token; it is not told one either.
            token = None if address.socket else target.token()
            return _outcome(address, _post(address, _request(address, token, body), deadline_ms, clock))
        except NOBODY:
            reason = f"nobody listens at {address}"
        except Misplaced as fault:
            return Outcome(NOT_ASKED, reason=str(fault))
        except (OSError, UnicodeError, Unanswered) as error:
            return Outcome(NO_ANSWER, reason=f"no answer from {address}: {_said(error)}")
    return Outcome(NOT_ASKED, reason=reason)


def _request(address: Address, token: bytes | None, body: bytes) -> bytes:
    head = (
        f"POST {address.prefix}{PATH} HTTP/1.1\r\nHost: {address.authority}\r\n"
        f"User-Agent: convmem-capture/{__version__}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    ).encode()
    # A token may hold any byte, and is sent as it is.
    return head + (b"" if token is None else b"Authorization: Bearer %b\r\n" % token) + b"\r\n" + body


def _post(address: Address, request: bytes, deadline_ms: float, clock: Clock) -> Answer:
    def left_s() -> float:
        left_ms = deadline_ms - clock.monotonic_ms()
        if left_ms <= 0:
            raise Unanswered("it took too long")
        return left_ms / 1000

    connection = _connected(address, left_s())
    try:
        connection.settimeout(left_s())
        connection.sendall(request)
        received = bytearray()
        while not _is_whole(received):
            connection.settimeout(left_s())
            piece = connection.recv(PIECE_BYTES)
            if not piece:
                break
            received += piece
            if len(received) > HEADERS_BYTES_MAX + DELIVERY_ANSWER_BYTES_MAX:
                raise Unanswered("the answer is too large")
    finally:
        connection.close()
    return _answer(bytes(received))


def _connected(address: Address, wait_s: float) -> _socket.socket:
    if not address.socket:
        return _connected_by_network(address, wait_s)
    connection = _socket.socket(_socket.AF_UNIX)
    try:
        connection.settimeout(wait_s)
        connection.connect(os.fsencode(address.socket))
    except OSError:
        connection.close()
        raise
    return connection


def _connected_by_network(address: Address, wait_s: float) -> _socket.socket:
    import socket

    connection = socket.create_connection((address.host, address.port), timeout=wait_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return _in_tls(connection, address.host) if address.is_tls else connection


def _in_tls(connection: socket.socket, host: str) -> socket.socket:
    import ssl

    try:
        return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
    except OSError:
        connection.close()
        raise


def _headers(received: bytes | bytearray) -> tuple[int, dict[bytes, bytes], int] | None:
    """Status, headers by lower-case name, and where the body begins; None while they are not all there. Unanswered."""
    end = received.find(b"\r\n\r\n")
    if (len(received) if end < 0 else end) > HEADERS_BYTES_MAX:
        raise Unanswered("the headers are too large")
    if end < 0:
        return None
    first, *lines = bytes(received[:end]).split(b"\r\n")
    version, _, said = first.partition(b" ")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    if version not in VERSIONS or not said[:3].isdigit() or said[3:4].strip() or not all(map(_is_header, lines)):
        raise Unanswered("it does not speak HTTP")
    if sum(name == b"content-length" for name, _ in headers) > 1:
        raise Unanswered("the answer has two lengths")
    return int(said[:3]), dict(headers), end + 4


def _is_header(line: bytes) -> bool:
    name, colon, _ = line.partition(b":")
    return bool(name and colon) and name == name.strip()


def _is_whole(received: bytearray) -> bool:
    """Whether an answer that tells its length is there. Others end with the connection."""
    found = _headers(received)
    length = found[1].get(b"content-length", b"") if found else b""
    return found is not None and length.isdigit() and len(received) - found[2] >= int(length[:9])


def _answer(received: bytes) -> Answer:
    found = _headers(received)
    if found is None:
        raise Unanswered("it broke off")
    status, headers, start = found
    body = received[start:]
    length = headers.get(b"content-length", b"%d" % len(body))
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        body = _joined(body)
    elif not length.isdigit() or len(body) < int(length[:9]):
        raise Unanswered("it broke off")
    else:
        body = body[: int(length[:9])]
    after = headers.get(b"retry-after", b"")
    after_ms = min(int(after[:6]) * 1000, DELIVERY_RETRY_AFTER_MS_MAX) if after.isdigit() else 0
    return Answer(status, body, after_ms)


def _joined(body: bytes) -> bytes:
    """The pieces of a body that came in pieces. Unanswered if the last one is missing."""
    parts: list[bytes] = []
    at = 0
    # Imported here: a daemon tells the length of its answers, only what stands before one may not.
    import re

    chunk = re.compile(CHUNK)
    while (found := chunk.match(body, at)) is not None:
        size, at = int(found[1], 16), found.end()
        if size == 0:
            return b"".join(parts)
        parts.append(body[at : at + size])
        at += size + 2
    raise Unanswered("it broke off")


def _outcome(address: Address, answer: Answer) -> Outcome:
    reason = f"{address} answered {answer.status}"
    if answer.status != OK:
        return Outcome(answer.status, retry_after_ms=answer.retry_after_ms, reason=reason)
    try:
        facts = strict_json.parse(answer.body)
        dropped = [item for item in facts["dropped"] if item["code"] != BLANK]
        if not isinstance(facts["stored"], int):
            raise TypeError
    except (ValueError, TypeError, KeyError):
        # Whoever this is: it has not stored anything.
        return Outcome(NO_ANSWER, reason=f"{address} answered what is no answer of convmem")
    return Outcome(OK, refused=len(dropped))


def _said(error: Exception) -> str:
    return "it took too long" if isinstance(error, TimeoutError) else getattr(error, "strerror", None) or str(error)
