"""One HTTP/1.1 connection to a daemon, on its local socket or over TCP with or without TLS: one POST after the other.

h11 knows HTTP, asyncio the sockets; what is decided here is what a failure means. Unreachable: nothing was sent, so
asking again does no harm. Lost: the request was on its way, and nobody can say whether it was done.

Rejected: a client library for HTTP. Those at hand take longer to import than the whole bridge may take to start, and
retry or follow redirects in their own ways. TLS is imported only where it is used, for the same reason.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import h11

from convmem.limits import BRIDGE_ANSWER_BYTES_MAX, BRIDGE_CONNECT_MS_MAX

if TYPE_CHECKING:
    import ssl

READ_BYTES = 64 * 1024
# A peer that has vanished without a word is noticed after about half a minute (tcp(7)).
KEEP_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
HAPPY_EYEBALLS_DELAY_S = 0.25

Headers = Sequence[tuple[bytes, bytes]]


class Address(Protocol):
    """Where to connect: the path of a local socket, or a host; `authority` is what the Host header says."""

    @property
    def socket(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def is_tls(self) -> bool: ...

    @property
    def prefix(self) -> str: ...

    @property
    def authority(self) -> str: ...


class Unreachable(Exception):
    """No connection came about, so nothing was asked; the sentence says why."""


class Lost(Exception):
    """The connection broke off after a request was sent on it; the sentence says how."""


class Head(NamedTuple):
    """The start of an answer: its status and the media type of its body, in lower case without parameters."""

    status: int
    media_type: bytes


class Connection:
    """An open connection; at most one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT)

    @property
    def is_usable(self) -> bool:
        """True if another request may be sent: the last answer is complete and the other end has not hung up."""
        is_open = not self._reader.at_eof() and not self._writer.is_closing()
        return is_open and self._http.our_state is self._http.their_state is h11.IDLE

    async def post(self, target: bytes, headers: Headers, body: bytes) -> Head:
        """Send one request and return the start of its answer. Lost.

        The body is handed to the system's buffers as a whole: an answer may come before all of it has left, and a
        refusal of its size must be read, not waited for.
        """
        length = (b"Content-Length", b"%d" % len(body))
        request = h11.Request(method=b"POST", target=target, headers=[*headers, length])
        parts = [self._http.send(event) for event in (request, h11.Data(data=body), h11.EndOfMessage())]
        self._writer.write(b"".join(part for part in parts if part))
        event = await self._event()
        while isinstance(event, h11.InformationalResponse):
            event = await self._event()
        if not isinstance(event, h11.Response):
            raise Lost("it hung up without an answer")
        kinds = [value for name, value in event.headers if name == b"content-type"]
        return Head(event.status_code, b"".join(kinds[:1]).partition(b";")[0].strip().lower())

    async def body(self) -> AsyncIterator[bytes]:
        """The pieces of the answer's body as they come, to its end. Lost, also if it is larger than any answer is."""
        size_bytes = 0
        while not isinstance(event := await self._event(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise Lost("it hung up in the middle of its answer")
            size_bytes += len(event.data)
            if size_bytes > BRIDGE_ANSWER_BYTES_MAX:
                raise Lost(f"its answer is larger than {BRIDGE_ANSWER_BYTES_MAX} bytes")
            yield bytes(event.data)
        if self._http.our_state is self._http.their_state is h11.DONE:
            self._http.start_next_cycle()

    async def _event(self) -> object:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(READ_BYTES))
        except OSError as error:
            raise Lost(f"the connection broke: {_said(error)}") from None
        except h11.RemoteProtocolError as error:
            raise Lost(f"that is no HTTP: {error}") from None
        return event

    async def ended(self) -> None:
        """Wait until the other end hangs up on a connection on which nothing is asked."""
        try:
            while await self._reader.read(READ_BYTES):
                pass
        except OSError:
            return

    def close(self) -> None:
        """Let go of it; what was asked is done all the same."""
        self._writer.close()


async def connect(address: Address) -> Connection:
    """Return a new connection. Unreachable."""
    try:
        async with asyncio.timeout(BRIDGE_CONNECT_MS_MAX / 1000):
            if address.socket:
                return Connection(*await asyncio.open_unix_connection(address.socket, limit=READ_BYTES))
            tls = _tls() if address.is_tls else None
            reader, writer = await asyncio.open_connection(
                address.host, address.port, ssl=tls, limit=READ_BYTES, **_both_families()
            )
    except TimeoutError:
        raise Unreachable(f"no connection to {address} within {BRIDGE_CONNECT_MS_MAX} ms") from None
    except (OSError, ValueError) as error:
        raise Unreachable(f"no connection to {address}: {_said(error)}") from None
    _keep_alive(writer.get_extra_info("socket"))
    return Connection(reader, writer)


def _tls() -> "ssl.SSLContext":
    import ssl

    return ssl.create_default_context()


def _both_families() -> dict[str, float]:
    """Have both kinds of addresses of a name tried side by side (RFC 8305), where the loop can: uvloop cannot."""
    is_able = isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)
    return {"happy_eyeballs_delay": HAPPY_EYEBALLS_DELAY_S} if is_able else {}


def _keep_alive(connected: socket.socket) -> None:
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
