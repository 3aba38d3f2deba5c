"""A storm of captured events over a daemon that keeps dying: python -m tests.bench.capture_storm [DIRECTORY [PAUSE_MS]]

10,000 different events: 1,000 through process starts of `convmem capture`, four at once, the others in requests of one
client, while the daemon is killed and restarted five times. Each must be stored exactly once, with its own time, and
the spool must be empty at the end. Prints what the hooks took beyond a bare start of the interpreter, which is measured
at the same time under the same load. PAUSE_MS is what a host does between two hooks (0): without it four hosts alone
keep more than two cores busy, and the figures say how long processes wait for a core.
"""

import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from convmem.clock import SystemClock
from convmem.hooks import events, posting, target
from tests.bench.capture import percentile
from tests.support.daemons import Daemon, complaints, daemon
from tests.support.deliverers import nobody_left
from tests.support.hosts import at_once, drained, event, expected, stored, variables

HOSTS, EACH = 4, 250
SESSIONS, IN_SESSION, IN_REQUEST = 9, 1_000, 50
KILLS = 5
ANSWER_MS_MAX, RETRY_S, PATIENCE_S = 5_000, 0.05, 120


def main() -> None:
    if len(sys.argv) > 1:
        storm(Path(sys.argv[1]), int(sys.argv[2]) / 1000 if len(sys.argv) > 2 else 0)
    else:
        with tempfile.TemporaryDirectory(prefix="convmem-storm-") as place:
            storm(Path(place), 0)


def storm(place: Path, pause_s: float) -> None:
    now_ms = SystemClock().now_ms() - 600_000
    hosts = {f"host-{host}": [event(f"host-{host}", n, now_ms + n) for n in range(EACH)] for host in range(HOSTS)}
    others = {
        f"in-{which}": [event(f"in-{which}", n, now_ms + n) for n in range(IN_SESSION)] for which in range(SESSIONS)
    }
    environment = variables(place / "state", place / "data")
    with daemon(place / "data") as running, nobody_left(place / "state"):
        begun = time.perf_counter()
        storms_over = threading.Event()
        with ThreadPoolExecutor(4) as pool:
            killing = pool.submit(kill, running, storms_over)
            sending = pool.submit(send, place / "data", others)
            bare = pool.submit(bare_starts, storms_over)
            try:
                took = at_once(environment, hosts, pause_s)
                requests = sending.result()
            finally:
                storms_over.set()
            kills, starts = killing.result(), bare.result()
        left = drained(environment)
        print(f"{time.perf_counter() - begun:.1f} s, {kills} kills, {requests} requests, spool at the end: {left}")
        client = running.client("messages")
        wrong = [name for name, said in (hosts | others).items() if stored(client, name) != expected(said)]
        facts = client.call("get_system_health")
        running.stop()
    show(starts, took)
    print(f"log of {facts['log_bytes']} bytes; check: {complaints(place / 'data') or 'sound'}")
    assert not wrong, f"not each once, in order and with its own time: {wrong}"
    assert (kills, left["depth"], left["dropped"]) == (KILLS, 0, 0)
    print("each of 10,000 events is stored once, in order, with its own time")


def kill(running: Daemon, is_over: threading.Event) -> int:
    """Kill the daemon and start it again, KILLS times in all, some of them after the storm if that is short."""
    for _ in range(KILLS):
        is_over.wait(3)
        running.kill()
        is_over.wait(0.5)
        running.start()
    return KILLS


def send(data_dir: Path, sessions: dict[str, list[dict[str, Any]]]) -> int:
    """Post all of it, each request again and again until it is answered; how many that took."""
    clock, there = SystemClock(), target.Target(None, str(data_dir), {}, "")
    requests = 0
    for said in sessions.values():
        for start in range(0, len(said), IN_REQUEST):
            lines = [events.line(one, "", 0) or b"" for one in said[start : start + IN_REQUEST]]
            end = time.monotonic() + PATIENCE_S
            while posting.deliver(there, lines, None, ANSWER_MS_MAX, clock).status != posting.OK:
                assert time.monotonic() < end, "no daemon answers"
                requests += 1
                time.sleep(RETRY_S)
            requests += 1
            time.sleep(RETRY_S)
    return requests


def bare_starts(is_over: threading.Event) -> list[float]:
    """The ms of bare starts of the interpreter, one after another while the storm lasts."""
    found = []
    while not is_over.wait(0.05):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True, stdin=subprocess.DEVNULL)
        found.append((time.perf_counter() - begun) * 1000)
    return found


def show(bare: list[float], took: list[float]) -> None:
    print(f"{'ms':24}{'p50':>8}{'p99':>8}{'max':>8}")
    for name, found in (("python -c pass", bare), ("convmem capture", took)):
        print(f"{name:24}" + "".join(f"{percentile(found, share):8.1f}" for share in (50, 99, 100)))
    beyond = [percentile(took, share) - percentile(bare, share) for share in (50, 99, 100)]
    print(f"{'beyond, at each share':24}" + "".join(f"{ms:8.1f}" for ms in beyond))


if __name__ == "__main__":
    main()
