"""Kill a real daemon under load: every acknowledged write is there, and no client needs a restart."""

import random
import threading
from pathlib import Path

import httpx
import pytest

from convmem.clock import SystemClock
from convmem.daemon import domains
from convmem.files import RealFiles
from convmem.store.check import check
from convmem.store.sqlite import connect_to_read
from tests.support.daemons import Daemon, Refused, daemon

pytestmark = pytest.mark.slow
CLIENTS = 8


class Load(threading.Thread):
    """One client that writes, updates and deletes until told to stop; it remembers what it was told is done.

    A call whose connection broke is neither done nor undone: its outcome is unknown, and it is kept apart.
    """

    def __init__(self, running: Daemon, name: str) -> None:
        super().__init__()
        self.client = running.client("all", mcp_session_id="from-before-a-restart")
        self.session = name
        self.live: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.unknown: set[str] = set()
        self.done = 0
        self.is_stopped = threading.Event()
        self.dice = random.Random(name)
        self.failure: BaseException | None = None

    def run(self) -> None:
        number = 0
        while not self.is_stopped.is_set():
            number += 1
            try:
                self._step(number)
                self.done += 1
            except httpx.TransportError:
                self.is_stopped.wait(0.02)
            except BaseException as failure:  # noqa: BLE001 - shown by the test
                self.failure = failure
                return

    def _step(self, number: int) -> None:
        text = f"{self.session} says {number} " + "語" * self.dice.randrange(400)
        choice = self.dice.random()
        if choice < 0.7 or not self.live:
            receipt = self.client.write(text, session_id=self.session, idempotency_key=f"{self.session}-{number}")
            self.live[receipt["message_id"]] = text
        else:
            message_id = self.dice.choice(list(self.live))
            before = self.live.pop(message_id)
            self.unknown.add(message_id)
            try:
                if choice < 0.9:
                    self.client.call("update_message", message_id=message_id, content=text)
                    self.live[message_id] = text
                else:
                    self.client.call("delete_message", message_id=message_id)
                    self.deleted.add(message_id)
            except Refused:
                self.live[message_id] = before
                raise
            self.unknown.discard(message_id)


def sound(data_dir: Path) -> list[str]:
    files = RealFiles(data_dir)
    return check(files.open_to_read("convmem.log"), connect_to_read(data_dir / "index-1.db"), domains(), SystemClock())


def test_kill_9_under_load_loses_nothing_acknowledged_and_the_old_clients_go_on(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        loads = [Load(running, f"client-{number}") for number in range(CLIENTS)]
        for load in loads:
            load.start()
        for _ in range(3):
            reached = sum(load.done for load in loads) + 150
            while sum(load.done for load in loads) < reached:
                assert not any(load.failure for load in loads), [load.failure for load in loads]
                loads[0].is_stopped.wait(0.01)
            running.kill()
            running.start()
        reached = sum(load.done for load in loads) + 100
        while sum(load.done for load in loads) < reached:
            loads[0].is_stopped.wait(0.01)
        for load in loads:
            load.is_stopped.set()
            load.join(20)
        assert [load.failure for load in loads] == [None] * CLIENTS
        reader = running.client("all")
        for load in loads:
            there = {message["message_id"]: message for message in reader.history(load.session)}
            assert set(load.live) <= set(there) | load.unknown
            assert not load.deleted & set(there)
            for message_id, text in load.live.items():
                whole = reader.call("read_messages", view="content", message_id=message_id, limit=65_536)
                assert whole["content"] == text
        assert running.stop()[0] == 0
    assert sound(tmp_path) == []


def test_the_same_key_after_a_lost_answer_makes_one_message(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        client = running.client()
        first = client.write("only once", idempotency_key="k-1")
        running.kill()
        running.start()
        again = client.write("only once", idempotency_key="k-1")
        assert again.pop("replayed") is True
        assert again == first
        with pytest.raises(Refused) as refused:
            client.write("something else", idempotency_key="k-1")
        assert refused.value.code == "CONFLICT"
        assert len(client.history()) == 1


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_each_acknowledged_write_is_there_after_any_end(tmp_path: Path, how: str) -> None:
    acknowledged: list[str] = []
    with daemon(tmp_path) as running:
        client = running.client()

        def write() -> None:
            try:
                while True:
                    acknowledged.append(client.write(f"number {len(acknowledged)}")["message_id"])
            except (httpx.TransportError, Refused):
                return

        writer = threading.Thread(target=write)
        writer.start()
        while len(acknowledged) < 120:
            writer.join(0.005)
        getattr(running, how)()
        writer.join(20)
        running.start()
        found = [message["message_id"] for message in running.client().history()]
        assert found[: len(acknowledged)] == acknowledged
        assert len(found) <= len(acknowledged) + 1, "at most the write whose answer was lost"
        assert found == sorted(found)


def test_ids_rise_across_a_restart(tmp_path: Path) -> None:
    made = []
    with daemon(tmp_path) as running:
        for _ in range(3):
            client = running.client()
            made += [client.write("x")["message_id"] for _ in range(5)]
            running.kill()
            running.start()
    assert made == sorted(set(made))
