"""What operators ask over HTTP: /admin/{verb}, /export and /import, each a stream of lines.

    POST /admin/{verb}   a JSON object -> {"progress": {done, total, message}} …, then one {"result": …} or {"error": …}
    GET  /export         -> JSON Lines
    POST /import         JSON Lines -> facts

Long work is never held up by whoever waits for it: a line of progress that a slow reader does not take at once is
dropped. Nor is a reader waited for without end: an export keeps one state of the store alive while it runs, so a
connection that takes nothing for BODY_SILENCE_S_MAX is cut. What breaks off is seen to break off, since the connection
ends without the end of the body. A refusal that comes before the first line is told by its status.

Rejected: a job that one request starts and others ask for. It would need ids, and a memory of what is over.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from convmem.domain import Origin
from convmem.errors import ContentTooLarge, ConvmemError, Invalid
from convmem.limits import (
    BODY_SILENCE_S_MAX,
    IMPORT_BYTES_MAX,
    PROGRESS_INTERVAL_MS_MIN,
    PROGRESS_SILENCE_S_MAX,
)
from convmem.transport import calls, requests
from convmem.transport.bodies import TOO_SLOW, Bodies
from convmem.transport.front import folded
from convmem.transport.gate import Gate, Verb
from convmem.transport.guard import NOT_THERE, Refusal, refuse
from convmem.transport.requests import CONNECTION, fail

STREAM = [
    (b"content-type", b"application/x-ndjson"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]
IMPORT_TOO_LARGE = Refusal(413, "CONTENT_TOO_LARGE", f"an import is at most {IMPORT_BYTES_MAX} bytes")

Outcome = Mapping[str, Any] | ConvmemError


class Admin:
    """ASGI endpoint of /admin/{verb}; `bodies` bounds what comes in, together with all other requests."""

    def __init__(self, gate: Gate, bodies: Bodies) -> None:
        self._gate = gate
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = folded(scope["headers"])
        verb = self._gate.verbs.get(scope["path_params"]["verb"])
        refusal = NOT_THERE if verb is None else requests.refusal(scope, headers, "POST", requests.JSON_TYPES)
        if verb is not None and refusal is None:
            refusal = requests.forbidden(scope, names_paths=verb.names_paths)
        body = refusal or await self._bodies.read(headers, receive)
        if body is None:
            return
        arguments = body if isinstance(body, Refusal) else requests.arguments(body, headers)
        if isinstance(arguments, Refusal):
            await refuse(scope, send, arguments)
            return
        assert verb is not None
        lines = Lines(scope, receive, send)
        origin = requests.origin(scope, headers)
        with calls.told(f"/admin/{scope['path_params']['verb']}", origin) as call:
            outcome = await _outcome(verb, arguments, origin, lines)
            call.outcome = outcome.code if isinstance(outcome, ConvmemError) else "ok"
            await lines.end(outcome)


async def _outcome(verb: Verb, arguments: Mapping[str, Any], origin: Origin, lines: "Lines") -> Outcome:
    """What came of the verb. It is not told when the caller goes away: what it has begun it ends."""
    outcome: Outcome
    try:
        async with asyncio.TaskGroup() as tasks:
            beat = tasks.create_task(lines.beat())
            try:
                outcome = await verb.run(arguments, lines.progress, origin)
            except ConvmemError as error:
                outcome = error
            finally:
                beat.cancel()
    except asyncio.CancelledError:  # only the end of the grace at a stop cancels a request
        return requests.stopping()
    return outcome


class Lines:
    """The answer to one verb: lines, begun with the first of them."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._turn = asyncio.Lock()
        self._clock = asyncio.get_running_loop().time
        self._due = self._clock()
        self._latest: Mapping[str, Any] = {"done": 0, "total": 0, "message": "at work"}
        self._has_started = self._has_ended = False

    async def progress(self, done: float, total: float, sentence: str) -> None:
        """Tell how far the work has come, unless that was done just now or the reader is slow."""
        self._latest = {"done": done, "total": total, "message": sentence}
        if self._clock() >= self._due:
            await self._offer()

    async def beat(self) -> None:
        """Say again and again how far the work has come: who hears nothing would think that nobody is there."""
        while True:
            await asyncio.sleep(PROGRESS_SILENCE_S_MAX)
            await self._offer()

    async def _offer(self) -> None:
        """Send the latest line if the connection takes it at once."""
        try:
            async with asyncio.timeout(0), self._turn:
                if not self._has_ended:
                    await self._write(_line("progress", self._latest), more=True)
                    self._due = self._clock() + PROGRESS_INTERVAL_MS_MIN / 1000
        except TimeoutError:
            return

    async def end(self, outcome: Outcome) -> None:
        """Send what came of it, and wait a while for it to be taken."""
        try:
            async with asyncio.timeout(BODY_SILENCE_S_MAX), self._turn:
                self._has_ended = True
                if not isinstance(outcome, ConvmemError):
                    await self._write(_line("result", outcome), more=False)
                elif self._has_started:
                    await self._write(_line("error", outcome.facts()), more=False)
                else:
                    await fail(self._send, outcome)
        except TimeoutError:
            await requests.cut(self._scope, self._receive, "nobody read the answer")

    async def _write(self, line: bytes, *, more: bool) -> None:
        if not self._has_started:
            await self._send({"type": "http.response.start", "status": 200, "headers": STREAM})
            self._has_started = True
        await self._send({"type": "http.response.body", "body": line, "more_body": more})


def _line(name: str, facts: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({name: facts}) + b"\n"


class Export:
    """ASGI endpoint of /export."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = folded(scope["headers"])
        refusal = requests.refusal(scope, headers, "GET") or requests.forbidden(scope)
        if refusal:
            await refuse(scope, send, refusal)
            return
        with calls.told("/export", requests.origin(scope, headers)) as call:
            reason = await self._answer(scope, send, call)
        if reason is not None:
            await requests.cut(scope, receive, reason)

    async def _answer(self, scope: Scope, send: Send, call: calls.Call) -> str | None:
        """Why the answer must be broken off, if it must."""
        async with aclosing(self._gate.export()) as pieces:
            try:
                first = await anext(pieces, b"")
            except ConvmemError as error:
                call.outcome = error.code
                await fail(send, error)
                return None
            except asyncio.CancelledError:
                call.outcome = requests.stopping().code
                await fail(send, requests.stopping())
                return None
            reason = await _stream(first, pieces, scope, send)
        call.outcome = "ok" if reason is None else calls.UNANSWERED
        return reason


async def _stream(piece: bytes, pieces: AsyncGenerator[bytes], scope: Scope, send: Send) -> str | None:
    """Send a piece and all that come; why it must be broken off, None if the end was reached or nobody is there."""
    connection = scope["extensions"][CONNECTION]
    following: bytes | None = piece
    try:
        await _taken(send({"type": "http.response.start", "status": 200, "headers": STREAM}))
        while following is not None and not connection["is_lost"]():
            await _taken(send({"type": "http.response.body", "body": following, "more_body": True}))
            following = await anext(pieces, None)
        await _taken(send({"type": "http.response.body", "body": b"", "more_body": False}))
    except ConvmemError as error:
        return f"{error.code}: {error.message}"
    except TimeoutError:
        return f"nobody read for {BODY_SILENCE_S_MAX} seconds"
    except asyncio.CancelledError:
        return "the daemon is stopping"
    return None


async def _taken(sending: Awaitable[None]) -> None:
    async with asyncio.timeout(BODY_SILENCE_S_MAX):
        await sending


class Import:
    """ASGI endpoint of /import."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = folded(scope["headers"])
        judged = requests.refusal(scope, headers, "POST", requests.LINES_TYPES, requests.IMPORT_QUERY)
        judged = judged or requests.forbidden(scope)
        if judged is None and requests.declared(headers) > IMPORT_BYTES_MAX:
            judged = IMPORT_TOO_LARGE
        arguments = judged or requests.query(scope, requests.IMPORT_QUERY)
        if isinstance(arguments, Refusal):
            await refuse(scope, send, arguments)
            return
        with calls.told("/import", requests.origin(scope, headers)) as call:
            await self._answer(Incoming(receive), arguments, scope, send, call)

    async def _answer(
        self, incoming: "Incoming", arguments: Mapping[str, str], scope: Scope, send: Send, call: calls.Call
    ) -> None:
        try:
            async with aclosing(incoming.pieces()) as pieces:
                facts = await self._gate.take(pieces, arguments)
        except ConvmemError as error:
            call.outcome = error.code
            if incoming.refusal is not None:
                await refuse(scope, send, incoming.refusal)
            elif not incoming.is_gone:
                await fail(send, error)
        except asyncio.CancelledError:
            call.outcome = requests.stopping().code
            await fail(send, requests.stopping())
        else:
            call.outcome = "ok"
            await requests.tell(send, facts)


class Incoming:
    """A body that is handed on as it comes. `is_gone`: the sender went away; `refusal`: how to answer it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_gone = False
        self.refusal: Refusal | None = None

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield what comes; raises where it does not come whole, so that nobody takes a part for all of it."""
        size = 0
        more = True
        while more:
            try:
                async with asyncio.timeout(BODY_SILENCE_S_MAX):
                    message = await self._receive()
            except TimeoutError:
                self.refusal = TOO_SLOW
                raise Invalid(TOO_SLOW.sentence) from None
            if message["type"] == "http.disconnect":
                self.is_gone = True
                raise Invalid("whoever sent the file went away before its end")
            piece = message.get("body", b"")
            size += len(piece)
            if size > IMPORT_BYTES_MAX:
                self.refusal = IMPORT_TOO_LARGE
                raise ContentTooLarge(IMPORT_TOO_LARGE.sentence, bytes_max=IMPORT_BYTES_MAX)
            if piece:
                yield piece
            more = message.get("more_body", False)
