"""The HTTP side put together: one Starlette application, and the uvicorn server that serves it on every socket.

Routes, lifespan and the handlers of faults are Starlette's; the guard is its outermost middleware; MCP is the endpoint
of /mcp. One server serves TCP and the local socket, so both have the same paths.

uvicorn installs no signal handlers here: the daemon owns the signals, because the store must be closed after the last
answer. Nothing is retried and no header of a proxy is believed except X-Forwarded-Host of a trusted one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from convmem.limits import KEEP_ALIVE_S, STOP_GRACE_S
from convmem.transport import jsonrpc, loading
from convmem.transport.capture import Capture
from convmem.transport.front import Front
from convmem.transport.gate import Gate, Settings
from convmem.transport.guard import Guard
from convmem.transport.operations import Admin, Export, Import
from convmem.transport.wire import HeadBoundProtocol

if TYPE_CHECKING:
    from convmem.catalog import Catalog
    from convmem.transport.protocol import Kernel

STATUS_CODES = {"ok": 200, "degraded": 200, "stopping": 503, "failed": 503}
CODES = {404: "NOT_FOUND", 405: "VALIDATION_ERROR"}


def build(
    load_catalog: "Callable[[], Catalog]",
    gate: Gate,
    settings: Settings,
    load_protocol: "Callable[[], Kernel] | None" = None,
) -> Starlette:
    """Return the application. `load_catalog` and `load_protocol` (which imports the SDK) are run in a thread once the
    application starts.
    """
    waiting = loading.Loading(load_protocol or loading.kernel(load_catalog, gate))
    front = Front(waiting, settings.default_profile)

    async def healthz(_: Request) -> Response:
        status = gate.status()
        return JSONResponse({"status": status}, STATUS_CODES[status], {"cache-control": "no-store"})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(waiting.run())
            yield

    application = Starlette(
        routes=[
            Route("/mcp", front),
            Route("/mcp/", front),
            Route("/mcp/{profile}", front),
            Route("/admin/{verb}", Admin(gate, front.bodies)),
            Route("/capture", Capture(gate, front.bodies)),
            Route("/export", Export(gate)),
            Route("/import", Import(gate)),
            Route("/healthz", healthz),
        ],
        middleware=[Middleware(Guard, settings)],
        exception_handlers={HTTPException: _no_such, Exception: _fault},
        lifespan=lifespan,
    )
    application.router.redirect_slashes = False
    return application


async def _no_such(_: Request, error: Exception) -> Response:
    """A path or method that is not there, in the shape of all errors."""
    assert isinstance(error, HTTPException)
    sentences = {404: "there is nothing at this path", 405: "this path does not take this method"}
    facts = {"code": CODES[error.status_code], "message": sentences[error.status_code], "retryable": False}
    return JSONResponse({"error": facts}, error.status_code, error.headers)


async def _fault(request: Request, _: Exception) -> Response:
    """A fault of ours, without a word of it. The server logs the trace and closes the connection."""
    closing = {"connection": "close"}
    if "request_id" in request.scope:
        body = jsonrpc.error(jsonrpc.internal_error(), request.scope["request_id"])
        return Response(body, 200, closing, "application/json")
    facts = {"code": "INTERNAL_ERROR", "message": "Internal error", "retryable": False}
    return JSONResponse({"error": facts}, 500, closing)


class Server(uvicorn.Server):
    """Serves one application on the sockets it is given: `await serve(sockets=[tcp, unix])`."""

    def __init__(self, application: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=HeadBoundProtocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=STOP_GRACE_S,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The daemon owns the signals."""
        yield

    def stop(self) -> None:
        """Take nothing more, finish what is in hand within STOP_GRACE_S, then return from `serve`."""
        self.should_exit = True
