"""What takes long, over HTTP: a verb that says how far it is, a file that comes, a file that goes.

The daemon never lets a stream be silent for long, so a silence here means that nobody is there any more. Only behind a
file that was sent it may think as long as it needs. A stream that ends without its end is no answer: whoever reads it
is told, and must not keep what came.
"""

import itertools
import json
import re
import select
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any

from convmem.cli import journal
from convmem.cli.asking import CallFailed
from convmem.cli.call import ANSWER_BYTES_MAX, NOBODY, Place, connection_to, decoded, headers_for, refusal
from convmem.cli.progress import Tell

PIECE_BYTES = 256 * 1024
OK = 200
NDJSON = "application/x-ndjson"
# A URL may name the MCP endpoint, as the daemon's own line does; what stands before that is a proxy's.
MCP = re.compile("/mcp(/[^/]*)?$")
GOES_ON = "the daemon goes on with it"


def ask(place: Place, verb: str, arguments: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """Have the daemon do a verb of /admin; return its facts.

    Raises as call() does: one of NOBODY, the ConvmemError that the daemon refuses with, CallFailed for the rest.
    """
    connection, prefix = _connected(place)
    body = json.dumps(arguments).encode()
    with _left(GOES_ON), _requested(place, connection, "POST", f"{prefix}/admin/{verb}", body) as response:
        if response.status != OK:
            raise _refused(place, response)
        for line in _lines(place, response):
            if not isinstance(line, dict):
                break
            if isinstance(progress := line.get("progress"), dict):
                tell(progress.get("done", 0), progress.get("total", 0), str(progress.get("message", "")))
            elif isinstance(result := line.get("result"), dict):
                return result
            elif isinstance(error := line.get("error"), dict):
                raise refusal(error)
            else:
                break
    raise CallFailed(f"{place} broke off in the middle: whether it was done is unknown")


def download(place: Place, path: str) -> Iterator[bytes]:
    """The body of an answer in pieces of PIECE_BYTES, the last one smaller; raises as ask() does.

    CallFailed comes from the iterator if the answer broke off.
    """
    connection, prefix = _connected(place)
    response = _requested(place, connection, "GET", prefix + path)
    if response.status != OK:
        with response:
            raise _refused(place, response)
    pieces = _pieces(place, response)
    # The first piece is read here, so that whoever drops the iterator unread closes the connection with it.
    return itertools.chain((next(pieces, b""),), pieces)


def _pieces(place: Place, response: HTTPResponse) -> Iterator[bytes]:
    with response:
        # A body that ends with its connection would look whole wherever it is cut.
        is_delimited = response.chunked or response.length is not None
        try:
            while is_delimited and (piece := response.read(PIECE_BYTES)):
                yield piece
        except (OSError, HTTPException) as error:
            raise CallFailed(f"{place} broke off in the middle: {_said(error)}") from None
        if not is_delimited or response.length:
            raise CallFailed(f"{place} broke off in the middle")


def upload(place: Place, path: str, pieces: Iterable[bytes], size: int, tell: Tell) -> dict[str, Any]:
    """POST `size` bytes; return the facts that the daemon answers. Raises as ask() does.

    A daemon that has seen enough answers before all is sent; the rest is then kept back.
    """
    connection, prefix = _connected(place)
    try:
        connection.putrequest("POST", prefix + path)
        for name, value in {**headers_for(place), "Content-Type": NDJSON, "Content-Length": str(size)}.items():
            connection.putheader(name, value)
        connection.endheaders()
        with _left(f"{GOES_ON} if it has all of the file"):
            _send(connection, pieces, size, tell)
        connection.sock.settimeout(None)
        with _left(GOES_ON):
            tell(0, 0, "waiting for the answer")
            with connection.getresponse() as response:
                if response.status != OK:
                    raise _refused(place, response)
                facts = decoded(response.read(ANSWER_BYTES_MAX))
    except (OSError, HTTPException) as error:
        raise CallFailed(f"no answer from {place}: {_said(error)}") from None
    finally:
        connection.close()
    if not isinstance(facts, dict):
        raise CallFailed(f"{place} answered {OK} without facts")
    return facts


@contextmanager
def _left(sentence: str) -> Iterator[None]:
    """Say what becomes of the work if a signal ends the waiting for it."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        journal.refusal(sentence)
        raise


def _send(connection: HTTPConnection, pieces: Iterable[bytes], size: int, tell: Tell) -> None:
    """Send until all is sent or the daemon has answered. What keeps `pieces` from coming comes through."""
    sent = 0
    for piece in pieces:
        if _has_answered(connection):
            return
        try:
            connection.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            return  # Its answer may lie here already.
        sent += len(piece)
        tell(sent, size, "sending")


def _has_answered(connection: HTTPConnection) -> bool:
    """True once there is something to read. Not asked of TLS, which has words of its own at any time."""
    return not isinstance(connection, HTTPSConnection) and bool(select.select([connection.sock], [], [], 0)[0])


def _connected(place: Place) -> tuple[HTTPConnection, str]:
    """An open connection, and what stands before the daemon's paths there. Raises one of NOBODY, or CallFailed."""
    connection, path = connection_to(place)
    try:
        connection.connect()
        # Where an answer may take as long as it needs, a machine that has gone is noticed below HTTP.
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    except OSError as error:
        connection.close()
        if place.socket is not None and isinstance(error, NOBODY):
            raise
        raise CallFailed(f"no answer from {place}: {_said(error)}") from None
    return connection, MCP.sub("", path)


def _requested(
    place: Place, connection: HTTPConnection, method: str, path: str, body: bytes | None = None
) -> HTTPResponse:
    """Send a request, with JSON for a body; return the answer as soon as it begins. The connection is closed with
    it.
    """
    headers = headers_for(place) | {"Connection": "close"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
    except (OSError, HTTPException) as error:
        connection.close()
        raise CallFailed(f"no answer from {place}: {_said(error)}") from None
    if connection.sock is not None:
        # The answer goes on reading; with its end the socket is closed, whether the other side had promised so or not.
        connection.sock.close()
    return response


def _lines(place: Place, response: HTTPResponse) -> Iterator[Any]:
    """Each whole line as its value; ends where the answer breaks off."""
    try:
        while (line := response.readline(ANSWER_BYTES_MAX)).endswith(b"\n"):
            yield decoded(line)
    except (OSError, HTTPException) as error:
        raise CallFailed(f"{place} broke off in the middle: {_said(error)}") from None


def _refused(place: Place, response: HTTPResponse) -> Exception:
    """What an answer that is not 200 says."""
    answer = decoded(response.read(ANSWER_BYTES_MAX))
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("code"), str):
        return CallFailed(f"{place} answered {response.status} {response.reason}, which is no answer of convmem")
    return refusal({"message": response.reason, **error})


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
