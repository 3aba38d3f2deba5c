"""What can be found on the way to a daemon behind a URL, in the order of the steps."""

from convmem.doctor.findings import Finding, Kind, failure, ok, warning

KINDS: dict[str, Kind] = {
    "url-ok": ok("the URL can be meant"),
    "url-plain": warning("HTTP without TLS to another machine: whoever is on the way can read the token"),
    "url-invalid": failure(
        "this is no URL of a daemon; user names, queries and fragments do not belong in it", ends=True, status=2
    ),
    "proxy-none": ok("no variable sends HTTP over a proxy"),
    "proxy-passed-by": ok("a proxy is set, and this host is excepted from it"),
    "proxy-in-the-way": warning(
        "programs that heed the variable ask the proxy, which may not reach the host; the doctor itself went past it"
    ),
    "dns-ok": ok("the host has addresses"),
    "dns-unknown": failure("nobody knows the host's name", ends=True),
    "dns-late": failure("the name server does not answer in time", ends=True),
    "connect-ok": ok("a connection was accepted"),
    "connect-other-address": warning(
        "only some addresses of the name accept connections, and some clients try the others first. Often `localhost` "
        "means ::1, and the daemon listens on 127.0.0.1"
    ),
    "connect-refused": failure("nothing listens at this host and port", ends=True),
    "connect-late": failure("nobody answers: a firewall drops what comes, or the machine is off", ends=True),
    "connect-unreachable": failure("there is no way to this address: network, VPN or tunnel is down", ends=True),
    "tls-ok": ok("the certificate is valid, and for this name"),
    "tls-soon": warning("the certificate ends within two weeks"),
    "tls-expired": failure("the certificate has ended, or this machine's clock is ahead", ends=True),
    "tls-early": failure("the certificate is not valid yet, or this machine's clock is behind", ends=True),
    "tls-name": failure("the certificate is for other names", ends=True),
    "tls-unknown-ca": failure(
        "the certificate is signed by itself or by an authority that this machine does not know", ends=True
    ),
    "tls-none": failure("the port does not speak TLS", ends=True),
    "tls-late": failure("the connection is accepted, and TLS never begins", ends=True),
    "tls-failed": failure("TLS could not be agreed on", ends=True),
    "http-ok": ok("convmem answers"),
    "http-silent": failure("the connection is accepted, and no answer comes", ends=True),
    "http-closed": failure(
        "the connection is accepted and closed without an answer: a tunnel or forwarder without a daemon behind it",
        ends=True,
    ),
    "http-tls": failure("the port wants TLS", ends=True),
    "http-foreign": failure("what answers speaks no HTTP", ends=True),
    "http-redirect": failure(
        "the answer is a redirect; clients drop the body or the token when they follow it", ends=True
    ),
    "http-path": failure("convmem answers, and has nothing at this path", ends=True),
    "http-gateway": failure("a proxy answers, and cannot reach the daemon", ends=True),
    "http-proxy-login": failure("a proxy or a portal wants a login of its own", ends=True),
    "http-not-convmem": failure(
        "something else answers: a page, another service, or a proxy that does not pass this path", ends=True
    ),
    "http-not-ready": failure("the daemon is starting, stopping, or has failed", ends=True),
    "host-ok": ok("the Host header that clients send is served"),
    "host-refused": failure(
        "the daemon does not serve this Host (421); it would after a restart with the setting", ends=True
    ),
    "host-malformed": failure(
        "the daemon was shown a Host header that is not one host (400): a proxy changed or doubled it", ends=True
    ),
    "token-unreadable": failure(
        "the token to be sent cannot be read, or could not be sent in a header", ends=True, status=2
    ),
    "token-none": ok("no token is needed"),
    "token-unneeded": ok("a token was sent, and none is needed"),
    "token-ok": ok("the token is known; how far it reaches and which profile it is kept to"),
    "token-missing": failure("a token is needed, and none was given", ends=True),
    "token-wrong": failure("the token is none of the daemon's: mistyped, revoked, or for another one", ends=True),
    "token-profile": failure("the token is kept to one profile, and the URL names another", ends=True),
    "token-lost": failure("the token does not arrive: a proxy takes the Authorization header away", ends=True),
    "origin-ok": ok("pages of this origin may call"),
    "origin-refused": warning("clients that run in a browser are refused (403)"),
    "health-ok": ok("the daemon is well"),
    "health-hidden": ok("/healthz cannot be seen from here: a proxy passes only some paths"),
    "health-degraded": warning("the daemon reads, and something is wrong with it"),
    "health-failed": failure("the daemon is stopping or has failed"),
    "protocol-ok": ok("both eras of the protocol are answered"),
    "protocol-older": failure("the handshake of 2025-11-25 is not answered as it should be", ends=True),
    "protocol-newer": failure("2026-07-28 is not answered as it should be: a proxy may drop the headers Mcp-…"),
    "tools-ok": ok("the tools are listed"),
    "tools-large": warning("the list of tools is large, and a client sends it to its model with every turn"),
    "tools-failed": failure("the tools are not listed"),
    "stream-ok": ok("a stream of events passes"),
    "stream-buffered": warning(
        "something on the way gathers streams, so progress comes late and long calls may time out"
    ),
    "stream-lost": failure("a stream of events does not pass"),
    "body-ok": ok("the largest request passes"),
    "body-partly": warning("requests of the common size pass, the largest do not: texts that escape badly are refused"),
    "body-limited": failure("something on the way refuses requests that the daemon would take"),
    "body-late": warning("a large request did not pass in time; on a slow line that is no fault"),
    "compression-ok": ok("answers come as they were asked for"),
    "compression-forced": warning(
        "answers are compressed although that was not asked for; some clients cannot read them"
    ),
    "clock-ok": ok("the clocks of both machines agree"),
    "clock-unknown": ok("answers bear no date"),
    "clock-differs": warning(
        "the clocks differ by more than a minute: times of messages and of captured events are wrong"
    ),
    "latency-ok": ok("answers come quickly"),
    "latency-slow": warning("answers come slowly"),
    "version-ok": ok("both are of the same version"),
    "version-differs": warning("the daemon is of another version than this program"),
}


def found(name: str, seen: str, change: str = "") -> Finding:
    """A finding of the table above."""
    return Finding(name, KINDS[name], seen, change)
