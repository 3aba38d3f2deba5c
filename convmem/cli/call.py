"""One tools/call to a running daemon: over its local socket, or over HTTP to another machine.

The daemon keeps no session, so one POST of one JSON-RPC request is all there is to it; nothing of an MCP SDK is needed,
and a verb answers in the time that Python takes to start.
"""

import json
import socket
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from convmem import __version__
from convmem.cli.asking import CallFailed
from convmem.errors import ConvmemError, RetryError

CONNECT_WAIT_S, ANSWER_WAIT_S = 5, 60
ANSWER_BYTES_MAX = 16 * 1024 * 1024
PATH = "/mcp/messages"
# Where a tool is that the profile of messages does not show.
PATHS = dict.fromkeys(("info", "list", "get"), "/mcp/tables")
RETRY_MS = 1_000
EXPLAIN_KEY, STAGES_KEY = "convmem/explain", "convmem/stages"
# What a socket says where no daemon of ours listens: none was started, one was killed, or it is not for us.
NOBODY = (ConnectionRefusedError, FileNotFoundError, NotADirectoryError, PermissionError)


class Explained(NamedTuple):
    """The facts that a tool answers, and what each query on the store took: its name and its ms, in their order."""

    facts: dict[str, Any]
    stages: list[tuple[str, float]]


class Place(NamedTuple):
    """Where a daemon answers: its local socket, or a URL with the token it asks for."""

    socket: Path | None = None
    url: str = ""
    token: bytes | None = None

    def __str__(self) -> str:
        return self.url if self.socket is None else str(self.socket)


class SocketConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_WAIT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(CONNECT_WAIT_S)
        self.sock.connect(str(self._path))
        self.sock.settimeout(ANSWER_WAIT_S)


def place_of_holder(text: str, token: bytes | None) -> Place | None:
    """Where whoever holds the store listens, by what it wrote into the lock; None if it does not say."""
    try:
        url = json.loads(text)["url"]
    except (ValueError, TypeError, KeyError):
        return None
    return Place(url=str(url).removesuffix("/mcp"), token=token)


def call(place: Place, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that the tool answers.

    Raises one of NOBODY if no daemon listens on the socket, the ConvmemError that the daemon refuses with, and
    CallFailed for anything else.
    """
    facts: dict[str, Any] = _result(place, {"name": tool, "arguments": arguments})["structuredContent"]
    return facts


def call_explained(place: Place, tool: str, arguments: Mapping[str, Any]) -> Explained:
    """The same with what it took; no stages from a daemon that does not tell them."""
    result = _result(place, {"name": tool, "arguments": arguments, "_meta": {EXPLAIN_KEY: True}})
    stages = result.get("_meta", {}).get(STAGES_KEY, [])
    return Explained(result["structuredContent"], [(stage["stage"], stage["ms"]) for stage in stages])


def _result(place: Place, params: Mapping[str, Any]) -> dict[str, Any]:
    connection, path = connection_to(place)
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = headers_for(place) | {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    try:
        connection.request("POST", path or PATHS.get(params["name"], PATH), json.dumps(request).encode(), headers)
        response = connection.getresponse()
        return _answered(place, response, response.read(ANSWER_BYTES_MAX))
    except (OSError, HTTPException) as error:
        if place.socket is not None and isinstance(error, NOBODY):
            raise
        raise CallFailed(f"no answer from {place}: {error}") from None
    finally:
        connection.close()


def connection_to(place: Place) -> tuple[HTTPConnection, str]:
    """A connection that is not open yet, and the path that the URL names (empty if none). CallFailed if it is none."""
    if place.socket is not None:
        return SocketConnection(place.socket), ""
    try:
        url = urlsplit(place.url)
        kind = {"http": HTTPConnection, "https": HTTPSConnection}[url.scheme]
        if not url.hostname or url.username or url.query or url.fragment:
            raise ValueError
        return kind(url.hostname, url.port, timeout=ANSWER_WAIT_S), url.path.rstrip("/")
    except (ValueError, KeyError):
        raise CallFailed(f"{place.url!r} is not a URL like http://host:8484") from None


def headers_for(place: Place) -> dict[str, str]:
    """Who asks, and the token that lets it in."""
    headers = {"User-Agent": f"convmem/{__version__}"}
    if place.token is not None:
        headers["Authorization"] = f"Bearer {place.token.decode('latin-1')}"
    return headers


def decoded(body: bytes) -> Any:
    """The value of a JSON text that a daemon sent; None if it is none."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def _answered(place: Place, response: HTTPResponse, body: bytes) -> dict[str, Any]:
    answer = decoded(body)
    if not isinstance(answer, dict):
        raise CallFailed(f"{place} answered {response.status} {response.reason}, which is no answer of convmem")
    error = answer.get("error")
    if isinstance(error, dict):
        raise CallFailed(f"{place} answered {response.status}: {error.get('message', response.reason)}")
    result: dict[str, Any] = answer.get("result", {})
    facts = result.get("structuredContent")
    if not isinstance(facts, dict):
        raise CallFailed(f"{place} answered {response.status} {response.reason} without facts")
    if result.get("isError"):
        raise refusal(facts["error"])
    return result


def refusal(error: Mapping[str, Any]) -> Exception:
    """The error that the daemon named, as the class that has its code here."""
    details = {name: value for name, value in error.items() if name not in {"code", "message", "retryable"}}
    for kind in _kinds(ConvmemError):
        if getattr(kind, "code", None) == error["code"]:
            if issubclass(kind, RetryError):
                # What is refused before it is read names it in a header only.
                details.setdefault("retry_after_ms", RETRY_MS)
            return kind(error["message"], **details)
    return CallFailed(f"{error['code']}: {error['message']}")


def _kinds(kind: type[ConvmemError]) -> Iterator[type[ConvmemError]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from _kinds(inner)
