"""Backups of a real daemon under load: made, added to, proven, restored, cut off, and kept up on a schedule."""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from convmem import restoring
from convmem.cli import run
from convmem.errors import BackupRefused
from tests.support.daemons import Daemon, RawClient, complaints, daemon

pytestmark = pytest.mark.slow
CLIENTS = 8
PATIENCE_S = 30
PLACES = 60


class Load(threading.Thread):
    """One client that writes, and deletes a part of it, until it is stopped; it knows what was acknowledged."""

    def __init__(self, running: Daemon, number: int) -> None:
        super().__init__()
        self._client = running.client("all")
        self._session = f"session {number}"
        self._lock = threading.Lock()
        self._live: dict[str, str] = {}
        self.deleted: list[str] = []
        self.is_stopped = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            number = 0
            while not self.is_stopped.is_set():
                number += 1
                text = f"{self._session} says {number} " + "語" * (number % 300)
                made = self._client.write(text, session_id=self._session)
                with self._lock:
                    self._live[made["message_id"]] = text
                if number % 5 == 0:
                    with self._lock:
                        message_id, _ = self._live.popitem()
                    self._client.call("delete_message", message_id=message_id)
                    self.deleted.append(message_id)
        except BaseException as failure:  # noqa: BLE001 - shown by the test
            self.failure = failure

    def acknowledged(self) -> dict[str, str]:
        """Messages that were written and that nobody has asked to be deleted, so far."""
        with self._lock:
            return dict(self._live)


@contextmanager
def load(running: Daemon) -> Iterator[list[Load]]:
    threads = [Load(running, number) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.is_stopped.set()
        for thread in threads:
            thread.join()
    assert [thread.failure for thread in threads] == [None] * CLIENTS


def until(is_so: Callable[[], object], *, patience_s: float = PATIENCE_S) -> None:
    """Look again and again until it is so; each look takes its time."""
    end = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < end, "it never came to be so"


def health(client: RawClient) -> dict[str, Any]:
    return client.call("get_system_health")


class Commands:
    """Verbs of the command line in this process, asking the daemon of one data directory."""

    def __init__(self, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._environment = {"CONVMEM_DATA_DIR": str(data_dir)}
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Mapping[str, Any]:
        status = run([*arguments, "--json"], self._environment, Path("/"))
        printed = self._capsys.readouterr()
        assert status == 0, printed.err
        facts: Mapping[str, Any] = json.loads(printed.out)
        return facts


def contents(client: RawClient) -> dict[str, str]:
    """Every message of the sessions that the load writes."""
    return {
        message["message_id"]: message["content"]
        for number in range(CLIENTS)
        for message in client.history(f"session {number}")
    }


def test_backups_under_load_hold_what_was_acknowledged_and_become_a_store_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data_dir, copy = tmp_path / "data", tmp_path / "copy"
    command = Commands(data_dir, capsys)
    with daemon(data_dir) as running, load(running) as clients:
        until(lambda: min(len(client.acknowledged()) for client in clients) > 10)
        first = command("backup", str(copy))
        second = command("backup", str(copy))
        assert second["copied_bytes"] == second["log_bytes"] - first["log_bytes"]
        assert command("backup", "verify", str(copy))["state_hash"] == second["state_hash"]
        compacted = running.client("all").call("rebuild_index")
        assert compacted["rebuilt"] is True
        before = {message_id: text for client in clients for message_id, text in client.acknowledged().items()}
        deleted = {message_id for client in clients for message_id in client.deleted}
        third = command("backup", str(copy))
        assert third["generation"] == "2"
        assert {path.name for path in copy.iterdir()} == {"backup.lock", "log-2", "manifest.json", "proven.json"}
        proven = command("backup", "verify", str(copy))
        assert proven["state_hash"] == third["state_hash"]
        at_rest = {message_id for client in clients for message_id in client.acknowledged()}
    restored = tmp_path / "restored"
    assert Commands(restored, capsys)("restore", str(copy))["live"] == proven["live"]
    with daemon(restored) as again:
        client = again.client("all")
        found = contents(client)
        # What was deleted while the backup was made may be there or not.
        lived = before.keys() & at_rest
        assert {message_id: found.get(message_id) for message_id in lived} == {key: before[key] for key in lived}
        assert not deleted & found.keys()
        assert len(found) == proven["live"]
        assert health(client)["sequence"] == third["sequence"]
        client.write("and on it goes")
    assert complaints(restored) == []


def offsets(size: int) -> list[int]:
    """Places spread over a file, its ends among them."""
    return sorted({at * (size - 1) // PLACES for at in range(PLACES + 1)}) if size else []


def test_a_flipped_byte_anywhere_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data_dir, copy = tmp_path / "data", tmp_path / "copy"
    command = Commands(data_dir, capsys)
    with daemon(data_dir) as running:
        client = running.client()
        for number in range(30):
            client.write(f"{number} " + "x" * 500)
        (data_dir / "tokens.json").write_text('{"laptop": "a hash"}')
        command("backup", str(copy), "--with-tokens")
        command("backup", "verify", str(copy))
    flipped = 0
    for path in sorted(copy.iterdir()):
        data = path.read_bytes()
        for at in offsets(len(data)):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
            with pytest.raises(BackupRefused):
                restoring.verify(copy, lambda done, total, sentence: None)
            flipped += 1
        path.write_bytes(data)
    assert flipped > 3 * PLACES
    assert restoring.verify(copy, lambda done, total, sentence: None)["live"] == 30


def test_a_backup_that_was_killed_is_the_old_one_or_the_new_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data_dir, copy = tmp_path / "data", tmp_path / "copy"
    command = Commands(data_dir, capsys)
    text = "k" * 1_000_000
    sequences = set()
    with daemon(data_dir) as running:
        running.client().write("the first")
        known = command("backup", str(copy))
    for _ in range(2):
        with daemon(data_dir) as running:
            client = running.client()
            for _ in range(8):
                client.write(text)
            size = (copy / "log-1").stat().st_size
            asking = threading.Thread(
                target=run, args=(["backup", str(copy)], {"CONVMEM_DATA_DIR": str(data_dir)}, Path("/"))
            )
            asking.start()
            until(lambda before=size: (copy / "log-1").stat().st_size > before)
            running.kill()
            asking.join()
        capsys.readouterr()
        proven = restoring.verify(copy, lambda done, total, sentence: None)
        sequences.add(int(proven["sequence"]))
        assert int(proven["sequence"]) >= int(known["sequence"])
    with daemon(data_dir):
        made = command("backup", str(copy))
        assert made["sequence"] == "17"
        assert command("backup", "verify", str(copy))["live"] == 17
    assert not list(copy.glob("staging-*"))
    assert sequences <= {1, 9, 17}


def test_a_schedule_proves_again_and_again_survives_a_restart_and_says_when_it_fails(tmp_path: Path) -> None:
    data_dir, copy = tmp_path / "data", tmp_path / "copy"
    arguments = ("--backup-to", str(copy), "--backup-every", "1s")
    with daemon(data_dir, *arguments) as running:
        client = running.client("all")
        client.write("a")
        until(lambda: health(client)["last_proven_restore_ms"] is not None)
        first = health(client)["last_proven_restore_ms"]
        until(lambda: health(client)["last_proven_restore_ms"] > first)
        until(lambda: json.loads((copy / "manifest.json").read_text())["sequence"] == 1)
        assert health(client)["status"] == "ok"
        last = health(client)["last_proven_restore_ms"]
        _, journal = running.stop()
        assert "restore proven" in journal
    with daemon(data_dir, "--backup-to", str(copy), "--backup-every", "1h") as running:
        client = running.client("all")
        until(lambda: health(client)["last_proven_restore_ms"] is not None)
        assert health(client)["last_proven_restore_ms"] >= last, "known from before, no new one is due"
    shutil.rmtree(copy)
    copy.write_text("a file in its place")
    with daemon(data_dir, *arguments) as running:
        client = running.client("all")
        until(lambda: any("backup failed" in reason for reason in health(client)["reasons"]))
        assert httpx.get(f"http://127.0.0.1:{running.port}/healthz").json() == {"status": "degraded"}
        until(lambda: any("no restore" in reason for reason in health(client)["reasons"]))
        assert client.write("reads and writes go on")["message_id"]
        copy.unlink()
        until(lambda: health(client)["status"] == "ok")
        _, journal = running.stop()
        assert f"the backup in {copy} failed" in journal
    assert restoring.verify(copy, lambda done, total, sentence: None)["live"] >= 1
