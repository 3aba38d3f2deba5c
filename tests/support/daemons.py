"""Real daemons in real processes, and the smallest client that speaks to them: raw JSON-RPC over HTTP."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

START_S = 20
STOP_S = 10


class Journal(threading.Thread):
    """Collects what a process writes to stderr until that ends."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__()
        assert process.stderr is not None
        self._stderr = process.stderr
        self.text = ""

    def run(self) -> None:
        with self._stderr:
            self.text = self._stderr.read()


@dataclass
class Daemon:
    """One `convmem serve`; start() waits for the line it prints when it listens."""

    data_dir: Path
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[str] | None = None
    line: str = ""
    before_start: Callable[[], None] | None = None
    clients: list["RawClient"] = field(default_factory=list)
    _journal: Journal = field(init=False)

    def start(self) -> "Daemon":
        command = [sys.executable, "-m", "convmem", "serve", "--data-dir", str(self.data_dir)]
        self.process = subprocess.Popen(
            [*command, "--bind", f"127.0.0.1:{self.port}", *self.arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd(), **self.environment},
            preexec_fn=self.before_start,
        )
        assert self.process.stdout is not None
        # Read all the time, as whoever runs a daemon does: its journal may be long.
        self._journal = Journal(self.process)
        self._journal.start()
        self.line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", self.line)
        assert found, self.line + self.finish()[1]
        self.port = int(found[1])
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def client(self, profile: str = "", **headers: str) -> "RawClient":
        """A client of this daemon; closed with it."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.clients.append(RawClient(f"{self.url}/{profile}" if profile else self.url, headers=named))
        return self.clients[-1]

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would: no handler runs."""
        self.send(signal.SIGKILL)
        self.finish()

    def finish(self) -> tuple[int, str]:
        """Wait for its end; return exit status and what it wrote to stderr."""
        assert self.process is not None
        status = self.process.wait(timeout=STOP_S)
        self._journal.join(STOP_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status, self._journal.text

    def stop(self) -> tuple[int, str]:
        """End it in order; return exit status and what it wrote to stderr."""
        self.send(signal.SIGTERM)
        return self.finish()


@contextmanager
def daemon(
    data_dir: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    before_start: Callable[[], None] | None = None,
) -> Iterator[Daemon]:
    """A daemon that runs inside the block and is gone behind it. `before_start` is run in its process."""
    running = Daemon(data_dir, arguments, environment or {}, before_start=before_start).start()
    try:
        yield running
    finally:
        if running.process is not None and running.process.poll() is None:
            running.kill()
        running.finish()
        for client in running.clients:
            client.http.close()


class Refused(Exception):
    """A failed tool result: the error's facts."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error)
        self.code = str(error["code"])
        self.error = error


class RawClient:
    """tools/call without `initialize`, as a hook or a script would send it."""

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 20) -> None:
        self.url = url
        self.http = httpx.Client(
            headers={"accept": "application/json, text/event-stream", **(headers or {})}, timeout=timeout_s
        )
        self._numbers = itertools.count(1)

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        answer = self.http.post(self.url, json=body)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def stream(self, method: str, params: Mapping[str, Any], token: str) -> tuple[list[Any], dict[str, Any]]:
        """Ask for progress under a token: the params of each report, in order, and the result."""
        named = {**params, "_meta": {"progressToken": token}}
        body = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": named}
        answer = self.http.post(self.url, json=body)
        answer.raise_for_status()
        if answer.headers["content-type"] == "application/json":
            return [], answer.json()["result"]
        *reports, last = [
            json.loads(line.removeprefix("data: ")) for line in answer.text.split("\n") if line.startswith("data: ")
        ]
        assert all(report["params"].pop("progressToken") == token for report in reports)
        return [report["params"] for report in reports], last["result"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured answer of a tool; Refused if it is a failed result."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})["result"]
        facts: dict[str, Any] = result["structuredContent"]
        if result.get("isError"):
            raise Refused(facts["error"])
        text = result["content"][0]["text"]
        # Tools of memory answer in prose.
        assert not text.startswith("{") or json.loads(text) == facts
        return facts

    def write(self, content: str, **more: Any) -> dict[str, Any]:
        return self.call("write_message", **{"session_id": "s", "role": "user", "content": content} | more)

    def history(self, session_id: str = "s") -> list[dict[str, Any]]:
        """All messages of a session, page by page."""
        messages: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            page = self.call("read_messages", view="history", session_id=session_id, limit=500, **cursor)
            messages += page["messages"]
            if not page.get("next_cursor"):
                return messages
            cursor = {"cursor": page["next_cursor"]}


def complaints(data_dir: Path) -> list[str]:
    """What `convmem check` finds wrong with a store, beside a running daemon or without one."""
    from convmem import config
    from convmem import daemon as composition

    found: list[str] = composition.check(config.load({"data_dir": str(data_dir)}, {}, data_dir))["violations"]
    return found


def exchange(port: int, *parts: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    """Send bytes as they are and read until the other end closes: status, headers by lower-case name, body."""
    with socket.create_connection(("127.0.0.1", port), timeout=STOP_S) as connection:
        for part in parts:
            connection.sendall(part)
        answer = connection.makefile("rb").read()
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    headers = dict(line.lower().split(b": ", 1) for line in lines)
    return int(first.split()[1]), headers, body


def posting(body: bytes, *lines: bytes, path: str = "/mcp") -> bytes:
    """A POST with these header lines behind its own; the connection ends with the answer."""
    own = [f"POST {path} HTTP/1.1".encode(), b"content-type: application/json", b"connection: close"]
    return b"\r\n".join([*own, b"content-length: %d" % len(body), *lines, b"", body])


def wait_until_listening(port: int) -> None:
    """Return once /healthz answers; used where a daemon is started by somebody else."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.01)
    raise AssertionError("nothing listens")
