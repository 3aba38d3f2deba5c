"""Three machines of one person: network namespaces with a switch between them, or loopback addresses where those are
not to be had. What runs on a machine is a real process that sees that machine's network alone.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from tests.support.source import REPOSITORY

NAMES = ("central", "laptop", "desktop")


@dataclass(frozen=True)
class Machine:
    """One machine: its address, and what goes before a command that is to run there."""

    name: str
    address: str
    inside: tuple[str, ...] = ()
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start(self, *command: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a process on this machine; it is killed with the machine if it still runs then."""
        process = subprocess.Popen(
            [*self.inside, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env={"PATH": os.environ["PATH"], **(environment or {})},
        )
        self.started.append(process)
        return process

    def convmem(self, *arguments: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a verb."""
        return self.start(sys.executable, "-m", "convmem", *arguments, environment=environment)

    def end(self) -> None:
        """Kill what still runs, and let go of its pipes."""
        for process in self.started:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None and not pipe.closed:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        continue


class NoNamespaces(Exception):
    """This system gives us no network namespaces."""


def _ip(*arguments: str) -> None:
    try:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NoNamespaces("there is no `ip`") from None
    if done.returncode:
        raise NoNamespaces(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


@contextmanager
def namespaces() -> Iterator[dict[str, Machine]]:
    """Three namespaces on one network, 10.77.0.0/24, which nothing outside of them reaches. NoNamespaces."""
    with ExitStack() as stack:
        machines = {}
        for number, name in enumerate(NAMES, start=1):
            space = f"convmem-{os.getpid()}-{name}"
            _ip("netns", "add", space)
            stack.callback(_ip, "netns", "delete", space)
            inside = ("ip", "netns", "exec", space)
            machines[name] = Machine(name, f"10.77.0.{number}", inside)
            stack.callback(machines[name].end)
        central = machines["central"].inside[-1]
        _ip("-n", central, "link", "add", "switch", "type", "bridge")
        for name in NAMES:
            space = machines[name].inside[-1]
            wire = f"to-{name}"
            _ip("link", "add", wire, "netns", central, "type", "veth", "peer", "name", "lan", "netns", space)
            _ip("-n", central, "link", "set", wire, "master", "switch", "up")
            _ip("-n", space, "address", "add", f"{machines[name].address}/24", "dev", "lan")
            for device in ("lo", "lan"):
                _ip("-n", space, "link", "set", device, "up")
        _ip("-n", central, "link", "set", "switch", "up")
        yield machines


@contextmanager
def loopback() -> Iterator[dict[str, Machine]]:
    """Three addresses of this machine."""
    machines = {name: Machine(name, f"127.0.0.{number}") for number, name in enumerate(NAMES, start=1)}
    try:
        yield machines
    finally:
        for machine in machines.values():
            machine.end()
