"""A small HTTP server that takes what hooks send, as a daemon would, or misbehaves as it is told.

Real sockets and threads; it keeps what came, so that a test can say what was sent, in which order and how often.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

OPEN_S = 10
Answer = Callable[[Mapping[str, Any]], bytes]


def response(status: int, body: bytes = b"{}", *headers: str) -> bytes:
    """A whole answer that says its length."""
    lines = [f"HTTP/1.1 {status} So", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def refusal(status: int, *headers: str) -> Answer:
    """What refuses everything."""
    return lambda body: response(status, b'{"error":{"code":"X","message":"x"}}', *headers)


def saying(data: bytes) -> Answer:
    """What answers with these bytes, whatever was asked."""
    return lambda body: data


class HookServer:
    """Listens from the start. `answer` makes an answer of each body, after `wait_s`; `events` are those taken, once
    each in the order of their first arrival, `bodies` all that came, `heads` the lines before each.
    """

    def __init__(self, unix: Path | None = None) -> None:
        self.listener = socket.socket(socket.AF_UNIX) if unix else socket.create_server(("127.0.0.1", 0))
        if unix:
            self.listener.bind(str(unix))
            self.listener.listen(64)
        self.answer: Answer = self.taken
        self.wait_s = 0.0
        self.events: dict[tuple[str, str], dict[str, Any]] = {}
        self.bodies: list[dict[str, Any]] = []
        self.heads: list[bytes] = []
        self.has_ended = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        """Where it listens, if on TCP."""
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def contents(self) -> list[str]:
        """What the events say, in order."""
        return [event["content"] for event in self.events.values()]

    def taken(self, body: Mapping[str, Any]) -> bytes:
        """Store each event once, drop those whose content says so, refuse a request of which nothing is left."""
        refused = [place for place, event in enumerate(body["events"]) if event["content"].startswith("bad")]
        if refused and len(refused) == len(body["events"]):
            return response(400)
        stored = 0
        for place, event in enumerate(body["events"]):
            if place not in refused:
                key = (event["session_id"], event["event_id"])
                stored += key not in self.events
                self.events.setdefault(key, event)
        dropped = [{"index": place, "code": "VALIDATION_ERROR", "message": "bad"} for place in refused]
        replayed = len(body["events"]) - len(refused) - stored
        return response(200, json.dumps({"stored": stored, "replayed": replayed, "dropped": dropped}).encode())

    def serve(self) -> None:
        """Answer until the listener is closed."""
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self._threads.append(threading.Thread(target=self._serve_one, args=(connection,)))
                self._threads[-1].start()

    def join(self) -> None:
        """Wait for those that are answering."""
        for thread in self._threads:
            thread.join(OPEN_S)

    def _serve_one(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):
            connection.settimeout(OPEN_S)
            data = b""
            while b"\r\n\r\n" not in data:
                piece = connection.recv(65536)
                if not piece:
                    return
                data += piece
            head, _, sent = data.partition(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            while len(sent) < length:
                piece = connection.recv(65536)
                if not piece:
                    return
                sent += piece
            self.has_ended.wait(self.wait_s)
            body = json.loads(sent)
            with self._lock:
                self.heads.append(head)
                self.bodies.append(body)
                answer = self.answer(body)
            connection.sendall(answer)


@contextmanager
def hook_server(unix: Path | None = None) -> Iterator[HookServer]:
    """A server that runs inside the block."""
    server = HookServer(unix)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.has_ended.set()
        # Closing alone does not wake whoever waits in accept.
        with suppress(OSError):
            server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()
        thread.join()
        server.join()
