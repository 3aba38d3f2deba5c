"""The way to a daemon below HTTP: what the URL says, proxies in the environment, names, connections, certificates."""

import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from convmem.doctor.findings import Finding
from convmem.doctor.remote_findings import found
from convmem.doctor.visit import Place, Visit
from convmem.doctor.wire import Deadline, Line
from convmem.hooks.target import Misplaced, address_of
from convmem.limits import DOCTOR_CERTIFICATE_DAYS_MIN

LOOPBACK_PLACES = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}
# OpenSSL's reasons for a refused certificate (openssl/x509_vfy.h), and what is found.
TLS_FAULTS = {9: "tls-early", 10: "tls-expired", 18: "tls-unknown-ca", 19: "tls-unknown-ca", 20: "tls-unknown-ca"}
TLS_FAULTS |= {2: "tls-unknown-ca", 21: "tls-unknown-ca", 62: "tls-name", 64: "tls-name"}
NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME


def is_loopback(host: str) -> bool:
    """True for names and addresses of this very machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def url(visit: Visit) -> Iterator[Finding]:
    """Read the URL."""
    try:
        visit.target = address_of(visit.url)
    except Misplaced:
        # What is wrong with it may be a password in it, so it is not repeated.
        yield found("url-invalid", "the argument is not one like http://host:8484", "convmem doctor http://HOST:8484")
        return
    if visit.target.is_tls or is_loopback(visit.target.host):
        yield found("url-ok", f"{visit.url_of()}")
    else:
        yield found("url-plain", f"{visit.url_of()} has no TLS", visit.url_of(scheme="https"))


def proxy(visit: Visit) -> Iterator[Finding]:
    """Look whether variables of the environment send this host's requests over a proxy."""
    scheme = "https" if visit.target.is_tls else "http"
    variable = _proxy_variable(visit.environment, scheme)
    if variable is None:
        yield found("proxy-none", f"no proxy for {scheme} in the environment")
        return
    no_proxy = visit.environment.get("no_proxy") or visit.environment.get("NO_PROXY") or ""
    if _is_excepted(visit.target.host, visit.target.port, no_proxy):
        yield found("proxy-passed-by", f"{variable} is set; NO_PROXY excepts {visit.target.host}")
        return
    wanted = [*filter(None, no_proxy.split(",")), visit.target.host]
    if is_loopback(visit.target.host):
        wanted = list(dict.fromkeys([*wanted, "localhost", "127.0.0.1", "::1"]))
    seen = f"{variable} names a proxy, and NO_PROXY does not except {visit.target.host}"
    yield found("proxy-in-the-way", seen, f"export NO_PROXY={','.join(wanted)}")


def _proxy_variable(environment: Mapping[str, str], scheme: str) -> str | None:
    names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    return next((name for name in names if environment.get(name)), None)


def _is_excepted(host: str, port: int, no_proxy: str) -> bool:
    """Whether a list like NO_PROXY excepts a host: by name, by the end of its name, with or without a port, or all."""
    for entry in (piece.strip().lower() for piece in no_proxy.split(",")):
        name = entry.removesuffix(f":{port}").strip("[]").removeprefix("*").lstrip(".")
        if entry == "*" or (name and (host == name or host.endswith(f".{name}"))):
            return True
    return False


def dns(visit: Visit) -> Iterator[Finding]:
    """Ask for the host's addresses; the system's resolver has no deadline, so another thread waits for it."""
    host, answers = visit.target.host, list[Any]()

    def ask() -> None:
        try:
            answers.append(visit.resolve(host, visit.target.port))
        except (OSError, UnicodeError) as error:
            answers.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(visit.step_ms_max / 1000)
    if not answers:
        seen = f"no answer for {host} within {_seconds(visit)}"
        yield found("dns-late", seen, f"getent hosts {host}  # until it answers at once: name server, VPN")
    elif isinstance(answers[0], Exception):
        seen = f"{host}: {getattr(answers[0], 'strerror', None) or 'not a name'}"
        yield found("dns-unknown", seen, f"write the host's right name in the URL, or its address in place of {host}")
    else:
        visit.places = answers[0]
        yield found("dns-ok", f"{host}: {', '.join(map(visit.shown, visit.places))}")


def connect(visit: Visit) -> Iterator[Finding]:
    """Connect to each address until one accepts, and go on with that."""
    faults: list[tuple[Place, OSError]] = []
    others = _other_loopback(visit)
    for place in [*visit.places, *others]:
        fault = _connection_fault(visit, place)
        if fault is not None:
            faults.append((place, fault))
            continue
        visit.line = Line(*place, visit.target.authority, visit.endpoint, visit.target.prefix)
        if not faults:
            yield found("connect-ok", f"{visit.shown(place)} port {visit.target.port}")
        else:
            refused = ", ".join(f"{visit.shown(other)} {_reason(error)}" for other, error in faults)
            host = visit.shown(place)
            change = visit.url_of(host=f"[{host}]" if ":" in host else host)
            yield found("connect-other-address", f"{refused}; {host} accepts", change)
        return
    yield _unconnected(visit, faults[: len(visit.places)])


def _other_loopback(visit: Visit) -> list[Place]:
    """This machine's address of the other family, if `localhost` means only one of them."""
    if visit.target.host != "localhost":
        return []
    known = {visit.shown(place) for place in visit.places}
    return [(family, (host, visit.target.port)) for host, family in LOOPBACK_PLACES.items() if host not in known]


def _connection_fault(visit: Visit, place: Place) -> OSError | None:
    try:
        Line(*place).connected(Deadline(visit.clock, visit.step_ms_max)).close()
    except OSError as error:
        return error
    return None


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "does not answer"
    return "refuses" if isinstance(error, ConnectionRefusedError) else f"cannot be reached ({error.strerror})"


def _unconnected(visit: Visit, faults: list[tuple[Place, OSError]]) -> Finding:
    seen = "; ".join(f"{visit.shown(place)} port {visit.target.port} {_reason(error)}" for place, error in faults)
    here = is_loopback(visit.target.host)
    if all(isinstance(error, ConnectionRefusedError) for _, error in faults):
        start = f"convmem serve --bind 127.0.0.1:{visit.target.port}" if here else "convmem doctor"
        return found("connect-refused", seen, start if here else f"{start}  # on {visit.target.host}: is it running?")
    if any(isinstance(error, TimeoutError) for _, error in faults):
        return found("connect-late", seen, f"open port {visit.target.port} in the firewall of {visit.target.host}")
    return found("connect-unreachable", seen, f"bring up the network, VPN or tunnel to {visit.target.host}")


def tls(visit: Visit) -> Iterator[Finding]:
    """Agree on TLS with the one address that accepted, and look at the certificate."""
    if not visit.target.is_tls:
        return
    context = ssl.create_default_context()
    try:
        certificate = _certificate(visit, context)
    except ssl.SSLCertVerificationError as error:
        yield _refused_certificate(visit, error)
        return
    except TimeoutError:
        change = f"convmem doctor {visit.url_of(scheme='http')}  # if the port speaks plain HTTP"
        yield found("tls-late", f"TLS did not begin within {_seconds(visit)}", change)
        return
    except OSError as error:
        plain = isinstance(error, ssl.SSLError) and error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
        if plain:
            yield found("tls-none", "the answer is not TLS", visit.url_of(scheme="http"))
        else:
            said = getattr(error, "reason", None) or error.strerror or type(error).__name__
            yield found("tls-failed", f"{said}", "set up TLS again in the reverse proxy, for TLS 1.2 or newer")
        return
    assert visit.line is not None
    visit.line = replace(visit.line, tls=context, name=visit.target.host)
    yield _valid_until(visit, certificate)


def _certificate(visit: Visit, context: ssl.SSLContext) -> Mapping[str, Any]:
    assert visit.line is not None
    line = Line(visit.line.family, visit.line.address, tls=context, name=visit.target.host)
    with line.connected(Deadline(visit.clock, visit.step_ms_max)) as connection:
        assert isinstance(connection, ssl.SSLSocket)
        return connection.getpeercert() or {}


def _valid_until(visit: Visit, certificate: Mapping[str, Any]) -> Finding:
    end = _time(certificate.get("notAfter", ""))
    left_days = (end.timestamp() * 1000 - visit.clock.now_ms()) / 86_400_000 if end else None
    seen = f"valid for {visit.target.host} until {end:%Y-%m-%d}" if end else f"valid for {visit.target.host}"
    if left_days is not None and left_days < DOCTOR_CERTIFICATE_DAYS_MIN:
        return found("tls-soon", seen, f"renew the certificate of {visit.target.host}")
    return found("tls-ok", seen)


def _refused_certificate(visit: Visit, error: ssl.SSLCertVerificationError) -> Finding:
    """What is wrong with it, by its code; the certificate itself is shown only to whoever leaves that out."""
    name = TLS_FAULTS.get(error.verify_code, "tls-failed")
    lenient = ssl.create_default_context()
    lenient.check_hostname = False
    lenient.verify_flags |= NO_CHECK_TIME
    certificate: Mapping[str, Any] = {}
    with suppress(OSError):
        certificate = _certificate(visit, lenient)
    host = visit.target.host
    names = ", ".join(value for _, value in certificate.get("subjectAltName", ())) or "other names"
    begun, ended = _time(certificate.get("notBefore", "")), _time(certificate.get("notAfter", ""))
    today = f"{datetime.fromtimestamp(visit.clock.now_ms() / 1000, UTC):%Y-%m-%d}"
    seen, change = {
        "tls-expired": (
            f"valid until {ended:%Y-%m-%d}; today is {today}" if ended else error.verify_message,
            f"renew the certificate of {host}",
        ),
        "tls-early": (
            f"valid from {begun:%Y-%m-%d}; today is {today}" if begun else error.verify_message,
            "set this machine's clock right, or wait",
        ),
        "tls-name": (f"it is for {names}, not for {host}", f"name one of these in the URL: {names}"),
        "tls-unknown-ca": (error.verify_message, "export SSL_CERT_FILE=/path/to/the/authority.pem"),
    }.get(name, (error.verify_message, f"have the certificate of {host} made anew"))
    return found(name, seen, change)


def _time(text: str) -> datetime | None:
    """A time of a certificate: Jan  5 09:34:43 2018 GMT."""
    try:
        return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC)
    except (ValueError, OverflowError):
        return None


def _seconds(visit: Visit) -> str:
    return f"{visit.step_ms_max / 1000:g} s"
