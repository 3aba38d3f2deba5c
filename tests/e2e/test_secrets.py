"""No secret of any known shape is in any byte of the data directory or of a client's spool, whichever way it came."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.daemons import RawClient, daemon
from tests.support.vectors import Secret, secrets

pytestmark = pytest.mark.slow
KINDS = ("prompt", "tool_call", "error")
BATCH = 64
# A shorter fragment stands in any file by chance; tests of the table look for those.
LONG = 5
# In the names of our own tables and fields.
OUR_OWN = ("correct",)


def events(cases: list[Secret]) -> list[dict[str, Any]]:
    """Each text as a prompt, a tool call and an error; where it may be a name, also as each of those."""
    found: list[dict[str, Any]] = []
    for place, case in enumerate(cases):
        for kind in KINDS:
            named = {"event_id": f"{kind} {place}", "session_id": f"secrets {place}", "content": case.text}
            if len(case.text.encode()) <= 64 and "\0" not in case.text:
                named |= dict.fromkeys(("tool", "status", "directory", "project"), case.text)
                named["event_id"] += f" {case.text}"
            found.append({"kind": kind, **named})
    return found


def leaks(directory: Path, cases: list[Secret]) -> set[str]:
    """Which fragments of which secrets stand in which file, as bytes."""
    fragments = {
        (case.name, fragment)
        for case in cases
        for fragment in case.must_not_hold
        if len(fragment) >= LONG and fragment not in OUR_OWN
    }
    assert len({name for name, _ in fragments}) > len(cases) * 0.8
    files = [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()]
    assert files
    return {
        f"{name} in {path.name}"
        for path in files
        for data in [path.read_bytes()]
        for name, fragment in fragments
        if fragment.encode() in data
    }


def post(url: str, given: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(given), BATCH):
        answer = httpx.post(f"{url}/capture", json={"events": given[start : start + BATCH]}, trust_env=False)
        yield answer.json()


def stored(client: RawClient, session_id: str) -> list[str]:
    return [message["content"] for message in client.history(session_id)]


def test_nothing_secret_reaches_the_disk_and_the_rest_of_each_text_does(tmp_path: Path) -> None:
    # What fits into any field whole.
    cases = [case for case in secrets() if len(case.text) < 990]
    assert len(cases) > 250
    data_dir = tmp_path / "data"
    with daemon(data_dir) as running:
        client = running.client("all")
        for facts in post(running.url.removesuffix("/mcp"), events(cases)):
            assert facts["dropped"] == [], facts
        for place, case in enumerate(cases):
            key = f"key {place}" if len(case.text) > 180 or "\0" in case.text else f"key {place} {case.text}"
            client.call("remember", category="other", key=key, value=case.text)
            client.call("save_lesson", situation=case.text, mistake=f"{place} {case.text}", correction="none")
        # Both indexes know all of it, and what was folded from the log anew is looked at as well.
        client.call("get_profile")
        assert leaks(data_dir, cases) == set()
        for case in cases:
            for fragment in case.must_not_hold:
                query = fragment[:300]
                assert client.call("search_messages", query=query, match="exact", limit=1)["results"] == [], case.name
        texts = {place: stored(client, f"secrets {place}") for place in range(len(cases))}
        running.stop()
        assert leaks(data_dir, cases) == set()
        for path in data_dir.glob("*.db*"):
            path.unlink()
        running.start()
        running.client("all").call("get_profile")
        running.stop()
        assert leaks(data_dir, cases) == set()
    for place, case in enumerate(cases):
        whole = [text for text in texts[place] if len(text) < 500] or texts[place]
        assert whole, case.name
        for kept in case.must_hold:
            assert any(kept in text for text in whole), (case.name, kept)


def test_nothing_secret_reaches_a_spool_and_what_is_drained_from_it_is_stored(tmp_path: Path) -> None:
    cases = secrets()
    data_dir, state = tmp_path / "data", tmp_path / "state"
    given = events(cases)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd(), "XDG_STATE_HOME": str(state)}
    command = [sys.executable, "-m", "convmem", "capture", "--data-dir", str(data_dir)]
    for start in range(0, len(given), BATCH):
        lines = "\n".join(json.dumps(event) for event in given[start : start + BATCH])
        done = subprocess.run(
            command, input=lines.encode(), env=environment, capture_output=True, timeout=30, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert sum(path.stat().st_size for path in state.rglob("*") if path.is_file()) > len(given) * 20
    assert leaks(state, cases) == set()
    with daemon(data_dir) as running:
        subprocess.run([*command, "--drain"], env=environment, capture_output=True, timeout=60, check=False)
        client = running.client("all")
        kept = sum(len(stored(client, f"secrets {place}")) for place in range(len(cases)))
        running.stop()
    assert leaks(state, cases) == leaks(data_dir, cases) == set()
    assert kept == len(given)
