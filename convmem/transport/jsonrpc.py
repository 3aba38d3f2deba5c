"""JSON-RPC 2.0 as MCP uses it: one object in, one object out, and every malformed text gets an answer.

Refused: batches, ids that are null, fractional or boolean (a caller could not match the answer), parameters that are
no object. A text without `method` but with `result` or `error` is a response; this server asks nothing, so it has no
use for one. Knows nothing of MCP's methods and nothing of a transport.
"""

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, NamedTuple

import msgspec

from convmem import strict_json

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603

Id = int | str


class Request(NamedTuple):
    """Somebody wants an answer."""

    id: Id
    method: str
    params: dict[str, Any] | None


class Notification(NamedTuple):
    """Somebody tells something and wants no answer."""

    method: str
    params: dict[str, Any] | None


class Response(NamedTuple):
    """An answer to a question that was never asked."""


class Refused(Exception):
    """A JSON-RPC error as the answer: `code`, `message`, `data`; the id if it could be read; the status over HTTP."""

    def __init__(
        self, code: int, message: str, data: Any = None, *, request_id: Id | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.request_id, self.status = code, message, data, request_id, status


def read(text: bytes) -> Request | Notification | Response:
    """Return what one JSON text says; Refused if it says nothing that JSON-RPC knows."""
    try:
        value = strict_json.parse(text)
    except strict_json.MalformedJSON as error:
        raise Refused(PARSE_ERROR, f"Parse error: {error}") from None
    if type(value) is not dict:
        raise Refused(INVALID_REQUEST, "one JSON-RPC message is one object; batches are not taken")
    request_id: Any = value.get("id")
    if "id" in value and type(request_id) not in (int, str):
        raise Refused(INVALID_REQUEST, "an id is a string or an integer")
    method, params = value.get("method"), value.get("params")
    if value.get("jsonrpc") != "2.0":
        raise Refused(INVALID_REQUEST, 'a JSON-RPC message says "jsonrpc": "2.0"', request_id=request_id)
    if method is None and ("result" in value or "error" in value):
        return Response()
    if type(method) is not str:
        raise Refused(INVALID_REQUEST, "a method is a string", request_id=request_id)
    if params is not None and type(params) is not dict:
        raise Refused(INVALID_REQUEST, "params are an object", request_id=request_id)
    return Request(request_id, method, params) if "id" in value else Notification(method, params)


_encode = msgspec.json.Encoder().encode


def result(request_id: Id, value: Any) -> bytes:
    """The answer to a request, as compact JSON in UTF-8."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "result": value})


def error(refused: Refused, request_id: Id | None = None) -> bytes:
    """The refusal of a request or of a text that was none, as compact JSON in UTF-8."""
    said: dict[str, Any] = {"code": refused.code, "message": refused.message}
    if refused.data is not None:
        said["data"] = refused.data
    known = refused.request_id if request_id is None else request_id
    return _encode({"jsonrpc": "2.0", "id": known, "error": said})


def internal_error() -> Refused:
    """What a caller hears of a fault of ours: nothing but that there was one."""
    return Refused(INTERNAL_ERROR, "Internal error", status=200)


class Reporter:
    """Sends progress under a token. MCP wants it to rise and to end with the answer; what does not is not sent."""

    def __init__(self, token: Id, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._token = token
        self._send = send
        self._last = -inf

    async def report(self, done: float, total: float, sentence: str) -> None:
        """Tell the caller how far the call has come."""
        if done > self._last:
            self._last = done
            params = {"progressToken": self._token, "progress": done, "total": total, "message": sentence}
            await self._send(_encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))

    def end(self) -> None:
        """Send nothing more: the answer is there."""
        self._last = inf


def progress_token(params: dict[str, Any] | None) -> Id | None:
    """The token under which the caller wants to hear of progress, if it does."""
    meta = params.get("_meta") if params else None
    token = meta.get("progressToken") if type(meta) is dict else None
    return token if type(token) in (int, str) else None
