"""The doctor on its way to real daemons: each finding by its real cause, and what must never happen on the way."""

import gzip
import json
import re
import resource
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

from convmem import __version__, config, tokens
from convmem.clock import SystemClock
from convmem.doctor import remote
from convmem.doctor.findings import Finding, status_of
from convmem.doctor.remote_findings import KINDS
from convmem.doctor.visit import Place, Visit, resolved
from convmem.limits import BODY_BYTES_MAX, DOCTOR_BODY_BYTES, MIB
from tests.support import commands, relays
from tests.support.commands import ran
from tests.support.daemons import Daemon, Refused, daemon
from tests.support.relays import Answering, answering, forwarded, forwarding, joined, page, whole, without

pytestmark = pytest.mark.slow
TOKEN = "a-token-for-tests-cVm0123456789"
STEP_MS, SHORT_MS = 10_000, 300
ELSEWHERE = "memory.example"


class Hurrying(SystemClock):
    """A clock on which more than half a second passes between two looks."""

    def __init__(self) -> None:
        self._looks = 0

    def monotonic_ms(self) -> float:
        self._looks += 1
        return self._looks * 600.0


class Closed(NamedTuple):
    """A daemon that others could reach, and that wants a token."""

    data_dir: Path
    port: int

    @property
    def url(self) -> str:
        return f"{local(self.port)}/mcp"


@dataclass
class World:
    """What the causes are made of."""

    open: Daemon
    closed: Closed
    directory: Path
    stack: ExitStack
    monkeypatch: pytest.MonkeyPatch
    authority: trustme.CA
    tokens: Mapping[str, str]

    def to(self, url: str, **how: Any) -> Visit:
        """A visit; `token` is a text, `places` are what a name means, the rest are its fields."""
        token, places = how.pop("token", None), how.pop("places", None)
        how.setdefault("step_ms_max", STEP_MS)
        how.setdefault("clock", SystemClock())
        if token is not None:
            how["token"] = lambda: token.encode()
        if places is not None:
            how["resolve"] = lambda host, port: places
        return Visit(url, how.pop("environment", {}), **how)

    def serve(self, answer: Answering, **how: Any) -> int:
        return self.stack.enter_context(answering(answer, **how)).port

    def proxied(
        self, *, to: relays.Edit = bytes, back: relays.Edit = bytes, running: Daemon | Closed | None = None
    ) -> str:
        """The URL of a proxy before a daemon."""
        return local(self.serve(forwarding((running or self.open).port, to=to, back=back)))

    def secured(self, *names: str, is_trusted: bool = True, answer: Answering | None = None, **times: Any) -> int:
        """The port of a TLS proxy before the open daemon."""
        certificate = self.authority.issue_cert(*(names or ("localhost", "127.0.0.1")), **times)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        if is_trusted:
            self.trust()
        return self.serve(answer or forwarding(self.open.port), tls=context)

    def trust(self) -> None:
        path = self.directory / "authority.pem"
        self.authority.cert_pem.write_to_path(path)
        self.monkeypatch.setenv("SSL_CERT_FILE", str(path))


def local(port: int, scheme: str = "http", host: str = "127.0.0.1") -> str:
    return f"{scheme}://{host}:{port}"


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Closed, Mapping[str, str]]]:
    """An open one, and one that wants a token; tokens of devices by name."""
    there = tmp_path_factory.mktemp("closed")
    arguments = ("--data-dir", str(there), "--bind", "0.0.0.0:0")
    with (
        daemon(tmp_path_factory.mktemp("open")) as first,
        commands.daemon(*arguments, environment={"CONVMEM_HTTP_TOKEN": TOKEN}) as bound,
    ):
        second = Closed(there, int(bound.address.rpartition(":")[2]))
        made = {
            scope: tokens.create(there, scope, scope, None, SystemClock()).secret  # type: ignore[arg-type]
            for scope in ("read", "write", "admin")
        }
        made["memory"] = tokens.create(there, "memory", "write", "memory", SystemClock()).secret
        yield first, second, made


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def world(
    daemons: tuple[Daemon, Closed, Mapping[str, str]],
    authority: trustme.CA,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with ExitStack() as stack:
        yield World(daemons[0], daemons[1], tmp_path, stack, monkeypatch, authority, daemons[2])


def unused() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def here(running: Daemon | Closed) -> list[Place]:
    return [(socket.AF_INET, ("127.0.0.1", running.port))]


def in_days(days: float) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


# --- what a proxy does


def replaced(old: bytes, new: bytes) -> relays.Edit:
    """The same bytes with others in the body, which then has another length."""

    def edit(data: bytes) -> bytes:
        lines, body = whole(data)
        return joined(lines, body.replace(old, new))

    return edit


def dated(text: str) -> relays.Edit:
    return lambda answer: re.sub(rb"(?i)\r\ndate: [^\r]*", b"\r\nDate: " + text.encode(), answer)


def gathered(answer: bytes) -> bytes:
    return joined(*whole(answer))


def zipped(answer: bytes) -> bytes:
    lines, body = whole(answer)
    return joined([*lines, b"Content-Encoding: gzip"], gzip.compress(body))


def zipped_stream(answer: bytes) -> bytes:
    """Streams are compressed, and sent on without a length."""
    lines, body = whole(answer)
    if b"text/event-stream" not in answer:
        return answer
    return b"\r\n".join([*lines, b"Content-Encoding: gzip", b"", gzip.compress(body)])


def turned_to_json(answer: bytes) -> bytes:
    return answer.replace(b"text/event-stream", b"text/plain")


def asked_for(method: str, then: Answering, otherwise: Answering) -> Answering:
    """Another answer for one method."""
    return lambda request: (then if f'"method": "{method}"'.encode() in request else otherwise)(request)


@contextmanager
def bounded(port: int, bytes_max: int, answer: bytes) -> Iterator[relays.Server]:
    """A proxy with a bound of its own: what is larger is answered at once, or with nothing never."""

    def take(server: relays.Server, connection: socket.socket) -> None:
        request = relays.received(connection, bytes_max)
        head = request.partition(b"\r\n\r\n")[0]
        if relays.length_of(head) <= bytes_max:
            connection.sendall(forwarded(port, request))
            return
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR) if answer else None
        while connection.recv(1 << 20) if answer else threading.Event().wait(SHORT_MS / 1000 * 4):
            pass

    with relays.serving(take) as server:
        yield server


@contextmanager
def directory_server(path: Path) -> Iterator[int]:
    """Another program on the port: the standard library's server of files."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: Quiet(*args, directory=str(path))) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            serving.join()


@contextmanager
def degraded(data_dir: Path) -> Iterator[Daemon]:
    """A daemon whose disk is full."""
    with daemon(data_dir) as running:
        client = running.client()
        client.write("kept")
        assert running.process is not None
        _, hard = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (1_000, hard))
        with pytest.raises(Refused):
            client.write("x" * 3_000)
        yield running


def stopping(answer: bytes) -> bytes:
    """What a daemon says of itself between SIGTERM and its end."""
    lines, body = whole(answer)
    if body == b'{"status":"ok"}':
        return joined([b"HTTP/1.1 503 Service Unavailable", *lines[1:]], b'{"status":"stopping"}')
    return answer


NOT_READY = json.dumps(
    {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "going down", "data": {"code": "STOPPING"}}}
).encode()
ANOTHER_SERVER = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "other"}}}
).encode()


def never(host: str, port: int) -> list[Place]:
    threading.Event().wait(SHORT_MS / 1000 * 3)
    return resolved(host, port)


def nobody_knows(host: str, port: int) -> list[Place]:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def no_client_certificate(world: World) -> int:
    """A TLS server that hangs up on whoever shows no certificate."""
    certificate = world.authority.issue_cert("localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version, context.verify_mode = ssl.TLSVersion.TLSv1_2, ssl.CERT_REQUIRED
    certificate.configure_cert(context)
    world.authority.configure_trust(context)
    world.trust()
    return world.serve(lambda request: b"", tls=context)


Cause = Callable[[World], Visit]
CAUSES: dict[str, Cause] = {
    "url-ok": lambda world: world.to(world.open.url),
    "url-plain": lambda world: world.to(f"http://{ELSEWHERE}:{world.open.port}", places=here(world.open)),
    "url-invalid": lambda world: world.to(f"http://me:secret@127.0.0.1:{world.open.port}"),
    "proxy-none": lambda world: world.to(world.open.url),
    "proxy-passed-by": lambda world: world.to(
        world.open.url, environment={"HTTP_PROXY": "http://me:secret@proxy:1", "NO_PROXY": "127.0.0.1"}
    ),
    "proxy-in-the-way": lambda world: world.to(world.open.url, environment={"http_proxy": "http://me:secret@proxy:1"}),
    "dns-ok": lambda world: world.to(local(world.open.port, host="localhost")),
    "dns-unknown": lambda world: world.to(f"https://{ELSEWHERE}", resolve=nobody_knows),
    "dns-late": lambda world: world.to(local(world.open.port), resolve=never, step_ms_max=SHORT_MS),
    "connect-ok": lambda world: world.to(world.open.url),
    "connect-other-address": lambda world: world.to(
        local(world.open.port, host="localhost"), places=[(socket.AF_INET6, ("::1", world.open.port))]
    ),
    "connect-refused": lambda world: world.to(local(unused())),
    "connect-late": lambda world: world.to(local(world.stack.enter_context(relays.full())), step_ms_max=SHORT_MS),
    "connect-unreachable": lambda world: world.to(
        f"https://{ELSEWHERE}", places=[(socket.AF_INET, ("255.255.255.255", 443))]
    ),
    "tls-ok": lambda world: world.to(local(world.secured(), "https", "localhost")),
    "tls-soon": lambda world: world.to(local(world.secured(not_after=in_days(5)), "https")),
    "tls-expired": lambda world: world.to(local(world.secured(not_before=in_days(-9), not_after=in_days(-1)), "https")),
    "tls-early": lambda world: world.to(local(world.secured(not_before=in_days(1), not_after=in_days(9)), "https")),
    "tls-name": lambda world: world.to(local(world.secured(ELSEWHERE), "https")),
    "tls-unknown-ca": lambda world: world.to(local(world.secured(is_trusted=False), "https")),
    "tls-none": lambda world: world.to(local(world.open.port, "https")),
    "tls-late": lambda world: world.to(
        local(world.stack.enter_context(relays.silent()).port, "https"), step_ms_max=SHORT_MS
    ),
    "tls-failed": lambda world: world.to(local(no_client_certificate(world), "https", "localhost")),
    "http-ok": lambda world: world.to(world.open.url),
    "http-silent": lambda world: world.to(local(world.stack.enter_context(relays.silent()).port), step_ms_max=SHORT_MS),
    "http-closed": lambda world: world.to(local(world.stack.enter_context(relays.resetting()).port)),
    "http-tls": lambda world: world.to(local(world.secured())),
    "http-foreign": lambda world: world.to(
        local(world.serve(lambda request: b"SSH-2.0-OpenSSH_9.6\r\n")), step_ms_max=SHORT_MS
    ),
    "http-redirect": lambda world: world.to(
        local(world.serve(lambda request: page("307 Go", b"", b"Location: https://memory.example/mcp/?key=secret")))
    ),
    "http-path": lambda world: world.to(f"{world.open.url}/nowhere"),
    "http-gateway": lambda world: world.to(local(world.serve(lambda request: page("502 Bad Gateway")))),
    "http-proxy-login": lambda world: world.to(
        local(world.serve(lambda request: page("401 Log in", b"", b'WWW-Authenticate: Basic realm="proxy"')))
    ),
    "http-not-convmem": lambda world: world.to(local(world.stack.enter_context(directory_server(world.directory)))),
    "http-not-ready": lambda world: world.to(
        local(world.serve(lambda request: page("503 Busy", NOT_READY, kind=b"application/json")))
    ),
    "host-ok": lambda world: world.to(world.open.url),
    "host-refused": lambda world: world.to(f"http://{ELSEWHERE}:{world.open.port}", places=here(world.open)),
    "host-malformed": lambda world: world.to(
        world.proxied(to=lambda request: request.replace(b"\r\n", b"\r\nHost: another\r\n", 1))
    ),
    "token-unreadable": lambda world: Visit(
        world.closed.url, {}, SystemClock(), lambda: config.client_token("missing", {}, world.directory)
    ),
    "token-none": lambda world: world.to(world.open.url),
    "token-unneeded": lambda world: world.to(world.open.url, token=TOKEN),
    "token-ok": lambda world: world.to(world.closed.url, token=TOKEN),
    "token-missing": lambda world: world.to(world.closed.url),
    "token-wrong": lambda world: world.to(world.closed.url, token="another"),
    "token-profile": lambda world: world.to(f"{world.closed.url}/tables", token=world.tokens["memory"]),
    "token-lost": lambda world: world.to(
        world.proxied(to=without(b"authorization"), running=world.closed), token=TOKEN
    ),
    "origin-ok": lambda world: world.to(world.open.url),
    "origin-refused": lambda world: world.to(
        f"http://{ELSEWHERE}:{world.closed.port}", places=here(world.closed), token=TOKEN
    ),
    "health-ok": lambda world: world.to(world.open.url),
    "health-hidden": lambda world: world.to(
        local(
            world.serve(
                lambda request: (
                    page("404 Not Found") if request.startswith(b"GET") else forwarded(world.open.port, request)
                )
            )
        )
    ),
    "health-degraded": lambda world: world.to(world.stack.enter_context(degraded(world.directory / "full")).url),
    "health-failed": lambda world: world.to(world.proxied(back=stopping)),
    "protocol-ok": lambda world: world.to(world.open.url),
    "protocol-older": lambda world: world.to(world.proxied(back=replaced(b'"2025-11-25"', b'"2025-06-18"'))),
    "protocol-newer": lambda world: world.to(world.proxied(to=without(b"mcp-"))),
    "tools-ok": lambda world: world.to(world.open.url),
    "tools-large": lambda world: world.to(f"{world.open.url}/all"),
    "tools-failed": lambda world: world.to(
        local(world.serve(asked_for("tools/list", lambda request: page("500 No"), forwarding(world.open.port))))
    ),
    "stream-ok": lambda world: world.to(world.open.url),
    "stream-buffered": lambda world: world.to(world.proxied(back=gathered)),
    "stream-lost": lambda world: world.to(world.proxied(back=turned_to_json)),
    "body-ok": lambda world: world.to(world.open.url),
    "body-limited": lambda world: world.to(
        local(world.stack.enter_context(bounded(world.open.port, MIB, page("413 Too large"))).port)
    ),
    "body-partly": lambda world: world.to(
        local(world.stack.enter_context(bounded(world.open.port, 2 * MIB, page("413 Too large"))).port)
    ),
    "body-late": lambda world: world.to(
        local(world.stack.enter_context(bounded(world.open.port, MIB, b"")).port), step_ms_max=3 * SHORT_MS
    ),
    "compression-ok": lambda world: world.to(world.open.url),
    "compression-forced": lambda world: world.to(
        local(world.serve(asked_for("ping", forwarding(world.open.port, back=zipped), forwarding(world.open.port))))
    ),
    "clock-ok": lambda world: world.to(world.open.url),
    "clock-unknown": lambda world: world.to(world.proxied(back=without(b"date:"))),
    "clock-differs": lambda world: world.to(world.proxied(back=dated("Sun, 31 Jan 2038 08:00:00 GMT"))),
    "latency-ok": lambda world: world.to(world.open.url),
    "latency-slow": lambda world: world.to(world.open.url, clock=Hurrying(), step_ms_max=1e9),
    "version-ok": lambda world: world.to(world.open.url),
    "version-differs": lambda world: world.to(
        world.proxied(back=replaced(f'"version":"{__version__}"'.encode(), b'"version":"99.0.0"'))
    ),
}


def test_every_finding_has_a_cause_here():
    assert set(CAUSES) == set(KINDS)


def texts(findings: list[Finding]) -> str:
    return json.dumps([finding.facts() for finding in findings])


@pytest.mark.parametrize("name", CAUSES)
def test_a_finding_is_made_by_its_cause_and_tells_no_token_or_password(world: World, name: str):
    findings = list(remote.examine(CAUSES[name](world)))
    made = {finding.name: finding for finding in findings}
    assert name in made, [(finding.name, finding.seen) for finding in findings]
    assert KINDS[name].ends == (findings[-1].name == name and name != "version-ok" and name != "version-differs")
    # What is not fine with one is no fault of others: all that is found beside it is fine, or follows from it.
    others = {other for other, finding in made.items() if finding.kind.outcome == "failure"} - {name}
    assert others <= FOLLOW.get(name, set()), others
    shown = texts(findings)
    assert not any(secret in shown for secret in (TOKEN, "secret", *world.tokens.values()))
    if KINDS[name].outcome == "failure":
        assert status_of(findings) == KINDS[name].status


# A name that is only known to us is not served by a daemon on loopback; a proxy that compresses spoils what it passes.
FOLLOW: dict[str, set[str]] = {
    "url-plain": {"host-refused"},
    "compression-forced": {"stream-lost", "body-limited"},
}


SCOPES = {"read": "scope read, profile any", "write": "scope write, profile any", "admin": "scope admin, profile any"}
SCOPES |= {"memory": "scope write, profile memory"}


@pytest.mark.parametrize("device", SCOPES)
def test_scope_and_profile_of_a_token_are_found_without_using_them(world: World, device: str):
    found = {one.name: one.seen for one in remote.examine(world.to(world.closed.url, token=world.tokens[device]))}
    assert found["token-ok"] == SCOPES[device]


STRANGERS: dict[str, Answering] = {
    "a page": lambda request: page("200 OK"),
    "a redirect": lambda request: page("308 Go", b"", b"Location: http://127.0.0.1:1/mcp"),
    "a login": lambda request: page("401 Log in", b"", b'WWW-Authenticate: Bearer realm="other"'),
    "another server": lambda request: page("200 OK", ANOTHER_SERVER, kind=b"application/json"),
    "not found": lambda request: page("404 Not Found"),
    "nothing": lambda request: b"",
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_stranger_is_never_shown_the_token(world: World, stranger: str):
    server = world.stack.enter_context(answering(STRANGERS[stranger]))
    findings = list(remote.examine(world.to(local(server.port), token=TOKEN, step_ms_max=SHORT_MS)))
    assert findings[-1].kind.outcome == "failure"
    assert findings[-1].check == "http"
    assert server.asked
    assert not any(TOKEN.encode() in request or b"uthorization" in request for request in server.asked)


def test_a_redirect_behind_the_token_check_is_not_followed(world: World):
    other = world.stack.enter_context(answering(lambda request: page("200 OK")))
    place = f"Location: http://127.0.0.1:{other.port}/mcp".encode()

    def answer(request: bytes) -> bytes:
        if TOKEN.encode() in request:
            return page("307 Go", b"", place)
        return forwarded(world.closed.port, request)

    findings = list(remote.examine(world.to(local(world.serve(answer)), token=TOKEN)))
    assert findings[-1].name == "http-redirect"
    assert findings[-1].change == f"http://127.0.0.1:{other.port}/mcp"
    assert other.asked == []


def test_a_server_that_never_ends_does_not_keep_the_doctor(world: World):
    server = world.stack.enter_context(relays.dripping())
    findings = list(remote.examine(world.to(local(server.port), step_ms_max=SHORT_MS)))
    assert findings[-1].name == "http-silent"


def test_a_compressing_proxy_gathers_streams(world: World):
    found = {one.name for one in remote.examine(world.to(world.proxied(back=zipped_stream)))}
    assert "stream-buffered" in found


def test_a_daemon_behind_tls_and_a_name_is_well_from_end_to_end(world: World):
    findings = list(remote.examine(world.to(local(world.secured(), "https", "localhost"))))
    assert {finding.kind.outcome for finding in findings} == {"ok"}, texts(findings)


def test_the_daemon_remembers_nothing_of_a_visit(world: World):
    before = {path.name: path.read_bytes() for path in world.closed.data_dir.glob("convmem.log")}
    list(remote.examine(world.to(world.closed.url, token=TOKEN)))
    assert {path.name: path.read_bytes() for path in world.closed.data_dir.glob("convmem.log")} == before


def test_the_verb_prints_each_finding_and_ends_with_its_status(world: World):
    done = ran("doctor", world.closed.url, environment={"CONVMEM_TOKEN": TOKEN})
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert {line[0] for line in lines} == {"ok"}
    assert [line[1].partition("-")[0] for line in lines][:5] == ["url", "proxy", "dns", "connect", "http"]
    assert TOKEN not in done.stdout + done.stderr
    refused = ran("doctor", local(unused()), "--json")
    assert refused.returncode == 1
    *_, last = json.loads(refused.stdout)
    assert last.keys() == {"check", "finding", "outcome", "seen", "change"}
    assert (last["check"], last["finding"], last["outcome"]) == ("connect", "connect-refused", "failure")


def test_the_verb_takes_the_token_from_a_file_and_the_url_from_the_environment(world: World):
    path = world.directory / "token"
    path.write_text(f"{world.tokens['read']}\n")
    done = ran("doctor", "--token-file", str(path), environment={"CONVMEM_URL": world.closed.url})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok\ttoken-ok\tscope read, profile any\t\n" in done.stdout
    path.write_bytes(b"\xef\xbb\xbfx")
    unreadable = ran("doctor", world.closed.url, "--token-file", str(path))
    assert unreadable.returncode == 2
    assert "byte order mark" in unreadable.stdout


def test_a_token_goes_out_without_tls_only_behind_a_warning(world: World):
    """The warning is printed before the token is sent: each finding when it is made."""
    seen: list[str] = []

    def take(server: relays.Server, connection: socket.socket) -> None:
        request = relays.received(connection)
        if b"Authorization" in request:
            seen.append("token")
        connection.sendall(forwarded(world.closed.port, request))

    port = world.stack.enter_context(relays.serving(take)).port
    visit = world.to(f"http://{ELSEWHERE}:{port}", places=[(socket.AF_INET, ("127.0.0.1", port))], token=TOKEN)
    seen.extend(finding.name for finding in remote.examine(visit))
    assert seen.index("url-plain") < seen.index("token")


SEEN: dict[str, tuple[str, str]] = {
    "tls-expired": (rf"valid until {in_days(-1):%Y-%m-%d}; today is ", "renew the certificate of 127.0.0.1"),
    "tls-early": (rf"valid from {in_days(1):%Y-%m-%d}; today is ", "set this machine's clock right"),
    "tls-name": (rf"it is for {ELSEWHERE}, not for 127.0.0.1", ELSEWHERE),
    "tls-unknown-ca": ("", "export SSL_CERT_FILE="),
    "tls-none": ("not TLS", r"http://127.0.0.1:\d+/mcp"),
    "http-tls": ("speaks TLS", r"https://127.0.0.1:\d+/mcp"),
    "host-refused": (ELSEWHERE, f"convmem serve --allowed-host {ELSEWHERE}$"),
    "origin-refused": (ELSEWHERE, f"convmem serve --allowed-host {ELSEWHERE}$"),
    "http-redirect": ("307", "https://memory.example/mcp/$"),
    "http-path": ("/mcp/nowhere", r"http://127.0.0.1:\d+/mcp$"),
    "token-profile": ("for the profile memory", r"http://127.0.0.1:\d+/mcp$"),
    "connect-other-address": ("::1 refuses; 127.0.0.1 accepts", r"http://127.0.0.1:\d+/mcp$"),
    "proxy-in-the-way": ("http_proxy", "export NO_PROXY=127.0.0.1,localhost,::1$"),
    "body-limited": ("", r"client_max_body_size 7m;"),
}


@pytest.mark.parametrize("name", SEEN)
def test_the_one_thing_to_change_is_exact(world: World, name: str):
    (finding,) = (one for one in remote.examine(CAUSES[name](world)) if one.name == name)
    seen, change = SEEN[name]
    assert re.search(seen, finding.seen), finding.seen
    assert re.match(change, finding.change) or name == "tls-name", finding.change


def test_a_large_request_is_of_the_size_it_says(world: World):
    sizes: list[int] = []

    def answer(request: bytes) -> bytes:
        sizes.append(relays.length_of(request.partition(b"\r\n\r\n")[0]))
        return forwarded(world.open.port, request)

    list(remote.examine(world.to(local(world.serve(answer)))))
    assert {DOCTOR_BODY_BYTES, BODY_BYTES_MAX} <= set(sizes)
    assert max(sizes) == BODY_BYTES_MAX
