"""What hooks send: POST /capture, a JSON object of events, answered once they are durable."""

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.types import Receive, Scope, Send

from convmem.domain import Origin
from convmem.errors import ConvmemError
from convmem.transport import calls, requests
from convmem.transport.bodies import Bodies
from convmem.transport.front import folded
from convmem.transport.gate import Gate
from convmem.transport.guard import Refusal, refuse


class Capture:
    """ASGI endpoint of /capture; `bodies` bounds what comes in, together with all other requests."""

    def __init__(self, gate: Gate, bodies: Bodies) -> None:
        self._gate = gate
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = folded(scope["headers"])
        refusal = requests.refusal(scope, headers, "POST", requests.JSON_TYPES)
        refusal = refusal or requests.forbidden(scope, needed="write")
        body = refusal or await self._bodies.read(headers, receive)
        if body is None:
            return
        arguments = body if isinstance(body, Refusal) else requests.arguments(body, headers)
        if isinstance(arguments, Refusal):
            await refuse(scope, send, arguments)
            return
        origin = requests.origin(scope, headers)
        with calls.told("capture", origin) as call:
            await self._answer(arguments, origin, send, call)

    async def _answer(self, arguments: Mapping[str, Any], origin: Origin, send: Send, call: calls.Call) -> None:
        try:
            facts = await self._gate.capture(arguments, origin)
        except ConvmemError as error:
            call.outcome = error.code
            await requests.fail(send, error)
        except asyncio.CancelledError:  # only the end of the grace at a stop cancels a request
            call.outcome = requests.stopping().code
            await requests.fail(send, requests.stopping())
        else:
            call.outcome = "ok"
            await requests.tell(send, facts)
