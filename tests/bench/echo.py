"""The servers that bench/calls.py compares, each with the one tool `echo`: python -m tests.bench.echo KIND PORT."""

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import uvicorn
from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def bare() -> Any:
    """A Starlette route that decodes and encodes with msgspec: the floor."""
    decoder, encoder = msgspec.json.Decoder(), msgspec.json.Encoder()

    async def echo(request: Request) -> Response:
        body = decoder.decode(await request.body())
        text = body["params"]["arguments"]["text"]
        result = {"content": [{"type": "text", "text": text}], "structuredContent": {"text": text}}
        answer = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        return Response(encoder.encode(answer), media_type="application/json")

    return Starlette(routes=[Route("/mcp", echo, methods=["POST"])])


def sdk() -> Any:
    """The SDK's own stateless application with JSON answers."""
    import mcp.types as types
    from mcp.server import Server

    tool = types.Tool(
        name="echo",
        description="Echo.",
        input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    )

    async def list_tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool])

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        text = (params.arguments or {})["text"]
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content={"text": text})

    server: Any = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    return server.streamable_http_app(stateless_http=True, json_response=True)


def ours() -> Any:
    """convmem's own front, guard and catalog around a tool that does nothing else."""
    from convmem.catalog import Catalog
    from convmem.domain import Access, Answer, Domain, Origin, Tool
    from convmem.inputs import Input
    from convmem.transport import http
    from convmem.transport.gate import Settings

    class Echo(Input):
        """Echo."""

        text: str = Field(description="What to say.")

    async def echo(access: Access, ask: Echo) -> Answer:
        return Answer({"text": ask.text})

    tool = Tool(name="echo", title="Echo", description="Echo.", input=Echo, handle=echo, scope="read", reads_only=True)

    class Gate:
        def access(self, origin: Origin, progress: Any, reach: Any) -> Any:
            return SimpleNamespace(origin=origin, reach=reach)

        def status(self) -> Any:
            return "ok"

    domain = Domain(name="echo", create="", deciders={}, appliers={}, tools=(tool,))
    profiles: Mapping[str, tuple[str, ...]] = {"core": ("echo",)}
    return http.build(lambda: Catalog([domain], profiles), Gate(), Settings())


def main(kind: str, port: int) -> None:
    application = {"bare": bare, "sdk": sdk, "ours": ours}[kind]()
    if kind == "ours":
        import socket

        import uvloop

        from convmem.transport.http import Server

        sockets = [socket.create_server(("127.0.0.1", port))]
        uvloop.run(Server(application).serve(sockets=sockets))
    else:
        uvicorn.run(application, host="127.0.0.1", port=port, log_level="error", access_log=False, ws="none")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
