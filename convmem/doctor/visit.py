"""What is known of a daemon behind a URL while the doctor goes to it: each step adds what it has found out."""

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from convmem.clock import Clock
from convmem.doctor.wire import Answer, Exchanger, Line
from convmem.hooks.target import MCP, PORTS, Address
from convmem.limits import DOCTOR_STEP_MS_MAX

# A family, and what a socket of it connects to.
Place = tuple[int, Any]
Resolve = Callable[[str, int], list[Place]]
NO_ADDRESS = Address()


def resolved(host: str, port: int) -> list[Place]:
    """The addresses that the system knows of a name, each once, in its order. OSError; may take as long as it takes."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


@dataclass
class Visit:
    """One visit. `token` gives what is to be sent, or raises SettingInvalid."""

    url: str
    environment: Mapping[str, str]
    clock: Clock
    token: Callable[[], bytes | None] = lambda: None
    step_ms_max: float = DOCTOR_STEP_MS_MAX
    resolve: Resolve = resolved
    target: Address = NO_ADDRESS
    places: list[Place] = field(default_factory=list)
    line: Line | None = None
    answer: Answer | None = None

    @property
    def endpoint(self) -> str:
        """The path of the MCP endpoint: as the URL names it, else the default one."""
        found = re.search(MCP, self.url.rstrip("/"))
        return self.target.prefix + (found.group() if found else "/mcp")

    @property
    def host(self) -> str:
        """The host as a Host header and `--allowed-host` name it, without the port."""
        return f"[{self.target.host}]" if ":" in self.target.host else self.target.host

    def url_of(self, *, scheme: str = "", host: str = "") -> str:
        """The same URL with another scheme or host. Behind another scheme the same port stands, unless it was the
        scheme's own.
        """
        own = "https" if self.target.is_tls else "http"
        scheme = scheme or own
        port = "" if self.target.port in (PORTS[own], PORTS[scheme]) else f":{self.target.port}"
        return f"{scheme}://{host or self.host}{port}{self.endpoint}"

    @property
    def default_url(self) -> str:
        """The same URL with the path that every token may use."""
        return self.url_of().removesuffix(self.endpoint) + self.target.prefix + "/mcp"

    @property
    def exchanger(self) -> Exchanger:
        """Asks the daemon; known once a connection was accepted."""
        assert self.line is not None
        return Exchanger(self.line, self.clock, self.step_ms_max)

    def shown(self, place: Place) -> str:
        """An address as people read it."""
        return f"{place[1][0]}"
