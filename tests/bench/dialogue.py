"""Real dialogue through a real daemon, killed in the middle: python -m tests.bench.dialogue LOCOMO.json

The file is LoCoMo's (a list of conversations, each with session_1, session_2, … of turns). One turn is one message; the
sessions are shared out among 8 clients, who write each turn under an idempotency key and repeat it when the connection
broke. After a third and two thirds of the turns the daemon is killed with SIGKILL and started again. Then everything is
read back and compared, and the store is checked.
"""

import json
import queue
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from convmem import config
from convmem.daemon import check
from tests.support.daemons import Daemon, daemon

CLIENTS = 8


def turns(path: Path) -> dict[str, list[str]]:
    """The content of each turn, by session."""
    sessions: dict[str, list[str]] = {}
    for sample in json.loads(path.read_text()):
        for name, found in sample["conversation"].items():
            if name.startswith("session_") and isinstance(found, list):
                sessions[f"{sample['sample_id']}/{name}"] = [f"{turn['speaker']}: {turn['text']}" for turn in found]
    return sessions


class Writer(threading.Thread):
    """One client: takes whole sessions, writes their turns in order, repeats what got no answer."""

    def __init__(self, running: Daemon, work: "queue.Queue[tuple[str, list[str]]]", written: list[str]) -> None:
        super().__init__()
        self.client = running.client()
        self.work, self.written = work, written
        self.repeated = 0

    def run(self) -> None:
        while True:
            try:
                session, texts = self.work.get_nowait()
            except queue.Empty:
                return
            for number, text in enumerate(texts):
                self.written.append(self._write(session, text, f"{session}#{number}"))

    def _write(self, session: str, text: str, key: str) -> str:
        for _ in range(600):
            try:
                receipt: dict[str, Any] = self.client.write(text, session_id=session, idempotency_key=key)
                return str(receipt["message_id"])
            except httpx.TransportError:
                self.repeated += 1
                time.sleep(0.05)
        raise SystemExit("the daemon did not come back")


def main() -> None:
    sessions = turns(Path(sys.argv[1]))
    total = sum(map(len, sessions.values()))
    work: queue.Queue[tuple[str, list[str]]] = queue.Queue()
    for session in sessions.items():
        work.put(session)
    directory = Path(tempfile.mkdtemp())
    written: list[str] = []
    try:
        with daemon(directory) as running:
            writers = [Writer(running, work, written) for _ in range(CLIENTS)]
            begun = time.perf_counter()
            for writer in writers:
                writer.start()
            for share in (total // 3, total * 2 // 3):
                while len(written) < share:
                    time.sleep(0.005)
                running.kill()
                running.start()
            for writer in writers:
                writer.join()
            elapsed = time.perf_counter() - begun
            reader = running.client("all")
            for session, texts in sessions.items():
                there = reader.history(session)
                assert [message["content"] for message in there] == texts, session
            health = reader.call("get_system_health")
            running.stop()
        assert len(written) == len(set(written)) == total == health["live"]
        violations = check(config.load({"data_dir": str(directory)}, {}, None))
        assert violations == [], violations
    finally:
        shutil.rmtree(directory)
    repeated = sum(writer.repeated for writer in writers)
    print(
        f"{total} turns in {len(sessions)} sessions by {CLIENTS} clients in {elapsed:.1f} s with two SIGKILLs:"
        f" {repeated} calls repeated, all read back equal, store sound"
    )


if __name__ == "__main__":
    main()
