"""What hooks send to a real daemon: stored once, durable before it is answered, found like any message."""

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from convmem.checking import walk
from convmem.clock import SystemClock
from convmem.daemon import domains
from convmem.files import RealFiles
from tests.support.daemons import Daemon, RawClient, daemon

pytestmark = pytest.mark.slow
POSTERS, BATCHES, BATCH = 4, 12, 25
AT = 1_764_000_000_000


def post(running: Daemon, body: Any, **headers: str) -> httpx.Response:
    return httpx.post(running.url.removesuffix("/mcp") + "/capture", json=body, headers=headers, trust_env=False)


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"event_id": f"e{number}", "kind": "prompt", "session_id": "s", "content": f"prompt {number}", **more}


class Poster(threading.Thread):
    """Sends its batches in order; one that was not answered is sent again, as a hook's client does."""

    def __init__(self, running: Daemon, number: int, next_batch: threading.Semaphore) -> None:
        super().__init__()
        self.running, self.number, self.next_batch = running, number, next_batch
        self.answered = 0

    def run(self) -> None:
        for batch in range(BATCHES):
            self.next_batch.acquire()
            first = self.number * 10_000 + batch * BATCH
            events = [event(first + place, at=AT + first + place) for place in range(BATCH)]
            while not self._sent(events):
                pass
            self.answered += 1

    def _sent(self, events: list[dict[str, Any]]) -> bool:
        try:
            answer = post(self.running, {"events": events})
        except httpx.TransportError:
            return False
        facts = answer.json()
        return answer.status_code == 200 and facts["stored"] + facts["replayed"] == len(events)


def lines(client: RawClient) -> list[dict[str, Any]]:
    """Every message of the store."""
    found: list[dict[str, Any]] = []
    arguments: dict[str, Any] = {"view": "history", "session_id": "s", "limit": 500}
    while True:
        facts = client.call("read_messages", **arguments)
        found += facts["messages"]
        if facts["next_cursor"] is None:
            return found
        arguments["cursor"] = facts["next_cursor"]


def test_each_event_is_stored_once_with_its_time_through_kill_9(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        turns = threading.Semaphore(0)
        posters = [Poster(running, number, turns) for number in range(POSTERS)]
        for poster in posters:
            poster.start()
        for _ in range(4):
            turns.release(POSTERS * BATCHES // 5)
            running.kill()
            running.start()
        turns.release(POSTERS * BATCHES)
        for poster in posters:
            poster.join()
        stored = lines(running.client("all"))
        running.stop()
    sent = {f"e{poster * 10_000 + place}" for poster in range(POSTERS) for place in range(BATCHES * BATCH)}
    assert sorted(message["capture"]["event_id"] for message in stored) == sorted(sent)
    assert all(message["timestamp"] == AT + int(message["capture"]["event_id"][1:]) for message in stored)
    numbers = [message["number"] for message in stored]
    assert numbers == sorted(set(numbers))
    told: list[str] = walk(RealFiles(tmp_path), domains(), SystemClock(), lambda *_: None)["violations"]
    assert told == []


def test_what_was_captured_is_found_read_exported_and_deleted_like_any_message(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        client = running.client("all")
        answer = post(running, {"events": [event(1, content="猫の名前はミソ", directory="/srv/cats")]})
        assert answer.json() == {"stored": 1, "replayed": 0, "dropped": []}
        (found,) = client.call("search_messages", query="名前")["results"]
        assert (found["capture"]["kind"], found["metadata"]["memory_tier"]) == ("prompt", "short")
        (line,) = client.call("read_messages", view="export")["lines"]
        assert '"capture":{"kind":"prompt","event_id":"e1","directory":"/srv/cats"}' in line
        client.call("delete_message", message_id=found["message_id"])
        client.call("rebuild_index")
        assert post(running, {"events": [event(1)]}).json()["replayed"] == 1
        assert lines(client) == []


def test_health_says_what_a_clients_spool_has_lost(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        spool = {"depth": 0, "oldest_at": None, "dropped": 14, "dropped_since": AT}
        assert post(running, {"events": [event(1)], "spool": spool}).status_code == 200
        (told,) = running.client("all").call("get_system_health")["spools"]
        assert told["sentence"] == "local: 14 events dropped since 2025-11-24 16:00 UTC"


@pytest.mark.parametrize(("redact", "is_kept"), [("capture", True), ("all", False)])
def test_a_callers_own_words_are_kept_unless_everything_is_redacted(tmp_path: Path, redact: str, is_kept: bool) -> None:
    key = "ghp_" + "FAKE" * 9
    with daemon(tmp_path, "--redact", redact) as running:
        client = running.client("all")
        written = client.write(f"the key is {key}, keep it", metadata={"summary": f"about {key}", "tags": [key]})
        client.call("update_message", message_id=written["message_id"], content=f"now {key} and {key}")
        (message,) = client.history()
        client.call("search_messages", query="keep it")
    assert (key in message["content"], key in message["metadata"]["summary"], key in message["metadata"]["tags"]) == (
        (is_kept,) * 3
    )
    if not is_kept:
        assert message["content"].startswith("now [REDACTED:")
        for path in tmp_path.rglob("*"):
            assert path.is_socket() or path.is_dir() or key.encode() not in path.read_bytes(), path
