"""What a client lives with once it is let in: both eras, the tools, streams, large requests, clocks, time, versions.

Every request here only asks. The large one is a `ping` with padding, which the daemon reads and forgets.
"""

import json
import statistics
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from convmem import __version__
from convmem.doctor.answers import CLIENT, HANDSHAKE, NAME, OLDER
from convmem.doctor.findings import Finding
from convmem.doctor.remote_findings import found
from convmem.doctor.visit import Visit
from convmem.doctor.wire import STREAM_TYPE, Answer, Exchanger, NoAnswer
from convmem.limits import (
    BODY_BYTES_MAX,
    DOCTOR_BODY_BYTES,
    DOCTOR_CLOCK_MS_MAX,
    DOCTOR_LATENCY_MS_MAX,
    DOCTOR_PINGS,
    DOCTOR_TOOLS_BYTES_MAX,
)

NEWER = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": NEWER,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MIB = 1024 * 1024
HEALTH: Mapping[str, str] = {"ok": "health-ok", "degraded": "health-degraded"}
AS_IT_IS = "let the reverse proxy pass {} as it is"


def health(visit: Visit) -> Iterator[Finding]:
    """Ask how the daemon is; it tells everybody, in one word."""
    try:
        answer = visit.exchanger.ask("GET", f"{visit.target.prefix}/healthz", bears_token=False)
    except NoAnswer as none:
        yield found("health-hidden", f"/healthz: {none}")
        return
    value = answer.value
    status = value.get("status") if isinstance(value, dict) else None
    if not isinstance(status, str):
        yield found("health-hidden", f"/healthz: {answer.status}")
        return
    name = HEALTH.get(status, "health-failed")
    yield found(name, status[:64], "" if name == "health-ok" else "convmem doctor  # on the daemon's machine")


def protocol(visit: Visit) -> Iterator[Finding]:
    """Speak both eras of the protocol."""
    yield spoken(visit.exchanger, visit.target.host)


def spoken(exchanger: Exchanger, place: str) -> Finding:
    """Whether both eras are answered, by whoever is asked."""
    change = AS_IT_IS.format("the headers Mcp-… and Accept")
    try:
        older = exchanger.call("initialize", HANDSHAKE)
        about = older.result.get("serverInfo")
        if not isinstance(about, dict) or about.get("name") != NAME or older.result.get("protocolVersion") != OLDER:
            return found("protocol-older", f"{place}: initialize was answered {_told(older)}", change)
        newer = _newer(exchanger, "server/discover")
    except NoAnswer as none:
        return found("protocol-older", f"{place}: {none}", change)
    versions = newer.result.get("supportedVersions")
    if not isinstance(versions, list) or NEWER not in versions:
        return found("protocol-newer", f"{place}: server/discover was answered {_told(newer)}", change)
    return found("protocol-ok", f"{OLDER} and {NEWER}")


def _newer(exchanger: Exchanger, method: str) -> Answer:
    headers = {"Mcp-Protocol-Version": NEWER, "Mcp-Method": method}
    return exchanger.call(method, {"_meta": META}, headers)


def _told(answer: Answer) -> str:
    """A status, and the beginning of what an error says."""
    error = answer.message.get("error")
    said = error.get("message") if isinstance(error, dict) else None
    return f"{answer.status} {str(said)[:128]}" if said else f"{answer.status} {answer.kind}"


def tools(visit: Visit) -> Iterator[Finding]:
    """List the tools as a client does before its first turn."""
    yield offered(visit.exchanger, visit.endpoint)


def offered(exchanger: Exchanger, path: str) -> Finding:
    """How many tools are listed, and how large the list is."""
    try:
        answer = exchanger.call("tools/list")
    except NoAnswer as none:
        return found("tools-failed", f"{path}: {none}", AS_IT_IS.format(path))
    listed = answer.result.get("tools")
    if not isinstance(listed, list) or not listed:
        return found("tools-failed", f"{path}: {_told(answer)}", AS_IT_IS.format(path))
    seen = f"{len(listed)} tools in {len(answer.body) // 1024} KiB at {path}"
    if len(answer.body) > DOCTOR_TOOLS_BYTES_MAX:
        return found("tools-large", seen, "convmem serve --profile core")
    return found("tools-ok", seen)


def stream(visit: Visit) -> Iterator[Finding]:
    """Ask for an answer that is a stream of events, and see whether it still is one."""
    change = "proxy_buffering off;  # nginx, or flush_interval -1 in Caddy"
    try:
        answer = visit.exchanger.call("ping", headers={"Accept": STREAM_TYPE})
    except NoAnswer as none:
        yield found("stream-lost", f"{none}", change)
        return
    encoding = answer.headers.get("content-encoding", "identity")
    if answer.kind == STREAM_TYPE and encoding != "identity":
        yield found("stream-buffered", f"the stream is compressed ({encoding[:32]})", change)
    elif answer.kind != STREAM_TYPE or answer.message.get("result") is None:
        yield found("stream-lost", f"{answer.status} {answer.kind} in its place", change)
    elif "content-length" in answer.headers:
        # Who sends a stream does not know how long it will be; somebody has waited for its end.
        yield found("stream-buffered", "the stream came with its length, so it was gathered first", change)
    else:
        yield found("stream-ok", "a stream of events comes as it was sent")


def body(visit: Visit) -> Iterator[Finding]:
    """Send a large request; if that passes soon, the largest that the daemon takes."""
    change = f"client_max_body_size {BODY_BYTES_MAX // MIB + 1}m;  # nginx, or the same bound elsewhere"
    common = _large(visit, DOCTOR_BODY_BYTES)
    if isinstance(common, NoAnswer):
        # Who refuses a body often closes at once, and its answer is lost.
        if common.how == "silent":
            seen = f"{common.sent:,} of {DOCTOR_BODY_BYTES:,} bytes went within {visit.step_ms_max / 1000:g} s"
            yield found("body-late", seen, f"convmem doctor {visit.url_of()}  # again, over a faster line")
        else:
            yield found("body-limited", f"cut off behind {common.sent:,} bytes", change)
        return
    if common.status != 200:
        yield found("body-limited", f"{DOCTOR_BODY_BYTES:,} bytes: {_told(common)}", change)
        return
    if common.took_ms * BODY_BYTES_MAX / DOCTOR_BODY_BYTES > visit.step_ms_max / 2:
        yield found("body-ok", f"{DOCTOR_BODY_BYTES:,} bytes; more were not tried on this slow line")
        return
    largest = _large(visit, BODY_BYTES_MAX)
    if isinstance(largest, Answer) and largest.status == 200:
        yield found("body-ok", f"{BODY_BYTES_MAX:,} bytes")
    else:
        told = _told(largest) if isinstance(largest, Answer) else f"cut off behind {largest.sent:,} bytes"
        yield found("body-partly", f"{DOCTOR_BODY_BYTES:,} bytes pass; {BODY_BYTES_MAX:,}: {told}", change)


def _large(visit: Visit, size: int) -> Answer | NoAnswer:
    """A ping whose body has exactly this size."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {"padding": ""}}}
    empty = json.dumps(message)
    at = empty.index('"padding": "') + len('"padding": "')
    padded = empty[:at] + "x" * (size - len(empty)) + empty[at:]
    try:
        return visit.exchanger.ask("POST", visit.endpoint, padded.encode())
    except NoAnswer as none:
        return none


def compression(visit: Visit) -> Iterator[Finding]:
    """Look whether the answers to requests that want none are compressed."""
    try:
        answer = visit.exchanger.call("ping")
    except NoAnswer as none:
        yield found("compression-forced", f"{none}", AS_IT_IS.format("Accept-Encoding"))
        return
    encoding = answer.headers.get("content-encoding", "identity")
    if encoding == "identity":
        yield found("compression-ok", "not compressed")
    else:
        yield found("compression-forced", encoding[:32], AS_IT_IS.format("Accept-Encoding"))


def clock(visit: Visit) -> Iterator[Finding]:
    """Compare this machine's clock with the Date of an answer, which counts whole seconds."""
    assert visit.answer is not None
    text = visit.answer.headers.get("date", "")
    try:
        there = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        yield found("clock-unknown", "no date")
        return
    if there.tzinfo is None:
        there = there.replace(tzinfo=UTC)
    differs_ms = int(there.timestamp() * 1000) - visit.clock.now_ms()
    seen = f"the daemon's clock is {abs(differs_ms) // 1000} s {'ahead' if differs_ms > 0 else 'behind'}"
    if abs(differs_ms) <= DOCTOR_CLOCK_MS_MAX:
        yield found("clock-ok", seen)
    else:
        yield found("clock-differs", seen, "timedatectl set-ntp true  # on the machine whose clock is wrong")


def latency(visit: Visit) -> Iterator[Finding]:
    """The median of some pings, each over a connection of its own."""
    times: list[float] = []
    for _ in range(DOCTOR_PINGS):
        try:
            times.append(visit.exchanger.call("ping").took_ms)
        except NoAnswer:
            times.append(visit.step_ms_max)
            break
    median_ms = statistics.median(times)
    seen = f"{median_ms:.0f} ms, the median of {len(times)}"
    if median_ms <= DOCTOR_LATENCY_MS_MAX:
        yield found("latency-ok", seen)
    else:
        yield found(
            "latency-slow", seen, f"ping {visit.target.host}  # the line; if that is quick, the machine is busy"
        )


def version(visit: Visit) -> Iterator[Finding]:
    """Compare the versions of both ends."""
    assert visit.answer is not None
    about = visit.answer.result.get("serverInfo")
    there = str(about.get("version"))[:64] if isinstance(about, dict) else "unknown"
    if there == __version__:
        yield found("version-ok", there)
    else:
        yield found("version-differs", f"there {there}, here {__version__}", "install the newer one on both machines")
