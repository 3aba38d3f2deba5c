"""Who holds the store: the lock, the local socket, what the daemon says of itself, and the address it listens on."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote
from typing import Any

from convmem import __version__, files
from convmem.doctor import remote_findings
from convmem.doctor.endpoint import offered, spoken
from convmem.doctor.findings import Finding
from convmem.doctor.here import Here, is_alive, name_of, program_of
from convmem.doctor.local_findings import found
from convmem.doctor.wire import Answer, Exchanger, Line, NoAnswer
from convmem.hooks.target import Misplaced, address_of
from convmem.limits import MIB
from convmem.tokens import TokenBook

HEALTH_CALL = {"name": "get_system_health", "arguments": {}}
HEALTH_PATH, DEFAULT_PATH = "/mcp/messages", "/mcp"
REASONS_SHOWN = 3
PRIVILEGED = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
TABLES_OF_PORTS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENS = "0A"  # TCP_LISTEN, include/net/tcp_states.h
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - asked, not bound


def lock(here: Here) -> Iterator[Finding]:
    """Who holds the store, by the kernel's word and by who answers."""
    here.look()
    pid, named = here.pid, here.holder.pid
    if not here.is_held:
        if named is None:
            yield found("lock-free", "nobody holds it")
        else:
            what = "does not hold it" if is_alive(named) else "is gone"
            yield found("lock-left", f"pid {named} has left its name there, and {what}")
        return
    program = program_of(pid) if pid is not None else ""
    if isinstance(here.answered, Answer) or "convmem" in program or (pid is not None and not program):
        yield found("lock-held", f"by pid {pid or named}" + (f" at {here.holder.url}" if here.holder.url else ""))
    else:
        yield found("lock-foreign", f"by pid {pid} ({name_of(pid or 0)})", f"kill {pid}  # look what it is first")


def local_socket(here: Here) -> Iterator[Finding]:
    """Whether whoever holds the store answers on its socket, and whether one without an owner was left."""
    path = here.socket
    if not path:
        yield found("socket-none", "no path is short enough for one; XDG_RUNTIME_DIR is not set")
    elif not os.path.lexists(path):
        if here.is_held:
            yield found("socket-missing", f"{path} is gone", f"kill {here.pid or here.holder.pid} && convmem serve")
        else:
            yield found("socket-none", "nobody made one")
    elif isinstance(here.answered, Answer):
        yield found("socket-ok", path)
    elif not here.is_held:
        yield found("socket-left", path, "convmem serve")
    else:
        how = here.answered.how if isinstance(here.answered, NoAnswer) else ""
        pid = here.pid or here.holder.pid
        if how == "closed" and not os.access(path, os.W_OK):
            yield found("socket-closed", path, f"sudo -u '#{os.stat(path).st_uid}' convmem doctor")
        elif how == "closed":
            yield found("socket-missing", f"{path} is nobody's", f"kill {pid} && convmem serve")
        else:
            seen = f"no answer from pid {pid} within {here.step_ms_max / 1000:g} s"
            yield found("socket-silent", seen, f"kill {pid}  # then start it again; kill -9 if it does not end")


def daemon(here: Here) -> Iterator[Finding]:
    """What a running daemon says of itself, and whether a client of either era would be served."""
    if not isinstance(here.answered, Answer):
        return
    with suppress(NoAnswer):
        answer = here.exchanger.call("tools/call", HEALTH_CALL, path=HEALTH_PATH)
        facts = answer.result.get("structuredContent")
        here.health = facts if isinstance(facts, dict) and "status" in facts else {}
    yield _health(here)
    yield spoken(here.exchanger, "the local socket")
    yield offered(here.exchanger, DEFAULT_PATH)
    there = str(here.health.get("version", __version__))
    if there != __version__:
        change = f"kill {here.holder.pid} && convmem serve"
        yield remote_findings.found("version-differs", f"the daemon is {there}, this is {__version__}", change)


def _health(here: Here) -> Finding:
    value = here.answered.value if isinstance(here.answered, Answer) else None
    status = here.health.get("status") or (value.get("status") if isinstance(value, dict) else None)
    reasons = [str(reason) for reason in here.health.get("reasons", ())]
    shown = "; ".join(reasons[:REASONS_SHOWN]) or str(status)
    if status == "ok":
        return found("health-well", "ok")
    if status == "degraded":
        # What is damaged no check mends, and the next start would be refused: it is saved while it can be read.
        is_damaged = any("log is damaged" in reason for reason in reasons)
        verb = "salvage --to DIRECTORY" if is_damaged else "check"
        return found("health-unwell", shown, f"convmem {verb} --data-dir {quote(str(here.data_dir))}")
    return found("health-over", shown, f"kill {here.holder.pid} && convmem serve")


def bind(here: Here) -> Iterator[Finding]:
    """Whether the settings would let others in without a token."""
    settings = here.settings
    has_tokens = settings.http_token is not None or TokenBook(settings.data_dir, here.clock).is_needed
    if settings.bind.is_loopback or has_tokens:
        guard = "a token is asked for" if has_tokens else "no token is asked for, and only this machine reaches it"
        yield found("bind-ok", f"{settings.bind}: {guard}")
    else:
        yield found("bind-unsafe", f"{settings.bind}, and there is no token", "convmem token create NAME")


def port(here: Here) -> Iterator[Finding]:
    """Whether the address is free, and if not, whose it is. It is never bound: a daemon might start meanwhile."""
    bound = here.settings.bind
    ours = _address_in(here.holder.url) if here.is_held else None
    if bound.port == 0:
        yield found("port-any", f"{ours[0]}:{ours[1]} at the moment" if ours else "port 0")
        return
    if (fault := _not_ours(bound.host, bound.port)) is not None:
        yield fault
        return
    asked = EVERYWHERE.get(bound.host, bound.host)
    listener = _listener(here, asked, bound.port)
    if ours is not None and ours[1] == bound.port and listener is not None:
        yield found("port-ours", f"{bound}")
        return
    if listener is not None:
        yield _taken(here, listener)
    elif (fault := _privileged(bound.port)) is not None:
        yield fault
    elif ours is not None:
        change = f"kill {here.holder.pid} && convmem serve  # or --bind {ours[0]}:{ours[1]}"
        yield found("port-elsewhere", f"the settings say {bound}; the daemon listens on {ours[0]}:{ours[1]}", change)
    else:
        yield found("port-free", f"{bound}")


def _address_in(url: str) -> tuple[str, int] | None:
    try:
        address = address_of(url)
    except Misplaced:
        return None
    return (f"[{address.host}]" if ":" in address.host else address.host), address.port


def _listener(here: Here, host: str, number: int) -> Answer | NoAnswer | None:
    """What answers at an address; None if nobody listens there."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
    except OSError:
        return None
    line = Line(family, address, authority=f"[{host}]:{number}" if ":" in host else f"{host}:{number}")
    try:
        return Exchanger(line, here.clock, here.step_ms_max).ask("GET", "/healthz")
    except NoAnswer as none:
        return None if none.sent == 0 and none.how == "closed" else none


def _taken(here: Here, listener: Answer | NoAnswer) -> Finding:
    bound = here.settings.bind
    pid = listening_pid(bound.port)
    who = f"pid {pid} ({name_of(pid)})" if pid is not None else "a process of another user"
    change = f"convmem serve --bind {bound._replace(port=bound.port + 1 if bound.port < 65_535 else 0)}"
    value = listener.value if isinstance(listener, Answer) else None
    if isinstance(value, Mapping) and list(value) == ["status"]:
        return found("port-other-store", f"{bound}: {who}, a convmem with another data directory", change)
    return found("port-taken", f"{bound}: {who}", change)


def _not_ours(host: str, number: int) -> Finding | None:
    """What is found if the machine does not have the address, which is tried with a port that the system chooses."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with closing(socket.socket(family)) as trial:
            trial.bind((host, 0))
    except OSError as error:
        local = f"127.0.0.1:{number}"
        return found("port-unavailable", f"{host}: {error.strerror}", f"convmem serve --bind {local}")
    return None


def _privileged(number: int) -> Finding | None:
    lowest = 1024
    with suppress(OSError, ValueError):
        lowest = int(files.read_text(PRIVILEGED, bytes_max=16) or b"1024")
    if number < lowest and os.geteuid() != 0:
        return found("port-privileged", f"{number} is below {lowest}", "convmem serve --bind 127.0.0.1:8484")
    return None


def listening_pid(number: int) -> int | None:
    """The process that listens on a TCP port, as far as the system tells this user."""
    nodes = set(_sockets(number))
    wanted = {f"socket:[{node}]" for node in nodes}
    if not wanted:
        return None
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError):
            directory = f"/proc/{pid}/fd"
            for name in os.listdir(directory):
                if os.readlink(f"{directory}/{name}") in wanted:
                    return pid
    return None


def _sockets(number: int) -> Iterator[str]:
    """The numbers of the sockets that listen on a port (man 5 proc_pid_net)."""
    for table in TABLES_OF_PORTS:
        text: Any = b""
        with suppress(OSError):
            text = files.read_text(table, bytes_max=16 * MIB) or b""
        for line in text.decode(errors="replace").splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == LISTENS and words[1].endswith(f":{number:04X}"):
                yield words[9]
