"""Whether the daemon works: a request through its front door, and a turn of its writer. Not whether a loop turns.

The request goes to the local socket, past no guard but through all else that an agent's request passes: the listener,
HTTP, the MCP kernel and the list of tools. Where there is no local socket only the writer is asked.
"""

from convmem.domain import Origin
from convmem.engine import Engine
from convmem.errors import Busy, ConvmemError
from convmem.health import reasons
from convmem.hooks.target import Address
from convmem.notifying import NotWorking
from convmem.transport.http_client import Lost, Unreachable, connect

ORIGIN = Origin("local", "daemon")
HEADERS = [(b"Host", b"localhost"), (b"Content-Type", b"application/json"), (b"Connection", b"close")]
QUESTION = b'{"jsonrpc":"2.0","id":0,"method":"tools/list"}'
ANSWERED = b'"result"'


async def opened(engine: Engine) -> str:
    """Come to an end once the store can be used. NotWorking if it never can."""
    while True:
        try:
            await engine.ready()
        except Busy:
            continue
        except ConvmemError as error:
            raise NotWorking(error.code) from error
        return "open"


async def works(engine: Engine, socket: str | None) -> str:
    """How the daemon is, in a sentence, once it has answered. NotWorking."""
    try:
        writer, _ = await engine.ready()
        await writer.alone(lambda store: None)
        if socket is not None:
            await _ask(socket)
    except ConvmemError as error:
        raise NotWorking(error.code) from error
    found = reasons(engine)
    return f"degraded: {found[0]}" if found else "serving"


async def _ask(socket: str) -> None:
    """Ask for the list of tools as an agent would. NotWorking."""
    try:
        connection = await connect(Address(socket=socket))
        try:
            head = await connection.post(b"/mcp", HEADERS, QUESTION)
            body = b"".join([piece async for piece in connection.body()])
        finally:
            connection.close()
    except (Unreachable, Lost) as error:
        raise NotWorking(str(error)) from error
    if head.status != 200 or ANSWERED not in body:
        raise NotWorking(f"the front door answered {head.status}")
