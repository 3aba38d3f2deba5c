"""Hosts of hooks: each starts `convmem capture` for one event after another, as an agent program does."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.daemons import RawClient
from tests.support.source import REPOSITORY

HOOK_S = 30


def variables(state: Path, data_dir: Path, **more: str) -> dict[str, str]:
    """The environment of a hook."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY),
        "XDG_STATE_HOME": str(state),
        "CONVMEM_DATA_DIR": str(data_dir),
        **more,
    }


def event(session_id: str, number: int, at: int, **fields: Any) -> dict[str, Any]:
    """A prompt that is like no other."""
    named = {"session_id": session_id, "event_id": f"{session_id}-{number}", "kind": "prompt", "at": at}
    return {**named, "content": f"prompt {number} of {session_id}", **fields}


def hook(environment: Mapping[str, str], given: Any, *arguments: str, prefix: Sequence[str] = ()) -> float:
    """Start one hook for what a host gives it; the ms that took. It must end well and say nothing."""
    begun = time.perf_counter()
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "convmem", "capture", *arguments],
        env=dict(environment),
        input=given if isinstance(given, bytes) else json.dumps(given).encode(),
        capture_output=True,
        timeout=HOOK_S,
    )
    took_ms = (time.perf_counter() - begun) * 1000
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), done
    return took_ms


def hooks(environment: Mapping[str, str], events: Iterable[Mapping[str, Any]], pause_s: float = 0) -> list[float]:
    """One host: a hook for each event, each after the other and after what else a host does; the ms of each hook."""
    found = []
    for one in events:
        found.append(hook(environment, one))
        if pause_s:
            time.sleep(pause_s)
    return found


def at_once(
    environment: Mapping[str, str], sessions: Mapping[str, Sequence[Mapping[str, Any]]], pause_s: float = 0
) -> list[float]:
    """A host for each session, all at once; the ms of each hook."""
    with ThreadPoolExecutor(len(sessions)) as pool:
        found = [pool.submit(hooks, environment, events, pause_s) for events in sessions.values()]
        return [took_ms for host in found for took_ms in host.result()]


def status(environment: Mapping[str, str]) -> dict[str, Any]:
    """What waits in the spool."""
    command = [sys.executable, "-m", "convmem", "capture", "--status"]
    done = subprocess.run(command, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, timeout=HOOK_S)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def drained(environment: Mapping[str, str]) -> dict[str, Any]:
    """Deliver what waits, and what waits then."""
    hook(environment, b"", "--drain")
    return status(environment)


def stored(client: RawClient, session_id: str) -> list[tuple[str, int]]:
    """What a session holds in the order of the store: contents and times."""
    return [(message["content"], message["timestamp"]) for message in client.history(session_id)]


def expected(events: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """The same of events, if each is stored once, in order, with the time it had."""
    return [(one["content"], one["at"]) for one in events]
