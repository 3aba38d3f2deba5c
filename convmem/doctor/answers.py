"""What the first answers say: whether this is convmem at all, and which of its guards turns a client away.

The first request is the handshake of a client, without a token: who asks whether a token is needed need not show it. It
is shown only to what has said that it is convmem and wants one.
"""

import re
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

from convmem import addresses
from convmem.doctor.findings import Finding
from convmem.doctor.remote_findings import found
from convmem.doctor.visit import Visit
from convmem.doctor.wire import JSON_TYPE, Answer, Deadline, NoAnswer
from convmem.errors import SettingInvalid

OLDER = "2025-11-25"
CLIENT = {"name": "convmem-doctor", "version": "1"}
HANDSHAKE = {"protocolVersion": OLDER, "capabilities": {}, "clientInfo": CLIENT}
NAME = "convmem"
REALM = 'realm="convmem"'
FOR_PROFILE = re.compile(r"this token is for the profile ([a-z]+)")
GATEWAY_STATUSES, LOGIN_STATUSES = (502, 503, 504), (401, 407, 511)
NO_OBJECT = b"[]"
UNKNOWN = "unknown"


def http(visit: Visit) -> Iterator[Finding]:
    """Send a client's first request, without a token, and judge who answers."""
    try:
        answer = visit.exchanger.call("initialize", HANDSHAKE, bears_token=False)
    except NoAnswer as none:
        yield _unanswered(visit, none)
        return
    visit.answer = answer
    fault = stranger(visit, answer)
    if fault is not None:
        yield fault
        return
    yield found("http-ok", f"{answer.status} from convmem")
    yield _host(visit, answer)


def _unanswered(visit: Visit, none: NoAnswer) -> Finding:
    if none.how == "silent":
        seen = f"the connection is accepted; no answer within {visit.step_ms_max / 1000:g} s"
        return found("http-silent", seen, f"convmem doctor  # on {visit.target.host}, then restart what listens there")
    if _wants_tls(visit):
        return found("http-tls", "the port speaks TLS", visit.url_of(scheme="https"))
    if none.how == "closed":
        change = f"convmem serve  # on the machine that the tunnel or forwarder at {visit.target.authority} leads to"
        return found("http-closed", f"accepted, then closed ({none.said or 'no answer'})", change)
    change = f"convmem serve  # or the right port in the URL in place of {visit.target.port}"
    return found("http-foreign", "the answer is not HTTP", change)


def _wants_tls(visit: Visit) -> bool:
    """True if TLS can be agreed on, whatever the certificate. Nothing is sent over it."""
    if visit.line is None or visit.line.tls is not None:
        return False
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError):
        line = replace(visit.line, tls=context, name=visit.target.host, token=None)
        line.connected(Deadline(visit.clock, visit.step_ms_max)).close()
        return True
    return False


def is_convmem(answer: Answer) -> bool:
    """True for the handshake of convmem, and for its refusals."""
    about = answer.result.get("serverInfo")
    if isinstance(about, dict):
        return about.get("name") == NAME
    if answer.status == 401:
        return REALM in answer.headers.get("www-authenticate", "")
    return bool(answer.refusal)


def stranger(visit: Visit, answer: Answer) -> Finding | None:
    """What is found if this is no answer that a client of convmem could go on with; None if it is one, or a refusal by
    one of the guards.
    """
    if 300 <= answer.status < 400:
        return _redirect(visit, answer)
    if is_convmem(answer):
        if answer.status == 404:
            return found("http-path", f"{visit.endpoint}: {answer.refusal}", visit.default_url)
        if answer.status >= 500:
            return found("http-not-ready", f"{answer.status}: {answer.refusal}", "convmem doctor  # on that machine")
        return None
    if answer.status == 400 and _wants_tls(visit):
        return found("http-tls", "the port speaks TLS", visit.url_of(scheme="https"))
    seen = f"{answer.status} {answer.kind or 'without a type'}" + _server(answer)
    if answer.status in GATEWAY_STATUSES:
        return found("http-gateway", seen, f"convmem doctor  # on the machine behind {visit.target.host}")
    if answer.status in LOGIN_STATUSES:
        return found("http-proxy-login", seen, f"let the proxy at {visit.target.host} pass {visit.endpoint} as it is")
    about = answer.result.get("serverInfo")
    if isinstance(about, dict):
        seen = f"the MCP server {str(about.get('name'))[:64]!r}"
    elif answer.kind != JSON_TYPE:
        seen += ", a page"
    return found("http-not-convmem", seen, f"write host, port and path of a convmem in place of {visit.url_of()}")


def _server(answer: Answer) -> str:
    return f" from {answer.headers['server'][:64]}" if answer.headers.get("server") else ""


def _redirect(visit: Visit, answer: Answer) -> Finding:
    """The place it names without what may be a secret in it; it is not followed."""
    to = urlsplit(urljoin(visit.url_of(), answer.headers.get("location", "")))
    try:
        port = f":{to.port}" if to.port else ""
    except ValueError:
        port = ""
    place = f"{to.scheme}://{to.hostname or visit.target.host}{port}{to.path}"
    return found("http-redirect", f"{answer.status} to {place}", place)


def _host(visit: Visit, answer: Answer) -> Finding:
    if answer.status == 421:
        named = re.search(r"--allowed-host (\S+)", answer.refusal)
        host = visit.target.host
        with suppress(ValueError):
            host = addresses.host(named[1]) if named else host
        return found("host-refused", answer.refusal, f"convmem serve --allowed-host {host}")
    if answer.status == 400:
        change = "proxy_set_header Host $host;  # nginx, or what does the same in the proxy in front"
        return found("host-malformed", answer.refusal, change)
    return found("host-ok", visit.target.authority)


def origin(visit: Visit) -> Iterator[Finding]:
    """Ask as a page of the daemon's own address would."""
    own = f"{'https' if visit.target.is_tls else 'http'}://{visit.target.authority}"
    try:
        answer = visit.exchanger.call("ping", headers={"Origin": own})
    except NoAnswer as none:
        yield found("origin-refused", f"{own}: {none}", f"let the proxy at {visit.target.host} pass Origin")
        return
    if answer.status == 403:
        seen = answer.refusal or f"403 for Origin {own}"
        yield found("origin-refused", seen, f"convmem serve --allowed-host {visit.target.host}")
    else:
        yield found("origin-ok", own)


def token(visit: Visit) -> Iterator[Finding]:
    """Find out whether a token is needed; if so show it, and see how far it reaches."""
    assert visit.answer is not None
    assert visit.line is not None
    try:
        given = visit.token()
    except SettingInvalid as error:
        yield found("token-unreadable", error.message, f"correct {error.details['setting']}")
        return
    if visit.answer.status != 401:
        name = "token-none" if given is None else "token-unneeded"
        yield found(name, "none is asked for" + ("" if given is None else ", so it was not sent"))
        return
    if given is None:
        yield found(
            "token-missing", "a token is asked for", "export CONVMEM_TOKEN=…  # `convmem token create NAME` makes one"
        )
        return
    visit.line = replace(visit.line, token=given)
    try:
        answer = visit.exchanger.call("initialize", HANDSHAKE)
    except NoAnswer as none:
        yield _unanswered(visit, none)
        return
    yield _known(visit, answer)


def _known(visit: Visit, answer: Answer) -> Finding:
    if answer.status == 401:
        if "is needed" in answer.refusal:
            change = "proxy_set_header Authorization $http_authorization;  # nginx, or the same elsewhere"
            return found("token-lost", f"a token was sent, and {answer.refusal}", change)
        return found("token-wrong", answer.refusal or "401", "convmem token create NAME  # on the daemon's machine")
    kept = FOR_PROFILE.search(answer.refusal)
    if answer.status == 403 and kept:
        return found("token-profile", answer.refusal, visit.default_url)
    fault = stranger(visit, answer)
    if fault is not None:
        return fault
    visit.answer = answer
    scope, profile = _scope(visit), _profile(visit)
    return found("token-ok", f"scope {scope}, profile {profile}")


def _scope(visit: Visit) -> str:
    """How far the token reaches, by requests that are refused for their body alone if it reaches so far."""
    reach = "read"
    for path, name in (("/capture", "write"), ("/admin/check", "admin")):
        try:
            answer = visit.exchanger.ask("POST", visit.target.prefix + path, NO_OBJECT)
        except NoAnswer:
            return UNKNOWN
        if answer.status == 403 and answer.refusal:
            return reach
        if answer.status != 400 or not answer.refusal:
            return UNKNOWN
        reach = name
    return reach


def _profile(visit: Visit) -> str:
    try:
        answer = visit.exchanger.call("ping", path=f"{visit.target.prefix}/mcp/all")
    except NoAnswer:
        return UNKNOWN
    kept = FOR_PROFILE.search(answer.refusal)
    if kept:
        return kept[1]
    return "any" if answer.status == 200 else UNKNOWN
