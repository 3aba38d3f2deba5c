"""The way to a daemon behind a URL as a table of steps, gone in order until one makes the next senseless."""

from collections.abc import Callable, Iterator, Mapping

from convmem.doctor import answers, endpoint, network
from convmem.doctor.findings import Finding
from convmem.doctor.visit import Visit

Step = Callable[[Visit], Iterator[Finding]]
STEPS: Mapping[str, Step] = {
    "url": network.url,
    "proxy": network.proxy,
    "dns": network.dns,
    "connect": network.connect,
    "tls": network.tls,
    "http": answers.http,
    "token": answers.token,
    "origin": answers.origin,
    "health": endpoint.health,
    "protocol": endpoint.protocol,
    "tools": endpoint.tools,
    "stream": endpoint.stream,
    "body": endpoint.body,
    "compression": endpoint.compression,
    "clock": endpoint.clock,
    "latency": endpoint.latency,
    "version": endpoint.version,
}


def examine(visit: Visit) -> Iterator[Finding]:
    """Yield what is found, as it is found."""
    for step in STEPS.values():
        for finding in step(visit):
            yield finding
            if finding.kind.ends:
                return
