"""One HTTP exchange over a connection of its own, which ends at its deadline whatever the other side does.

The idea: a deadline belongs to the exchange, not to each read. A server that sends a byte now and then would keep a
client with timeouts for ever. Nothing is followed and nothing is sent twice, so a token goes where it was meant to go.

Rejected: urllib, which follows redirects and heeds proxies, and http.client's connection, whose timeout is per read.
"""

import io
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import Any, NamedTuple

from convmem import __version__, strict_json
from convmem.clock import Clock
from convmem.limits import DOCTOR_ANSWER_BYTES_MAX, DOCTOR_STEP_MS_MAX

JSON_TYPE, STREAM_TYPE = "application/json", "text/event-stream"
PIECE_BYTES = 64 * 1024


class NoAnswer(Exception):
    """No answer came: `silent` until the deadline, `closed` before a whole one, or `foreign` bytes that are no HTTP.

    `sent` is how many bytes of the request were taken.
    """

    def __init__(self, how: str, said: str = "", sent: int = 0) -> None:
        super().__init__(how)
        self.how = how
        self.said = said
        self.sent = sent


class Deadline:
    """How long something may still take."""

    def __init__(self, clock: Clock, wait_ms: float) -> None:
        self._clock = clock
        self._until_ms = clock.monotonic_ms() + wait_ms

    def left_s(self) -> float:
        """Seconds that are left; TimeoutError if none are."""
        left_ms = self._until_ms - self._clock.monotonic_ms()
        if left_ms <= 0:
            raise TimeoutError
        return left_ms / 1000


class Answer(NamedTuple):
    """A whole answer; header names in lower case, repeated ones joined. `took_ms` from the connection's first byte."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    took_ms: float

    @property
    def kind(self) -> str:
        """The media type of the body."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def value(self) -> Any:
        """The body as JSON; None if it is none."""
        try:
            return strict_json.parse(self.body)
        except ValueError:
            return None

    @property
    def message(self) -> Mapping[str, Any]:
        """The one JSON-RPC message of the body, be it JSON or the last event of a stream; empty if there is none."""
        body = self.body
        if self.kind == STREAM_TYPE:
            data = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
            body = data[-1] if data else b""
        try:
            value = strict_json.parse(body)
        except ValueError:
            return {}
        return value if isinstance(value, dict) and value.get("jsonrpc") == "2.0" else {}

    @property
    def result(self) -> Mapping[str, Any]:
        """The result in that; empty if there is none."""
        result = self.message.get("result")
        return result if self.status == 200 and isinstance(result, dict) else {}

    @property
    def refusal(self) -> str:
        """The sentence that convmem refuses with; empty if this is no refusal of convmem."""
        value = self.value
        error = value.get("error") if isinstance(value, dict) else None
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            return ""
        data = error.get("data")
        code = data.get("code") if isinstance(data, dict) else error.get("code")
        return error["message"] if isinstance(code, str) else ""


@dataclass(frozen=True)
class Line:
    """Where a daemon is reached: an address or the path of a local socket, with TLS for a name, and what HTTP is told.

    `endpoint` is the path of the MCP endpoint, `prefix` what stands before the daemon's other paths.
    """

    family: int
    address: Any
    authority: str = "localhost"
    endpoint: str = "/mcp"
    prefix: str = ""
    tls: ssl.SSLContext | None = None
    name: str = ""
    token: bytes | None = field(default=None, repr=False)

    def connected(self, deadline: Deadline) -> socket.socket:
        """An open connection. OSError, ssl.SSLError or TimeoutError as they come."""
        connection = socket.socket(self.family, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.left_s())
            connection.connect(self.address)
            if self.tls is not None:
                connection.settimeout(deadline.left_s())
                return self.tls.wrap_socket(connection, server_hostname=self.name)
        except OSError:
            connection.close()
            raise
        return connection


class Exchanger:
    """Asks one daemon, each time over a connection of its own, within a deadline each."""

    def __init__(self, line: Line, clock: Clock, step_ms_max: float = DOCTOR_STEP_MS_MAX) -> None:
        self.line = line
        self.clock = clock
        self.step_ms_max = step_ms_max

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        bears_token: bool = True,
    ) -> Answer:
        """Send one request, read the whole answer. NoAnswer."""
        deadline = Deadline(self.clock, self.step_ms_max)
        begun_ms = self.clock.monotonic_ms()
        sent = 0
        try:
            with self.line.connected(deadline) as connection:
                head = self._head(method, path, len(body), headers or {}, bears_token=bears_token)
                sent = _sent(connection, head + body, deadline)
                return self._answer(connection, deadline, begun_ms)
        except TimeoutError:
            raise NoAnswer("silent", sent=sent) from None
        except (ConnectionError, IncompleteRead) as error:
            raise NoAnswer("closed", _said(error), sent) from None
        except HTTPException as error:
            raise NoAnswer("foreign", _said(error), sent) from None
        except OSError as error:
            raise NoAnswer("closed", _said(error), sent) from None

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        path: str = "",
        bears_token: bool = True,
    ) -> Answer:
        """Send one JSON-RPC request to the MCP endpoint. NoAnswer."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
        if params is not None:
            message["params"] = params
        told = {"Accept": f"{JSON_TYPE}, {STREAM_TYPE}", **(headers or {})}
        body = json.dumps(message).encode()
        return self.ask("POST", path or self.line.endpoint, body, told, bears_token=bears_token)

    def _head(self, method: str, path: str, size: int, headers: Mapping[str, str], *, bears_token: bool) -> bytes:
        lines = {
            "Host": self.line.authority,
            "User-Agent": f"convmem/{__version__}",
            "Accept-Encoding": "identity",
            "Connection": "close",
            **headers,
        }
        if method == "POST":
            lines |= {"Content-Type": JSON_TYPE, "Content-Length": str(size)}
        if bears_token and self.line.token is not None:
            lines["Authorization"] = f"Bearer {self.line.token.decode('latin-1')}"
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{method} {path} HTTP/1.1\r\n{text}\r\n".encode("latin-1")

    def _answer(self, connection: socket.socket, deadline: Deadline, begun_ms: float) -> Answer:
        with HTTPResponse(_Readable(connection, deadline)) as response:  # type: ignore[arg-type]
            response.begin()
            body = response.read(DOCTOR_ANSWER_BYTES_MAX)
            if response.length and len(body) < DOCTOR_ANSWER_BYTES_MAX:
                raise IncompleteRead(body, response.length)
            headers: dict[str, str] = {}
            for name, value in response.getheaders():
                name = name.lower()
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
            return Answer(response.status, headers, body, self.clock.monotonic_ms() - begun_ms)


def _sent(connection: socket.socket, data: bytes, deadline: Deadline) -> int:
    """Send until all is taken or the other side closes: its answer may lie there already. How many bytes went."""
    view, sent = memoryview(data), 0
    try:
        while sent < len(view):
            connection.settimeout(deadline.left_s())
            sent += connection.send(view[sent : sent + PIECE_BYTES])
    except TimeoutError:
        raise NoAnswer("silent", sent=sent) from None
    except ConnectionError:
        pass
    return sent


class _Readable:
    """A socket as http.client wants it, of which each read has only what the deadline leaves."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._stream = _Stream(connection, deadline)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._stream)


class _Stream(io.RawIOBase):
    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        super().__init__()
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self._deadline.left_s())
        return self._connection.recv_into(buffer)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
