"""convmem as a person runs it: a real process a command, and a real daemon that is stopped by its pid."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.source import REPOSITORY

WAIT_S = 30
# The package stands in the repository, wherever the command is run from.
PROGRAM = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from convmem.__main__ import main; main()"


def command(*arguments: str) -> list[str]:
    """The command line of one verb."""
    return [sys.executable, "-c", PROGRAM, *arguments]


def ran(
    *arguments: str, directory: Path = Path("/"), environment: Mapping[str, str] | None = None, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run one verb to its end, in an environment that holds nothing but what is given."""
    return subprocess.run(
        command(*arguments),
        cwd=directory,
        env=dict(environment or {}),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )


@dataclass
class Daemon:
    """A running daemon: its process, the line it printed, and the URL in it."""

    process: "subprocess.Popen[str]"
    line: str
    url: str

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return self.url.removeprefix("http://").removesuffix("/mcp")

    def stop(self) -> int:
        """SIGTERM, and the exit status that follows."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_S)

    def kill(self) -> None:
        """SIGKILL, without a chance to say goodbye."""
        self.process.kill()
        self.process.wait(WAIT_S)


@contextmanager
def daemon(
    *arguments: str, directory: Path = Path("/"), environment: Mapping[str, str] | None = None
) -> Iterator[Daemon]:
    """`convmem serve` on a free port of 127.0.0.1 unless the arguments say otherwise, until the block ends."""
    if "--bind" not in arguments:
        arguments = (*arguments, "--bind", "127.0.0.1:0")
    process = subprocess.Popen(
        command("serve", *arguments),
        cwd=directory,
        env=dict(environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        try:
            line = process.stdout.readline()
            url = re.search(r"http://\S+/mcp", line)
            assert url, f"the daemon did not start: {process.wait(WAIT_S)} {process.stderr.read()}"
            yield Daemon(process, line, url.group())
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(WAIT_S)
