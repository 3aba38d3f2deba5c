"""MCP over HTTP (streamable HTTP): one POST, one answer; the endpoint of /mcp and /mcp/{profile}.

Stateless: no session is issued and one that arrives is ignored, so a client never notices a restart. An answer is
plain JSON and turns into a stream of events only when the call really reports progress: many clients send a progress
token with every call, and a stream costs twice as much.

A client that goes away cancels nothing. What it began to write is written, and reads are bounded anyway; watching
every connection for its end would cost more than the reads that it could save.
"""

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from starlette.types import Receive, Scope, Send

from convmem.domain import Origin
from convmem.transport import jsonrpc
from convmem.transport.bodies import Bodies
from convmem.transport.guard import NOT_THERE, Refusal, refuse
from convmem.transport.loading import Loading
from convmem.transport.origins import label

if TYPE_CHECKING:
    from convmem.transport.protocol import Kernel

JSON = (b"content-type", b"application/json")
EVENT_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
ONLY_POST = Refusal(405, "VALIDATION_ERROR", "this path takes POST only", ((b"allow", b"POST"),))
NOT_JSON = Refusal(415, "VALIDATION_ERROR", "the body must be application/json, not compressed")
NOT_ACCEPTABLE = Refusal(
    406, "VALIDATION_ERROR", "answers are application/json or text/event-stream, and Accept admits neither"
)


class Accepts(NamedTuple):
    """Which forms of an answer the client takes."""

    json: bool
    stream: bool


class Front:
    """ASGI endpoint; the guard has let the request through before."""

    def __init__(self, loading: Loading, default_profile: str) -> None:
        self._loading = loading
        self.bodies = Bodies()
        self._default_profile = default_profile

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked, caller = scope["path_params"].get("profile"), scope["caller"]
        profile = asked or caller.profile or self._default_profile
        headers = folded(scope["headers"])
        accepts = accepted(headers.get(b"accept", b"*/*"))
        kernel = self._loading.kernel or await self._loading.wait()
        refusal = _refusal(profile in kernel.profiles, scope["method"], headers, accepts)
        if refusal is None and caller.profile not in (None, profile):
            refusal = Refusal(403, "FORBIDDEN", f"this token is for the profile {caller.profile}: its path is /mcp")
        body = refusal or await self.bodies.read(headers, receive)
        if body is None:
            return
        if isinstance(body, Refusal):
            await refuse(scope, send, body)
            return
        try:
            message = jsonrpc.read(body)
        except jsonrpc.Refused as refused:
            await respond(send, refused.status, jsonrpc.error(refused))
            return
        if isinstance(message, jsonrpc.Request):
            await self._answer(message, kernel, profile, headers, accepts, scope, send)
        else:
            # Nothing is kept between requests that a notification could change, and we never ask anything.
            await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})

    async def _answer(
        self,
        request: jsonrpc.Request,
        kernel: "Kernel",
        profile: str,
        headers: Mapping[bytes, bytes],
        accepts: Accepts,
        scope: Scope,
        send: Send,
    ) -> None:
        scope["request_id"] = request.id  # for the handler of faults
        reply = Reply(send, accepts)
        token = jsonrpc.progress_token(request.params) if accepts.stream else None
        reporter = None if token is None else jsonrpc.Reporter(token, reply.event)
        try:
            era = kernel.era(request, protocol_headers(headers))
            caller = scope["caller"]
            origin = Origin(caller.device, caller.transport, era.client or label(headers.get(b"user-agent", b"")))
            progress = reporter.report if reporter else None
            result = await kernel.answer(
                request, era, profile=profile, origin=origin, progress=progress, reach=caller.reach
            )
            status, text = 200, jsonrpc.result(request.id, result)
        except jsonrpc.Refused as refused:
            status, text = refused.status, jsonrpc.error(refused, request.id)
        if reporter:
            reporter.end()
        await reply.end(status, text)


def _refusal(is_profile: bool, method: str, headers: Mapping[bytes, bytes], accepts: Accepts) -> Refusal | None:
    if not is_profile:
        return NOT_THERE
    if method != "POST":
        return ONLY_POST
    if not any(accepts):
        return NOT_ACCEPTABLE
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    return None if content_type == b"application/json" and encoding == b"identity" else NOT_JSON


class Reply:
    """The answer to one POST: JSON, or a stream of events once there was one."""

    def __init__(self, send: Send, accepts: Accepts) -> None:
        self._send = send
        self._streams = not accepts.json
        self._has_started = False
        self._turn = asyncio.Lock()

    async def event(self, text: bytes) -> None:
        """Send one event if the client can take it at once, else drop it: a slow reader holds up nobody's work."""
        try:
            async with asyncio.timeout(0), self._turn:
                await self._event(text, more=True)
        except TimeoutError:
            return

    async def end(self, status: int, text: bytes) -> None:
        """Send the answer itself, and wait until the client has taken it."""
        async with self._turn:
            if self._streams or self._has_started:
                await self._event(text, more=False)
            else:
                await respond(self._send, status, text)

    async def _event(self, text: bytes, *, more: bool) -> None:
        if not self._has_started:
            await self._send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
            self._has_started = True
        body = b"event: message\r\ndata: %b\r\n\r\n" % text
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


async def respond(send: Send, status: int, text: bytes) -> None:
    """Send a whole JSON answer."""
    headers = [JSON, (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def folded(raw: list[tuple[bytes, bytes]]) -> Mapping[bytes, bytes]:
    """Headers by name, repeated ones as one list (RFC 9110 section 5.3): a doubled single value matches nothing."""
    headers = dict(raw)
    if len(headers) == len(raw):
        return headers
    return {name: b", ".join(value for key, value in raw if key == name) for name in headers}


def protocol_headers(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """The headers of the MCP protocol, blanks around the values stripped (the HTTP parser leaves them)."""
    return {
        name.decode("latin-1"): value.strip(b" \t").decode("latin-1")
        for name, value in headers.items()
        if name.startswith(b"mcp-")
    }


@lru_cache(maxsize=256)
def accepted(value: bytes) -> Accepts:
    """Which of our two forms an Accept header admits (RFC 9110 section 12.5.1)."""
    ranges = set()
    for entry in value.lower().split(b","):
        media, *parameters = (piece.strip() for piece in entry.split(b";"))
        if not any(piece.startswith(b"q=0") and not piece.strip(b"q=0.") for piece in parameters):
            ranges.add(media)
    return Accepts(
        json=not ranges.isdisjoint({b"*/*", b"application/*", b"application/json"}),
        stream=not ranges.isdisjoint({b"*/*", b"text/*", b"text/event-stream"}),
    )
