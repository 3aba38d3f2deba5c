"""Kill a real daemon while it compacts under writes: every acknowledged write is there, and the store is sound."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.test_restart import Load
from tests.support.daemons import Daemon, RawClient, complaints, daemon

pytestmark = pytest.mark.slow
MESSAGES, KILLS, LOADS = 2_000, 10, 2
DELAY_MS_MAX = 800


class Compacting(threading.Thread):
    """Asks for one compaction after another; what it was told is done it counts."""

    def __init__(self, running: Daemon) -> None:
        super().__init__()
        self.client = running.client("all")
        self.generations: list[int] = []
        self.is_stopped = threading.Event()

    def run(self) -> None:
        while not self.is_stopped.is_set():
            try:
                self.generations.append(int(self.client.call("rebuild_index")["generation"]))
            except httpx.TransportError:
                self.is_stopped.wait(0.005)


def filled(running: Daemon) -> dict[str, str]:
    """A few thousand messages, written by a crowd: text by id."""
    client = running.client("all")

    def write(number: int) -> tuple[str, str]:
        text = f"kept {number} " + "語" * (number % 100)
        return str(client.write(text, session_id="kept")["message_id"]), text

    with ThreadPoolExecutor(8) as crowd:
        return dict(crowd.map(write, range(MESSAGES)))


def is_compacting(directory: Path) -> bool:
    return any(path.name.startswith("staging-") for path in directory.iterdir())


def test_kill_9_while_it_compacts_loses_nothing_acknowledged(tmp_path: Path) -> None:
    dice = random.Random(2_024)
    found_staging = 0
    with daemon(tmp_path) as running:
        kept = filled(running)
        loads = [Load(running, f"client-{number}") for number in range(LOADS)]
        compacting = Compacting(running)
        for thread in (*loads, compacting):
            thread.start()
        for _ in range(KILLS):
            while not is_compacting(tmp_path):
                assert not any(load.failure for load in loads), [load.failure for load in loads]
                compacting.is_stopped.wait(0.001)
            compacting.is_stopped.wait(dice.randrange(DELAY_MS_MAX) / 1_000)
            running.kill()
            found_staging += is_compacting(tmp_path)
            running.start()
        compacting.is_stopped.set()
        for load in loads:
            load.is_stopped.set()
        for thread in (*loads, compacting):
            thread.join(20)
        assert [load.failure for load in loads] == [None] * LOADS
        reader = running.client("all")
        everything_is_there(reader, kept, loads)
        reader.call("delete_message", message_id=reader.write("waste")["message_id"])
        assert reader.call("rebuild_index")["rebuilt"] is True
        everything_is_there(reader, kept, loads)
        assert complaints(tmp_path) == []
        assert reader.call("get_system_health")["status"] == "ok"
        assert running.stop()[0] == 0
        assert len(list(tmp_path.glob("index-*"))) == 1
    assert complaints(tmp_path) == []
    assert compacting.generations == sorted(compacting.generations)
    assert found_staging >= KILLS // 3, "not all came between two compactions"


def everything_is_there(reader: RawClient, kept: dict[str, str], loads: list[Load]) -> None:
    """What was acknowledged is there and reads as it did; what was deleted is not."""
    assert {message["message_id"]: message["content"] for message in reader.history("kept")} == kept
    for load in loads:
        history = {message["message_id"]: message for message in reader.history(load.session)}
        assert set(load.live) <= set(history) | load.unknown
        assert not load.deleted & set(history)
        for message_id, text in load.live.items():
            assert message_id in load.unknown or history[message_id]["content"] == text
