"""`convmem stdio` as a real process, and a client that writes lines to it and waits for each answer with a deadline."""

import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from tests.support.source import REPOSITORY

ANSWER_S = 2
END_S = 10


def strictly(text: bytes) -> Any:
    """The value of a JSON text; ValueError for what only Python would take."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(constant)

    return json.loads(text.decode("utf-8"), parse_constant=refuse)


class StdioClient:
    """One process; everything that it writes to stdout is kept in `lines`, without line ends."""

    def __init__(
        self,
        data_dir: Path | None,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        reads_journal: bool = True,
    ) -> None:
        where = () if data_dir is None else ("--data-dir", str(data_dir))
        command = [sys.executable, "-W", "default", "-m", "convmem", "stdio", *where, *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            env={"PATH": os.environ["PATH"], **(environment or {})},
        )
        self.data_dir = data_dir
        self.lines: list[bytes] = []
        self.journal = b""
        self._come: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._numbers = itertools.count(1)
        self._threads = [threading.Thread(target=read) for read in (self._read_answers, self._read_journal)]
        for thread in self._threads if reads_journal else self._threads[:1]:
            thread.start()

    def _read_answers(self) -> None:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            self.lines.append(line.removesuffix(b"\n"))
            self._come.put(self.lines[-1])
        self._come.put(None)

    def _read_journal(self) -> None:
        assert self.process.stderr is not None
        self.journal = self.process.stderr.read()

    def send(self, *texts: bytes) -> None:
        """Write as is."""
        assert self.process.stdin is not None
        for text in texts:
            self.process.stdin.write(text)
        self.process.stdin.flush()

    def answer(self, within_s: float = ANSWER_S) -> Any:
        """The next answer; queue.Empty if it does not come in time, None at the end of output."""
        line = self._come.get(timeout=within_s)
        return None if line is None else strictly(line)

    def request(self, method: str, within_s: float = ANSWER_S, **params: Any) -> dict[str, Any]:
        """The answer to one request, result or error."""
        number = next(self._numbers)
        self.send(request(number, method, **params))
        found: dict[str, Any] = self.answer(within_s)
        assert found["id"] == number
        return found

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The facts of a tool's answer or refusal."""
        answer = self.request("tools/call", END_S, name=tool, arguments=arguments)
        facts: dict[str, Any] = answer["result"]["structuredContent"]
        return facts

    def write(self, content: str, session_id: str = "s") -> dict[str, Any]:
        return self.call("write_message", session_id=session_id, role="user", content=content)

    def rest(self) -> list[Any]:
        """End the input; what else is answered."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self._threads[0].join(END_S)
        answers = []
        while (answer := self.answer()) is not None:
            answers.append(answer)
        return answers

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def finish(self) -> int:
        """Wait for the end of the process; its exit status."""
        status = self.process.wait(END_S)
        for thread in self._threads:
            if thread.ident is None:
                thread.start()
            thread.join(END_S)
        return status

    def stop(self) -> int:
        """End the input, wait; the exit status."""
        self.rest()
        return self.finish()


def request(request_id: int | str, method: str, **params: Any) -> bytes:
    """One line."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def writing(request_id: int | str, content: str, session_id: str = "s") -> bytes:
    """One line that writes a message."""
    arguments = {"session_id": session_id, "role": "user", "content": content}
    return request(request_id, "tools/call", name="write_message", arguments=arguments)


@contextmanager
def stdio(data_dir: Path | None, *arguments: str, **more: Any) -> Iterator[StdioClient]:
    """A process that runs inside the block and is gone behind it."""
    client = StdioClient(data_dir, *arguments, **more)
    try:
        yield client
    finally:
        if client.process.poll() is None:
            client.process.kill()
        client.finish()
        for pipe in (client.process.stdin, client.process.stdout, client.process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()
