"""The daemon as service managers and containers run it: what they hear of it, and where it has to do with little."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands import PROGRAM
from tests.support.daemons import Daemon, daemon, wait_until_listening

pytestmark = pytest.mark.slow
WAIT_S = 30


class Manager:
    """A service manager's socket, and what was heard on it."""

    def __init__(self, unix: socket.socket) -> None:
        self._unix = unix
        unix.settimeout(WAIT_S)

    def hear(self) -> list[str]:
        """The lines of the next datagram."""
        return self._unix.recv(4096).decode().split("\n")

    def until(self, line: str) -> list[str]:
        """The lines of the next datagram that holds this one."""
        while line not in (lines := self.hear()):
            pass
        return lines

    def is_silent(self, for_s: float) -> bool:
        """True if nothing comes for so long; what has come before is dropped."""
        self._unix.settimeout(0)
        try:
            while True:
                self._unix.recv(4096)
        except BlockingIOError:
            self._unix.settimeout(for_s)
        try:
            self._unix.recv(4096)
        except TimeoutError:
            return True
        finally:
            self._unix.settimeout(WAIT_S)
        return False


@contextmanager
def managed(tmp_path: Path, *arguments: str, watchdog_ms: int = 400) -> Iterator[tuple[Daemon, Manager]]:
    address = str(tmp_path / "notify")
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": str(watchdog_ms * 1000)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unix:
        unix.bind(address)
        with daemon(tmp_path / "data", *arguments, environment=environment) as running:
            yield running, Manager(unix)


def test_it_says_that_it_is_ready_that_it_works_and_that_it_stops(tmp_path: Path):
    with managed(tmp_path) as (running, manager):
        assert manager.until("READY=1") == ["READY=1", "STATUS=serving"]
        # Whoever waited for that is served.
        assert running.client().write("first")["sequence"] == "1"
        for _ in range(3):
            assert manager.until("WATCHDOG=1")[1] == "STATUS=serving"
        running.send(signal.SIGTERM)
        assert manager.until("STOPPING=1")
        assert running.finish()[0] == 0


def test_a_daemon_that_stands_still_is_not_heard_of(tmp_path: Path):
    with managed(tmp_path) as (running, manager):
        manager.until("WATCHDOG=1")
        running.send(signal.SIGSTOP)
        assert manager.is_silent(1)
        running.send(signal.SIGCONT)
        manager.until("WATCHDOG=1")
        assert running.stop()[0] == 0


def test_what_it_is_degraded_by_stands_in_its_status(tmp_path: Path):
    backups = tmp_path / "taken"
    backups.write_text("no directory")
    with managed(tmp_path, "--backup-to", str(backups), "--backup-every", "1m") as (running, manager):
        while not manager.until("WATCHDOG=1")[1].startswith("STATUS=degraded: "):
            pass
        assert running.stop()[0] == 0


def test_a_store_that_is_refused_is_never_ready(tmp_path: Path):
    with daemon(tmp_path / "data") as running:
        for number in range(20):
            running.client().write(f"number {number}")
        running.stop()
    log = tmp_path / "data" / "convmem.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    for index in log.parent.glob("*.db*"):
        # Without one the whole log is read.
        index.unlink()
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unix:
        unix.bind(address)
        unix.settimeout(0)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "serve", "--data-dir", str(tmp_path / "data"), "--bind", "127.0.0.1:0"],
            env={"NOTIFY_SOCKET": address},
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == 11
        heard = []
        try:
            while True:
                heard += unix.recv(4096).decode().split("\n")
        except BlockingIOError:
            assert "READY=1" not in heard


def test_a_manager_that_is_gone_disturbs_nothing(tmp_path: Path):
    environment = {"NOTIFY_SOCKET": str(tmp_path / "nowhere"), "WATCHDOG_USEC": "200000"}
    with daemon(tmp_path / "data", environment=environment) as running:
        assert running.client().write("x")["sequence"] == "1"
        status, journal = running.stop()
        assert (status, "Traceback" in journal) == (0, False)


def in_namespaces(*options: str) -> list[str]:
    """A command that runs another one in namespaces of its own; skips where those are not to be had."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, *options, "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces are not to be had")
    return [unshare, *options]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


def serving(data_dir: Path, port: int) -> list[str]:
    return [sys.executable, "-c", PROGRAM, "serve", "--data-dir", str(data_dir), "--bind", f"127.0.0.1:{port}"]


def test_it_works_on_a_root_that_cannot_be_written_and_without_an_environment(tmp_path: Path):
    port, data_dir = free_port(), tmp_path / "data"
    data_dir.mkdir()
    script = 'mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,bind,ro / && cd / && exec "$@"'
    namespaces = in_namespaces("--mount", "sh", "-c", script, str(data_dir))
    probe = subprocess.run([*namespaces, "touch", "/a-root-that-can-be-written"], capture_output=True, check=False)
    if probe.returncode == 0 or b"Read-only" not in probe.stderr:
        Path("/a-root-that-can-be-written").unlink(missing_ok=True)
        pytest.skip("the root cannot be made read-only here")
    process = subprocess.Popen(
        [*namespaces, "env", "-i", *serving(data_dir, port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"]},
    )
    try:
        wait_until_listening(port)
        client = Daemon(data_dir, port=port).client("all")
        assert client.write("kept")["sequence"] == "1"
        client.call("schema_create", table="t", fields=[{"name": "x", "type": "string"}])
        assert client.call("create", table="t", data={"x": "kept"})["version"] == 1
        # A purge needs room for temporary files, which is beside the table.
        answer = client.http.post(f"http://127.0.0.1:{port}/admin/purge-history", json={"keep": 1})
        assert json.loads(answer.text.splitlines()[-1])["result"]["tables"][0]["table"] == "t"
        client.http.close()
        process.terminate()
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        said = process.communicate()[1]
    assert b"Traceback" not in said


def test_as_process_1_it_obeys(tmp_path: Path):
    port, data_dir = free_port(), tmp_path / "data"
    process = subprocess.Popen(
        [*in_namespaces("--pid", "--fork", "--kill-child"), *serving(data_dir, port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={},
        cwd="/",
    )
    try:
        wait_until_listening(port)
        assert json.loads((data_dir / "store.lock").read_text())["pid"] == 1
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        before = time.monotonic()
        os.kill(int(child), signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
        assert time.monotonic() - before < WAIT_S
    finally:
        process.kill()
        process.communicate()
