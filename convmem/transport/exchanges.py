"""One request to a daemon and its answer as a line, over connections that are kept for the next one.

Whatever comes back becomes one line of JSON-RPC with the request's own id: the daemon's answer as it is, the guard's
refusals (whose id is null, since the guard reads no bodies), and what is no answer of convmem's at all, from a proxy or
another program. A proxy that says the daemon is away may have passed the request on before: that is Lost.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from convmem.clock import Clock
from convmem.limits import BRIDGE_QUIET_MS_MAX, BRIDGE_TRUST_MS_MAX, SEEN_CODE_POINTS_MAX
from convmem.transport import event_stream, jsonrpc
from convmem.transport.http_client import Address, Connection, Head, Headers, Lost, Unreachable, connect

EVENT_STREAM = b"text/event-stream"
ALWAYS: Headers = [
    (b"Content-Type", b"application/json"),
    (b"Accept", b"application/json, text/event-stream"),
]
# What a proxy answers where the daemon behind it does not (RFC 9110, 15.6.3 to 15.6.5).
AWAY = {502, 503, 504}
# Of the range that JSON-RPC leaves to servers; -32000 is what SDKs say of a closed connection.
SERVER_ERROR = -32050

Tell = Callable[[bytes], Awaitable[None]]


class Message(msgspec.Struct):
    """As much of a JSON-RPC message as decides what is done with it."""

    jsonrpc: str = ""
    id: int | str | None = None
    method: str | None = None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")


class Quiet(NamedTuple):
    """A connection on which nothing is asked, where it goes, and since when."""

    connection: Connection
    address: Address
    since_ms: float


_decode = msgspec.json.Decoder(Message).decode


class Exchanges:
    """Asks one daemon. `addresses()` says where it may listen, the likeliest first, and `token()` what lets us in; both
    are asked each time, because either may have changed.
    """

    def __init__(
        self,
        addresses: Callable[[], Iterable[Address]],
        token: Callable[[], bytes | None],
        path: str,
        clock: Clock,
    ) -> None:
        self._addresses, self._token, self._path, self._clock = addresses, token, path, clock
        # The latest last.
        self._quiet: list[Quiet] = []

    async def ask(
        self, request_id: jsonrpc.Id, headers: Headers, line: bytes, tell: Tell, *, is_repeatable: bool
    ) -> bytes:
        """Return the answer to a request as a line; what comes before it on a stream goes to `tell`.

        Unreachable: it was not asked. Lost: it may have been done. What must not be sent twice is sent on a connection
        that was used just now or is new: an old one may be dead without our knowing.
        """
        connection, address = await self._connection(BRIDGE_QUIET_MS_MAX if is_repeatable else BRIDGE_TRUST_MS_MAX)
        try:
            own = [(b"Host", address.authority.encode("ascii")), *ALWAYS, *headers, *self._authorization()]
            head = await connection.post((address.prefix + self._path).encode("ascii"), own, line)
            if head.media_type == EVENT_STREAM:
                answer = await _last_event(connection, request_id, tell)
            else:
                answer = _answer(head, b"".join([piece async for piece in connection.body()]), request_id)
        finally:
            # After a failure it is not usable: its answer is not complete.
            if connection.is_usable:
                self._quiet.append(Quiet(connection, address, self._clock.monotonic_ms()))
            else:
                connection.close()
        return answer

    def close(self) -> None:
        """Let go of all connections that nothing is asked on."""
        for one in self._quiet:
            one.connection.close()
        self._quiet.clear()

    def _authorization(self) -> Headers:
        try:
            token = self._token()
        except ValueError as error:
            raise Unreachable(str(error)) from None
        return [] if token is None else [(b"Authorization", b"Bearer " + token)]

    async def _connection(self, quiet_ms_max: int) -> tuple[Connection, Address]:
        now_ms = self._clock.monotonic_ms()
        quiet, self._quiet = self._quiet, []
        for one in quiet:
            if one.connection.is_usable and now_ms - one.since_ms <= BRIDGE_QUIET_MS_MAX:
                self._quiet.append(one)
            else:
                one.connection.close()
        if self._quiet and now_ms - self._quiet[-1].since_ms <= quiet_ms_max:
            latest = self._quiet.pop()
            return latest.connection, latest.address
        reason = Unreachable("no daemon is running")
        for address in self._addresses():
            try:
                return await connect(address), address
            except Unreachable as unreachable:
                reason = unreachable
        raise reason


async def _last_event(connection: Connection, request_id: jsonrpc.Id, tell: Tell) -> bytes:
    """The event that is the answer; the ones before it are told. The stream's own end is not waited for."""
    async with aclosing(connection.body()) as pieces, aclosing(event_stream.data(pieces)) as events:
        async for data in events:
            message = _message(data)
            if message is not None and message.method is not None:
                await tell(_one_line(data))
            elif message is not None and message.id == request_id:
                return _one_line(data)
    raise Lost("its stream ended without an answer")


def _answer(head: Head, body: bytes, request_id: jsonrpc.Id) -> bytes:
    message = _message(body)
    is_answer = message is not None and message.method is None and bool(message.result or message.error)
    if message is not None and is_answer and message.id == request_id:
        return _one_line(body)
    if message is not None and is_answer and message.id is None and message.error:
        return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": message.error})
    if head.status in AWAY:
        raise Lost(f"a proxy answered {head.status}")
    seen = ascii(body[:SEEN_CODE_POINTS_MAX])[2:-1]
    return failure(request_id, "NO_ANSWER", f"the answer {head.status} is none of convmem's: {seen or '(empty)'}")


def failure(request_id: jsonrpc.Id, code: str, sentence: str, *, retryable: bool = False) -> bytes:
    """An error of the bridge itself as the answer to a request."""
    data = {"code": code, "retryable": retryable}
    return jsonrpc.error(jsonrpc.Refused(SERVER_ERROR, f"{code}: {sentence}", data), request_id)


def _message(text: bytes) -> Message | None:
    """What a text says, None if it is no message of JSON-RPC."""
    try:
        message = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return message if message.jsonrpc == "2.0" else None


def _one_line(text: bytes) -> bytes:
    """A JSON text without line ends: between its tokens they mean nothing, and inside of strings there are none."""
    return text.replace(b"\n", b" ").replace(b"\r", b" ") if b"\n" in text or b"\r" in text else text
