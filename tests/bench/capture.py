"""What `convmem capture` costs its host: python -m tests.bench.capture [STARTS]

A process start for each event, beside bare starts of the interpreter; one after another, in turn, so that all meet the
same machine. Goal: at p99 at most 50 ms beyond the interpreter's own start, whatever the daemon does.
"""

import fcntl
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.support.daemons import daemon
from tests.support.deliverers import nobody_left
from tests.support.hook_server import hook_server
from tests.support.source import REPOSITORY

STARTS = 300
BEYOND_MS_MAX = 50
BARE = ("-c", "pass")
# What pip makes of the package's command.
SCRIPT = """import re
import sys
from convmem.__main__ import main
if __name__ == "__main__":
    sys.argv[0] = re.sub(r"(-script\\.pyw|\\.exe)?$", "", sys.argv[0])
    sys.exit(main())
"""
TEXT = "please look at the test of the parser, it fails with 日本語 and ภาษาไทย since yesterday " * 3


def main() -> None:
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else STARTS
    with tempfile.TemporaryDirectory(prefix="convmem-bench-") as place, ExitStack() as stack:
        (Path(place) / "convmem").write_text(SCRIPT, encoding="utf-8")
        cases = cases_in(Path(place), stack)
        times: dict[str, list[float]] = {name: [] for name in cases}
        processor_ms = dict.fromkeys(cases, 0.0)
        for number in range(starts):
            for name, start in cases.items():
                before = of_children_ms()
                times[name].append(start(number))
                processor_ms[name] += of_children_ms() - before
        bare = percentile(times["python -c pass"], 50)
        columns = "".join(f"{name:>8}" for name in ("p50", "p90", "p99", "max"))
        print(f"{'':28}{columns}{'p99 beyond bare p50':>22}{'processor':>12}  ms, {starts} starts each")
        for name, found in times.items():
            row = "".join(f"{percentile(found, share):8.1f}" for share in (50, 90, 99, 100))
            print(f"{name:28}{row}{percentile(found, 99) - bare:22.1f}{processor_ms[name] / starts:12.1f}")


def cases_in(place: Path, stack: ExitStack) -> dict[str, Callable[[int], float]]:
    """What is measured, by name: each starts one process for an event and tells its ms."""
    slow_socket = place / "slow"
    slow_socket.mkdir()
    slow = stack.enter_context(hook_server(slow_socket / "convmem.sock"))
    slow.wait_s = 5
    stack.enter_context(daemon(place / "up"))
    stack.enter_context(nobody_left(place / "full"))
    full = environment(place / "full", place / "away")

    def captured(number: int, variables: dict[str, str]) -> float:
        event = {"event_id": f"e{number}", "session_id": "bench", "kind": "prompt", "content": f"{number} {TEXT}"}
        return started((str(place / "convmem"), "capture"), variables, json.dumps(event))

    captured(-1, full)
    stack.enter_context(nobody_left(place / "kept"))
    kept = environment(place / "kept", place / "away")
    captured(-1, kept)
    (lock,) = (place / "kept").rglob("*.lock")
    fcntl.flock(stack.enter_context(lock.open()), fcntl.LOCK_EX)

    def with_empty_spool(number: int, data_dir: Path) -> float:
        # A spool of its own each time: else only the first event would meet the daemon at all.
        state = place / "states" / f"{data_dir.name}-{number}"
        with nobody_left(state):
            return captured(number, environment(state, data_dir))

    return {
        "python -c pass": lambda number: started(BARE),
        "python -I -c pass": lambda number: started(("-I", *BARE)),
        "daemon up": lambda number: captured(number, environment(place / "up-state", place / "up")),
        "daemon away": lambda number: with_empty_spool(number, place / "away"),
        "daemon slow (5 s)": lambda number: with_empty_spool(number, slow_socket),
        "spool not empty": lambda number: captured(number, full),
        "spool kept by others": lambda number: captured(number, kept),
    }


def environment(state: Path, data_dir: Path) -> dict[str, str]:
    """The variables of a hook."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY),
        "XDG_STATE_HOME": str(state),
        "CONVMEM_DATA_DIR": str(data_dir),
    }


def started(arguments: tuple[str, ...], variables: dict[str, str] | None = None, given: str = "") -> float:
    """Run the interpreter once; its ms."""
    variables = variables or {"PATH": os.environ["PATH"]}
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], input=given.encode(), env=variables, capture_output=True)
    took_ms = (time.perf_counter() - begun) * 1000
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), done
    return took_ms


def of_children_ms() -> float:
    """What the processes that have ended took of the processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def percentile(found: list[float], share: int) -> float:
    """The value that `share` percent are not above."""
    return sorted(found)[min(len(found) - 1, len(found) * share // 100)]


if __name__ == "__main__":
    main()
