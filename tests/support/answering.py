"""A real HTTP server that is no daemon: it answers what the test says, and keeps what it was sent."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """An answer. `claimed` is the Content-Length it names, where that is not the body's."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}
    claimed: int | None = None


class Asked(NamedTuple):
    """A request; names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


class Answering:
    """The server: `reply` says what is answered to a request, `asked` is what came in, in order."""

    def __init__(self, reply: Callable[[Asked], Reply]) -> None:
        self.reply = reply
        self.asked: list[Asked] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def events(self) -> list[dict[str, Any]]:
        """Every event that was sent, as often as it was sent."""
        return [event for asked in self.asked if asked.path == "/capture" for event in asked.body["events"]]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        own = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.path, headers, json.loads(self.rfile.read(int(headers["content-length"]))))
                own.asked.append(asked)
                reply = own.reply(asked)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                length = len(reply.body) if reply.claimed is None else reply.claimed
                self.send_header("Content-Length", str(length))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: Any) -> None:
                """Nothing is logged."""

        return Handler


@contextmanager
def answering(reply: Callable[[Asked], Reply]) -> Iterator[Answering]:
    """A server that answers inside the block."""
    server = Answering(reply)
    try:
        yield server
    finally:
        server.close()


def stored(asked: Asked) -> Reply:
    """What a daemon says that has stored everything."""
    return Reply(200, json.dumps({"stored": len(asked.body["events"]), "replayed": 0, "dropped": []}).encode())
