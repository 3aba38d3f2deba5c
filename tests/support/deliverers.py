"""Processes that deliver what waits in spools: they belong to nobody, so whoever started hooks sees to their end."""

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WAIT_S = 10


def deliverers(state: Path) -> list[int]:
    """The processes that deliver for spools below this directory of states."""
    found = (deliverer(path) for path in state.glob("convmem/spool/*.drain"))
    return [pid for pid in found if pid is not None]


def deliverer(path: Path) -> int | None:
    """The process that holds this lock, None if nobody does. One that has just begun may not have said so yet."""
    end = time.monotonic() + WAIT_S
    with path.open("rb") as file:
        while time.monotonic() < end:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return None
            pid = int(path.read_text()[1:].strip() or 0)
            # Whoever has begun it may have spoken last, and has this file open here.
            if pid != os.getpid() and holds(pid, path):
                return pid
            time.sleep(0.001)
    raise AssertionError(f"somebody holds {path} and does not say who")


def holds(pid: int, path: Path) -> bool:
    """Whether this process has the lock open: its number may be somebody else's by now."""
    try:
        return any(os.path.realpath(link) == os.path.realpath(path) for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def kill_deliverers(state: Path) -> int:
    """End them as a power cut would; how many there were."""
    count = 0
    for path in state.glob("convmem/spool/*.drain"):
        pid = deliverer(path)
        if pid is not None:
            count += 1
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            end = time.monotonic() + WAIT_S
            while holds(pid, path):
                assert time.monotonic() < end, f"{pid} does not end"
                time.sleep(0.001)
    return count


@contextmanager
def nobody_left(state: Path) -> Iterator[None]:
    """No process delivers for spools below this directory any more behind the block."""
    try:
        yield
    finally:
        kill_deliverers(state)
