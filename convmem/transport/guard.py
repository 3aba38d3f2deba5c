"""Who may come in: size of headers, Host, Origin and the bearer token, before anything is parsed or allocated.

The outermost layer of the HTTP side, plain ASGI. A page in a browser can reach this machine's addresses; what it
cannot do is choose its Host and Origin headers, nor know the token. Every refusal names what was seen and the setting
that would admit it, because the person who reads it is usually the one who set it up.
"""

import hashlib
import hmac
import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from convmem.limits import HEADERS_BYTES_MAX, SEEN_CODE_POINTS_MAX
from convmem.reach import Reach
from convmem.transport import authority
from convmem.transport.gate import Settings
from convmem.transport.jsonrpc import INVALID_REQUEST

logger = logging.getLogger("convmem")

Headers = list[tuple[bytes, bytes]]


class Caller(NamedTuple):
    """How a request came in: the device its origin names, the transport, how far it reaches, and the only profile that
    it may be shown (None: any).
    """

    device: str
    transport: str
    reach: Reach = "admin"
    profile: str | None = None


OVER_THE_SOCKET = Caller("local", "socket")
WITHOUT_TOKEN = Caller("local", "http")
WITH_TOKEN = Caller("env", "http")


class Refusal(NamedTuple):
    """An HTTP status, an error code, a sentence, and further headers."""

    status: int
    code: str
    sentence: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


HEADERS_TOO_LARGE = Refusal(431, "VALIDATION_ERROR", f"the headers are larger than {HEADERS_BYTES_MAX} bytes")
NOT_THERE = Refusal(404, "NOT_FOUND", "there is nothing at this path")
UNAUTHORIZED = Refusal(
    401,
    "FORBIDDEN",
    "a token is needed: Authorization: Bearer <token>",
    ((b"www-authenticate", b'Bearer realm="convmem"'),),
)
UNKNOWN_TOKEN = UNAUTHORIZED._replace(sentence="the token is none of this server's: it may have been revoked")


class Guard:
    """ASGI middleware: lets a request through with its Caller in scope["caller"], or answers it."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._loopback_bind = settings.loopback_bind
        self._checks_host = settings.loopback_bind or bool(settings.allowed_hosts)
        self._allowed = frozenset(settings.allowed_hosts)
        self._proxies = frozenset(settings.trusted_proxies)
        self._token = None if settings.token is None else hashlib.sha256(settings.token).digest()
        self._tokens = settings.tokens
        # Clients say the same thing each time; what strangers say is bounded.
        self._host_refusal = lru_cache(maxsize=256)(self._judge_host)
        self._origin_refusal = lru_cache(maxsize=256)(self._judge_origin)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            judged = self._judge(scope)
            if isinstance(judged, Refusal):
                logger.info("refused %d %s: %s", judged.status, scope["path"][:SEEN_CODE_POINTS_MAX], judged.sentence)
                await refuse(scope, send, judged)
                return
            scope["caller"] = judged
        await self._app(scope, receive, send)

    def _judge(self, scope: Scope) -> Caller | Refusal:
        """The order of checks is promised to clients: size, /.well-known, Host, Origin, /healthz, token."""
        raw: Headers = scope["headers"]
        if sum(len(name) + len(value) + 4 for name, value in raw) > HEADERS_BYTES_MAX:
            return HEADERS_TOO_LARGE
        path: str = scope["path"]
        if path.startswith("/.well-known"):
            return NOT_THERE
        headers = dict(raw)
        # uvicorn names the listener; only a Unix socket has no port.
        is_local = scope["server"] is not None and scope["server"][1] is None
        checks_host = not is_local and (self._loopback_bind or path != "/healthz")
        refusal = self._host(raw, headers, scope) if checks_host else None
        refusal = refusal or self._origin(raw, headers)
        if refusal:
            return refusal
        caller = self._caller(raw, headers, is_local=is_local, is_health=path == "/healthz")
        # A path has one spelling: what is written in another is not there.
        return NOT_THERE if isinstance(caller, Caller) and b"%" in scope.get("raw_path", b"") else caller

    def _caller(
        self, raw: Headers, headers: Mapping[bytes, bytes], *, is_local: bool, is_health: bool
    ) -> Caller | Refusal:
        if is_local:
            return OVER_THE_SOCKET
        if is_health or not self._needs_token():
            return WITHOUT_TOKEN
        digest = _given(raw, headers)
        if digest is None:
            return UNAUTHORIZED
        # Digests have one length, so the comparison tells nothing of the token's.
        if self._token is not None and hmac.compare_digest(digest, self._token):
            return WITH_TOKEN
        named = None if self._tokens is None else self._tokens.find(digest)
        return UNKNOWN_TOKEN if named is None else Caller(named.name, "http", named.scope, named.profile)

    def _needs_token(self) -> bool:
        if self._token is not None or not self._loopback_bind:
            return True
        return self._tokens is not None and self._tokens.is_needed

    def _host(self, raw: Headers, headers: Mapping[bytes, bytes], scope: Scope) -> Refusal | None:
        name = b"host"
        if self._proxies and b"x-forwarded-host" in headers and _peer(scope) in self._proxies:
            name = b"x-forwarded-host"
        if _count(raw, headers, name) != 1:
            return _malformed(name.title(), b", ".join(value for key, value in raw if key == name))
        return self._host_refusal(name, headers[name].strip(b" \t"))

    def _origin(self, raw: Headers, headers: Mapping[bytes, bytes]) -> Refusal | None:
        if b"origin" not in headers:
            return None
        if _count(raw, headers, b"origin") != 1:
            return _malformed(b"Origin", b", ".join(value for key, value in raw if key == b"origin"))
        return self._origin_refusal(headers[b"origin"].strip(b" \t"))

    def _judge_host(self, name: bytes, value: bytes) -> Refusal | None:
        try:
            host = authority.host(value)
        except authority.Malformed:
            return _malformed(name.title(), value)
        if not self._checks_host or host in self._allowed or (self._loopback_bind and authority.is_loopback(host)):
            return None
        return Refusal(421, "FORBIDDEN", f'{name.title().decode()} "{host}" is not served here: {_setting(host)}')

    def _judge_origin(self, value: bytes) -> Refusal | None:
        try:
            host = authority.origin(value)
        except authority.Malformed:
            return _malformed(b"Origin", value)
        if host is not None and (host in self._allowed or authority.is_loopback(host)):
            return None
        reason = "pages without an address are never admitted" if host is None else _setting(host)
        return Refusal(403, "FORBIDDEN", f'pages of Origin "{_shown(value)}" may not call this server: {reason}')


def _given(raw: Headers, headers: Mapping[bytes, bytes]) -> bytes | None:
    """The SHA-256 of the one token that a request bears; None if it bears none, or not just one."""
    if _count(raw, headers, b"authorization") != 1:
        return None
    scheme, _, given = headers[b"authorization"].strip(b" \t").partition(b" ")
    return hashlib.sha256(given).digest() if scheme.lower() == b"bearer" else None


def _count(raw: Headers, headers: Mapping[bytes, bytes], name: bytes) -> int:
    """How often a header stands there; `headers` are `raw` as a mapping, as long as it if nothing is doubled."""
    if len(raw) == len(headers):
        return int(name in headers)
    return sum(key == name for key, _ in raw)


def _peer(scope: Scope) -> str | None:
    """The other end's IP address; an IPv4 one also where the listener takes both kinds."""
    client: tuple[str, int] | None = scope["client"]
    return client[0].removeprefix("::ffff:") if client else None


def _malformed(name: bytes, value: bytes) -> Refusal:
    return Refusal(400, "VALIDATION_ERROR", f'{name.decode()} "{_shown(value)}" is not one host with at most one port')


def _setting(host: str) -> str:
    return f"--allowed-host {host} (CONVMEM_ALLOWED_HOSTS) would admit it"


def _shown(value: bytes) -> str:
    """A header's value for people: ASCII, the rest escaped, cut to a bound."""
    return ascii(value[:SEEN_CODE_POINTS_MAX])[2:-1]


async def refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer with a refusal: on the MCP paths as a JSON-RPC error, so that clients show the sentence."""
    if scope["path"] == "/mcp" or scope["path"].startswith("/mcp/"):
        error = {"code": INVALID_REQUEST, "message": refusal.sentence, "data": {"code": refusal.code}}
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
    else:
        error = {"code": refusal.code, "message": refusal.sentence, "retryable": False}
        body = msgspec.json.encode({"error": error})
    length = (b"content-length", b"%d" % len(body))
    headers = [(b"content-type", b"application/json"), length, *refusal.headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
