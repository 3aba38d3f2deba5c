"""One HTTP/1.1 connection to a daemon, on its local socket or over TCP with or without TLS: one POST after the other.

h11 knows HTTP, asyncio the sockets; what is decided here is what a failure means. Unreachable: nothing was sent, so
asking again does no harm. Lost: the request was on its way, and nobody can say whether it was done.

Rejected: a client library for HTTP. Those at hand take longer to import than the whole bridge may take to start, and
retry or follow redirects in their own ways. TLS is imported only where it is used, for the same reason.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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


class Arrivals(asyncio.StreamReader):
    """What comes in. Of a connection that breaks, what came before is still read: it may be the answer, where the other
    end has refused a request without taking all of it (RFC 9112, section 9.6).
    """

    def __init__(self) -> None:
        super().__init__(READ_BYTES)
        self.breakage: Exception | None = None
        self.came_bytes = 0

    def feed_data(self, data: Any) -> None:
        self.came_bytes += len(data)
        super().feed_data(data)

    def set_exception(self, exc: Exception) -> None:
        self.breakage = exc
        self.feed_eof()


class Connection:
    """An open connection; at most one request at a time."""

    def __init__(self, reader: Arrivals, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT)
        self._read_bytes = 0

    @property
    def is_usable(self) -> bool:
        """True if another request may be sent: the last answer is complete, and since then the other end has neither
        hung up nor said a word (a proxy may say that nothing was asked for too long).
        """
        is_open = not self._reader.at_eof() and not self._writer.is_closing()
        is_silent = self._read_bytes == self._reader.came_bytes and not self._http.trailing_data[0]
        return is_open and is_silent and self._http.our_state is self._http.their_state is h11.IDLE

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
        assert isinstance(event, h11.Response), "what else h11 has there it raises"
        kinds = [value for name, value in event.headers if name == b"content-type"]
        return Head(event.status_code, b"".join(kinds[:1]).partition(b";")[0].strip().lower())

    async def body(self) -> AsyncGenerator[bytes, None]:
        """The pieces of the answer's body as they come, to its end. Lost, also if it is larger than any answer is."""
        size_bytes = 0
        while not isinstance(event := await self._event(), h11.EndOfMessage):
            assert isinstance(event, h11.Data), "what else h11 has there it raises"
            size_bytes += len(event.data)
            if size_bytes > BRIDGE_ANSWER_BYTES_MAX:
                raise Lost(f"its answer is larger than {BRIDGE_ANSWER_BYTES_MAX} bytes")
            yield bytes(event.data)
        if self._http.our_state is self._http.their_state is h11.DONE:
            self._http.start_next_cycle()

    async def _event(self) -> object:
        piece: bytes | None = None
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                piece = await self._reader.read(READ_BYTES)
                if not piece and self._reader.breakage is not None:
                    raise Lost(f"the connection broke: {_said(self._reader.breakage)}")
                self._read_bytes += len(piece)
                self._http.receive_data(piece)
        except h11.RemoteProtocolError as error:
            sentence = f"that is no HTTP: {error}" if piece != b"" else "it hung up before its answer was complete"
            raise Lost(sentence) from None
        return event

    async def ended(self) -> None:
        """Wait until the other end hangs up on a connection on which nothing is asked."""
        while await self._reader.read(READ_BYTES):
            pass

    def close(self) -> None:
        """Let go of it; what was asked is done all the same."""
        self._writer.close()


async def connect(address: Address) -> Connection:
    """Return a new connection. Unreachable."""
    loop, reader = asyncio.get_running_loop(), Arrivals()
    protocol = asyncio.StreamReaderProtocol(reader)
    try:
        async with asyncio.timeout(BRIDGE_CONNECT_MS_MAX / 1000):
            transport, _ = (
                await loop.create_unix_connection(lambda: protocol, address.socket)
                if address.socket
                else await loop.create_connection(
                    lambda: protocol,
                    address.host,
                    address.port,
                    ssl=_tls() if address.is_tls else None,
                    **_both_families(),
                )
            )
    except TimeoutError:
        raise Unreachable(f"no connection to {address} within {BRIDGE_CONNECT_MS_MAX} ms") from None
    except (OSError, ValueError) as error:
        raise Unreachable(f"no connection to {address}: {_said(error)}") from None
    if not address.socket:
        _keep_alive(transport.get_extra_info("socket"))
    elif transport.get_extra_info("peername") is None:
        # asyncio takes it for connected although the queue of the other end was full (connect(2), EAGAIN).
        transport.abort()
        raise Unreachable(f"no connection to {address}: too many wait for it")
    return Connection(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


def _tls() -> "ssl.SSLContext":
    import ssl

    return ssl.create_default_context()


def _both_families() -> dict[str, Any]:
    """Have both kinds of addresses of a name tried side by side (RFC 8305), where the loop can: uvloop cannot."""
    is_able = isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)
    return {"happy_eyeballs_delay": HAPPY_EYEBALLS_DELAY_S} if is_able else {}


def _keep_alive(connected: socket.socket) -> None:
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _said(error: Exception) -> str:
    if verified := getattr(error, "verify_message", None):
        # Of ssl, which is imported only where it is used.
        return f"its certificate is not trusted ({verified}): name the file of its authority in SSL_CERT_FILE"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
