"""What a request for an operation must be like, and how it is refused: by status, each error of ours with its own.

One place says what a caller may ask for (`forbidden`), one what an error is as a status (`STATUS`).
"""

import logging
from collections.abc import Mapping
from math import ceil
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope, Send

from convmem import strict_json
from convmem.domain import Origin
from convmem.errors import (
    CallerError,
    Conflict,
    ContentTooLarge,
    ConvmemError,
    DiskFault,
    Forbidden,
    OperatorError,
    RetryError,
    Stopping,
    StorageFull,
)
from convmem.limits import BUSY_RETRY_MS, SEEN_CODE_POINTS_MAX
from convmem.reach import Reach, reaches
from convmem.transport.front import JSON
from convmem.transport.guard import OVER_THE_SOCKET, Refusal
from convmem.transport.origins import label

logger = logging.getLogger("convmem")

# What the connection itself adds to a request: see wire.py.
CONNECTION = "convmem.connection"
JSON_TYPES = frozenset({b"", b"application/json"})
LINES_TYPES = frozenset({b"", b"application/x-ndjson", b"application/jsonl", b"application/octet-stream"})
IMPORT_QUERY = frozenset({"policy", "dry_run"})

# The status of an error: that of the nearest of its classes.
STATUS: Mapping[type[ConvmemError], int] = {
    CallerError: 400,
    Forbidden: 403,
    Conflict: 409,
    ContentTooLarge: 413,
    DiskFault: 500,
    RetryError: 503,
    StorageFull: 507,
    OperatorError: 500,
}


def refusal(
    scope: Scope,
    headers: Mapping[bytes, bytes],
    method: str,
    types: frozenset[bytes] = frozenset(),
    known: frozenset[str] = frozenset(),
) -> Refusal | None:
    """What is wrong with a request before its body is read; `types` are those that its body may have."""
    if scope["method"] != method:
        return Refusal(405, "VALIDATION_ERROR", f"this path takes {method} only", ((b"allow", method.encode()),))
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if types and (content_type not in types or encoding != b"identity"):
        wanted = " or ".join(sorted(name.decode() for name in types if name))
        return Refusal(415, "VALIDATION_ERROR", f"the body must be {wanted}, not compressed")
    asked = query(scope, known)
    return asked if isinstance(asked, Refusal) else None


def forbidden(scope: Scope, *, names_paths: bool = False, needed: Reach = "admin") -> Refusal | None:
    """What this caller may not ask for: what its token does not reach; and a path of the daemon's machine is named only
    by whoever is on that machine.
    """
    if not reaches(scope["caller"].reach, needed):
        return Refusal(403, "FORBIDDEN", f"this token may only {scope['caller'].reach}; this needs {needed}")
    if names_paths and scope["caller"].transport != OVER_THE_SOCKET.transport:
        return Refusal(403, "FORBIDDEN", "this names a path of the daemon's machine: ask over its local socket")
    return None


def query(scope: Scope, known: frozenset[str]) -> Mapping[str, str] | Refusal:
    """The arguments behind the question mark, each known and said once; what they say is for others to judge."""
    text: str = scope["query_string"].decode("latin-1")
    found: dict[str, str] = {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True) if text else []
    except ValueError:
        return _wrong("the query must be NAME=VALUE, joined by &")
    for name, value in pairs:
        if name not in known:
            return _wrong(f"{name[:SEEN_CODE_POINTS_MAX]!a} is no argument of this path")
        if name in found:
            return _wrong(f"{name} stands twice")
        found[name] = value
    return found


def origin(scope: Scope, headers: Mapping[bytes, bytes]) -> Origin:
    """Who asks, from where."""
    caller = scope["caller"]
    return Origin(caller.device, caller.transport, label(headers.get(b"user-agent", b"")))


def arguments(body: bytes, headers: Mapping[bytes, bytes]) -> dict[str, Any] | Refusal:
    """The JSON object of a body; no body is an empty one."""
    if not body:
        return {}
    if b"content-type" not in headers:
        return Refusal(415, "VALIDATION_ERROR", "the body must be application/json, not compressed")
    try:
        value = strict_json.parse(body)
    except strict_json.MalformedJSON as error:
        return _wrong(f"the body is not JSON: {error}")
    return value if isinstance(value, dict) else _wrong("the body must be a JSON object")


def declared(headers: Mapping[bytes, bytes]) -> int:
    """The size that the request says its body has; 0 if it says none."""
    size = headers.get(b"content-length", b"0")
    return int(size) if size.isdigit() else 0


def _wrong(sentence: str) -> Refusal:
    return Refusal(400, "VALIDATION_ERROR", sentence)


def status_of(error: ConvmemError) -> int:
    """The HTTP status that an error is told by."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


async def fail(send: Send, error: ConvmemError) -> None:
    """Answer with an error of ours: its status, its facts, and when to come again."""
    body = msgspec.json.encode({"error": error.facts()})
    headers = [JSON, (b"content-length", b"%d" % len(body))]
    if isinstance(error, RetryError):
        headers.append((b"retry-after", b"%d" % max(1, ceil(error.details["retry_after_ms"] / 1000))))
    await send({"type": "http.response.start", "status": status_of(error), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def stopping() -> Stopping:
    """What a request is told that the end of the grace at a stop meets."""
    return Stopping("the daemon is going down; its successor will answer", retry_after_ms=BUSY_RETRY_MS)


async def tell(send: Send, facts: Mapping[str, Any]) -> None:
    """Answer with facts."""
    body = msgspec.json.encode(facts)
    start = {"type": "http.response.start", "status": 200}
    await send({**start, "headers": [JSON, (b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def cut(scope: Scope, receive: Receive, reason: str) -> None:
    """End the connection in the middle of its answer, so that nobody takes what came for all of it."""
    logger.info("cut off %s: %s", scope["path"], reason)
    scope["extensions"][CONNECTION]["abort"]()
    # The server notices in the loop's next turns; until then it would take this for a fault of ours.
    while (await receive())["type"] != "http.disconnect":
        pass
