"""Search against a real daemon: what was acknowledged is found at once, whatever is done to the tables of search."""

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
WRITERS = 6
# Each writer's texts end so that they are found by a part of a word, in another case, in another script.
FORMS = (
    "Writer{writer}-{number}-ends",
    "書き手{writer}番{number}終",
    "ผู้เขียน{writer}ข้อ{number}จบ",
    "Σίσυφος{writer}x{number}Σ",
)


class Writer(threading.Thread):
    """Writes, and looks at once for what it was told is stored; goes on through broken connections."""

    def __init__(self, running: Daemon, number: int) -> None:
        super().__init__()
        self.client = running.client("all")
        self.number = number
        self.stored: dict[str, str] = {}
        self.missed: list[str] = []
        self.paths: set[str] = set()
        self.is_stopped = threading.Event()

    def run(self) -> None:
        count = 0
        while not self.is_stopped.is_set():
            count += 1
            text = FORMS[count % len(FORMS)].format(writer=self.number, number=count)
            try:
                message_id = self.client.write(f"before {text} after", session_id=f"session {self.number}")[
                    "message_id"
                ]
                self.stored[text] = message_id
                facts = found(self.client, text)
            except httpx.TransportError:
                self.is_stopped.wait(0.02)
                continue
            self.paths.add(facts["path"])
            if message_id not in ids(facts):
                self.missed.append(text)


def found(client: RawClient, query: str) -> Any:
    return client.call("search_messages", query=query, match="exact", limit=100)


def ids(facts: Any) -> list[str]:
    return [result["message_id"] for result in facts["results"]]


def violations(data_dir: Path) -> list[str]:
    told: list[str] = walk(RealFiles(data_dir), domains(), SystemClock(), lambda *_: None)["violations"]
    return told


def followed(client: RawClient) -> dict[str, Any]:
    """Health, once the tables know all that is stored."""
    while True:
        health: dict[str, Any] = client.call("get_system_health")
        if health["search"]["sequence"] == health["sequence"]:
            return health


def test_kill_9_under_writers_loses_nothing_that_is_searched_for(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        writers = [Writer(running, number) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for kill in range(4):
            goal = sum(len(writer.stored) for writer in writers) + 60
            while sum(len(writer.stored) for writer in writers) < goal:
                writers[0].is_stopped.wait(0.01)
            running.kill()
            if kill == 1:
                (tmp_path / "search-1.db").unlink()
            if kill == 2:
                path = tmp_path / "search-1.db"
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
            running.start()
        for writer in writers:
            writer.is_stopped.set()
            writer.join()
        client = running.client("all")
        assert [text for writer in writers for text in writer.missed] == []
        for writer in writers:
            for text, message_id in writer.stored.items():
                assert message_id in ids(found(client, text.swapcase())), text
        assert followed(client)["status"] == "ok"
        assert found(client, "Writer1-")["path"] == "index"
        running.stop()
    assert violations(tmp_path) == []


def test_tables_that_are_removed_under_a_daemon_cost_nobody_an_answer(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        client = running.client("all")
        kept = [client.write(f"needle number {number:03}")["message_id"] for number in range(150)]
        followed(client)
        for path in tmp_path.glob("search-1.db*"):
            path.unlink()
        for number, message_id in enumerate(kept):
            assert ids(found(client, f"number {number:03}")) == [message_id]
        kept.append(client.write("needle number last")["message_id"])
        assert ids(found(client, "number last")) == kept[-1:]
        assert client.call("get_system_health")["status"] == "ok"
        running.stop()
        running.start()
        client = running.client("all")
        assert ids(found(client, "number last")) == kept[-1:]
        followed(client)
        running.stop()
    assert violations(tmp_path) == []


def test_after_a_compaction_searches_go_by_tables_and_find_the_same(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        client = running.client("all")
        kept = [client.write(f"needle number {number:03}")["message_id"] for number in range(150)]
        for message_id in kept[:50]:
            client.call("delete_message", message_id=message_id)
        assert client.call("rebuild_index")["rebuilt"] is True
        facts = client.call("search_messages", query="needle", match="exact", limit=100)
        assert sorted(ids(facts)) == kept[50:]
        assert facts["path"] in ("index", "index+tail")
        running.kill()
        running.start()
        client = running.client("all")
        assert sorted(ids(client.call("search_messages", query="NEEDLE", match="exact", limit=100))) == kept[50:]
        running.stop()
    assert violations(tmp_path) == []
