"""What a person at the host can do wrong or a machine can do to us: each with its exit status or its answer."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.support.daemons import Refused, daemon

pytestmark = pytest.mark.slow
NOBODY = 65_534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may become somebody else")


# The interpreter may lie where only root reads: everything is imported before the process becomes somebody else.
EVERYTHING = (
    "os, sys, fractions, uvloop, convmem.daemon, convmem.transport.protocol, convmem.messages, convmem.memory,"
    " convmem.tables, convmem.table_places, convmem.cli.serve"
)
AS_SOMEBODY_ELSE = (
    f"import {EVERYTHING}; sys.path.insert(0, {os.getcwd()!r});"
    f" os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); from convmem.__main__ import main; main()"
)


def refused_start(data_dir: Path, *arguments: str, somebody_else: bool = False) -> tuple[int, str]:
    """Start a daemon that must refuse; return its exit status and what it said."""
    program = ["-c", AS_SOMEBODY_ELSE] if somebody_else else ["-m", "convmem"]
    done = subprocess.run(
        [sys.executable, *program, "serve", "--data-dir", str(data_dir), "--bind", "127.0.0.1:0", *arguments],
        capture_output=True,
        text=True,
        timeout=20,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd()},
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_a_second_opener_is_refused_at_once_and_told_who_holds_the_store(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        begun = time.monotonic()
        status, said = refused_start(tmp_path)
        assert status == 10
        assert time.monotonic() - begun < 3
        assert running.process is not None
        assert str(running.process.pid) in said
        assert f"127.0.0.1:{running.port}" in said
        assert running.client().write("still here")["sequence"] == "1"


def test_a_lock_file_left_behind_blocks_nobody(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        running.kill()
        assert (tmp_path / "store.lock").read_text()
        running.start()
        assert running.client().write("a")["sequence"] == "1"


def test_a_full_disk_refuses_writes_reads_go_on_and_space_heals_without_a_restart(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        client = running.client("all")
        kept = [client.write("kept " + "x" * 3_000)["message_id"] for _ in range(5)]
        assert running.process is not None
        limits = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE)
        size = (tmp_path / "convmem.log").stat().st_size
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (size + 8_000, limits[1]))

        def fill() -> None:
            for _ in range(20):
                kept.append(client.write("kept " + "x" * 3_000)["message_id"])  # noqa: PERF401 - until it raises

        with pytest.raises(Refused) as refused:
            fill()
        assert refused.value.code == "STORAGE_FULL"
        assert refused.value.error["retryable"] is True
        health = client.call("get_system_health")
        assert health["status"] == "degraded"
        assert httpx.get(running.url.replace("/mcp", "/healthz")).json() == {"status": "degraded"}
        assert [message["message_id"] for message in client.history()] == kept
        with pytest.raises(Refused):
            client.call("delete_message", message_id=kept[0])
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, limits)
        kept.append(client.write("after")["message_id"])
        # What is beside the store is tried again with the next change, after the answer.
        assert any(client.call("get_system_health")["status"] == "ok" for _ in range(3_000))
        running.kill()
        running.start()
        assert [message["message_id"] for message in client.history()] == kept
        assert client.call("get_system_health")["recovery"]["bytes_cut"] == 0


def test_a_data_directory_deleted_under_the_daemon_ends_it_and_nothing_empty_takes_its_place(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with daemon(data_dir) as running:
        client = running.client()
        client.write("a")
        shutil.rmtree(data_dir)
        with pytest.raises(Refused) as refused:
            client.write("b")
        assert refused.value.code == "STORE_FAILED"
        assert running.finish()[0] == 13
    assert not data_dir.exists()


def test_a_damaged_log_refuses_the_start_with_file_and_offset(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        client = running.client()
        for number in range(3):
            client.write(f"number {number}")
        running.stop()
    log = tmp_path / "convmem.log"
    data = log.read_bytes()
    log.write_bytes(data[:-1])
    status, said = refused_start(tmp_path)
    assert status == 11
    assert "convmem.log" in said
    assert "LOG_CORRUPT" in said
    log.write_bytes(data)
    with daemon(tmp_path) as running:
        assert len(running.client().history()) == 3


def test_a_log_that_is_a_pipe_refuses_the_start_and_is_not_waited_for(tmp_path: Path) -> None:
    with daemon(tmp_path / "data") as running:
        running.client().write("kept")
        running.stop()
    (tmp_path / "data" / "convmem.log").rename(tmp_path / "kept")
    os.mkfifo(tmp_path / "data" / "convmem.log")
    status, said = refused_start(tmp_path / "data")
    assert status == 15
    assert "DATA_DIRECTORY_UNUSABLE" in said


def test_damage_that_is_found_while_it_runs_is_told_with_what_saves_the_store(tmp_path: Path) -> None:
    with daemon(tmp_path / "data") as running:
        for number in range(8):
            running.client().write(f"message {number} " + "x" * 500)
        running.stop()
        log = tmp_path / "data" / "convmem.log"
        data = bytearray(log.read_bytes())
        data[600] ^= 1
        log.write_bytes(data)
        running.start()
        health = running.client("all").call("get_system_health")
        while health["status"] == "ok":
            health = running.client("all").call("get_system_health")
        assert health["status"] == "degraded"
        found = subprocess.run(
            [sys.executable, "-m", "convmem", "doctor", "--data-dir", str(tmp_path / "data")],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert "convmem salvage --to" in found.stdout
        running.stop()
    status, said = refused_start(tmp_path / "data")
    assert status == 11
    assert "damaged" in said


def test_a_log_of_a_newer_version_refuses_the_start(tmp_path: Path) -> None:
    from zlib import crc32

    with daemon(tmp_path) as running:
        running.client().write("a")
        running.stop()
    log = tmp_path / "convmem.log"
    data = bytearray(log.read_bytes())
    data[4] = 9
    data[36:40] = crc32(bytes(data[:36])).to_bytes(4, "little")
    log.write_bytes(bytes(data))
    assert refused_start(tmp_path)[0] == 12


def test_a_tail_cut_at_the_start_is_told_in_health(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        running.client().write("a")
        running.kill()
    with (tmp_path / "convmem.log").open("ab") as log:
        log.write(bytes(4_096))
    with daemon(tmp_path) as running:
        recovery = running.client("all").call("get_system_health")["recovery"]
        assert recovery["bytes_cut"] == 4_096
        assert (tmp_path / recovery["side_file"]).read_bytes() == bytes(4_096)


def test_an_address_that_others_reach_needs_a_token(tmp_path: Path) -> None:
    status, said = refused_start(tmp_path, "--bind", "0.0.0.0:0")
    assert status == 14
    assert "CONVMEM_HTTP_TOKEN" in said


def test_an_address_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, said = refused_start(tmp_path, "--bind", f"127.0.0.1:{port}")
    assert status == 1
    assert f"127.0.0.1:{port}" in said


@needs_root
@pytest.mark.parametrize(
    "place", ["read-only", "missing under read-only", "a file", "somebody else's lock", "somebody else's log"]
)
def test_a_data_directory_that_cannot_be_used_is_named_with_uid_and_fix(tmp_path: Path, place: str) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    data_dir = tmp_path / "data"
    match place:
        case "read-only":
            data_dir.mkdir(mode=0o555)
        case "missing under read-only":
            (tmp_path / "closed").mkdir(mode=0o555)
            data_dir = tmp_path / "closed" / "data"
        case "a file":
            data_dir.write_text("not a directory")
        case _:
            data_dir.mkdir()
            data_dir.chmod(0o777)
            (data_dir / ("store.lock" if "lock" in place else "convmem.log")).touch(0o600)
    status, said = refused_start(data_dir, somebody_else=True)
    assert status == 15
    assert str(data_dir) in said
    assert str(NOBODY) in said
    assert len(said.strip().splitlines()) == 1


def test_an_index_that_is_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "index-1.db").mkdir()
    status, said = refused_start(tmp_path)
    assert status == 15
    assert "index-1.db" in said


def test_a_directory_that_others_could_write_to_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with daemon(tmp_path):
        assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_a_start_on_a_full_disk_reads_and_writes_again_once_there_is_space(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        kept = [running.client().write("x" * 2_000)["message_id"] for _ in range(20)]
        running.kill()
    size = (tmp_path / "convmem.log").stat().st_size

    def limit() -> None:
        # SQLite's lock memory (32 KiB) still fits, the log not one byte more.
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(size, 33_000), resource.RLIM_INFINITY))

    with daemon(tmp_path, before_start=limit) as running:
        client = running.client()
        assert [message["message_id"] for message in client.history()] == kept
        with pytest.raises(Refused) as refused:
            client.write("y" * 100_000)
        assert refused.value.code == "STORAGE_FULL"
        assert running.process is not None
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, unlimited)
        kept.append(client.write("after")["message_id"])
        assert [message["message_id"] for message in client.history()] == kept


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_in_order_and_frees_the_lock(tmp_path: Path, number: signal.Signals) -> None:
    with daemon(tmp_path) as running:
        running.client().write("a")
        running.send(number)
        status, journal = running.finish()
        assert status == 0
        (line,) = journal.splitlines()
        assert "write_message from local" in line
        assert not (tmp_path / "convmem.sock").exists()
        running.start()


def test_a_stop_under_load_answers_every_call_that_it_took(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        outcomes: list[str] = []

        def write(name: str) -> None:
            client = running.client()
            try:
                while True:
                    outcomes.append(client.write("x" * 2_000, session_id=name)["message_id"])
            except Refused as refused:
                outcomes.append(refused.code)
            except httpx.ConnectError:
                pass
            except httpx.HTTPError as error:
                outcomes.append(type(error).__name__)

        threads = [threading.Thread(target=write, args=(f"c{number}",)) for number in range(6)]
        for thread in threads:
            thread.start()
        while len(outcomes) < 200:
            threads[0].join(0.005)
        begun = time.monotonic()
        status, journal = running.stop()
        for thread in threads:
            thread.join(20)
        assert status == 0
        assert time.monotonic() - begun < 5
        assert "Traceback" not in journal
        acknowledged = {outcome for outcome in outcomes if len(outcome) == 26}
        # A call that meets its connection as it is closed was never taken, and ends in one of two errors by chance.
        assert {outcome for outcome in outcomes if len(outcome) != 26} <= {
            "STOPPING",
            "RemoteProtocolError",
            "ReadError",
            "HTTPStatusError",
        }
        running.start()
        client = running.client()
        found = {message["message_id"] for number in range(6) for message in client.history(f"c{number}")}
        assert found == acknowledged, "what was taken was answered: nothing is stored that nobody was told of"


def test_a_half_sent_request_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    with daemon(tmp_path) as running, socket.create_connection(("127.0.0.1", running.port)) as half:
        half.sendall(
            b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
        )
        running.client().write("a")
        begun = time.monotonic()
        assert running.stop()[0] == 0
        assert time.monotonic() - begun < 5


def test_it_runs_with_an_empty_environment_from_the_root_directory(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {os.getcwd()!r}); from convmem.__main__ import main; main()",
            "serve",
            "--data-dir",
            str(tmp_path),
            "--bind",
            "127.0.0.1:0",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        env={},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "http://127.0.0.1:" in line
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    process.communicate()


def test_the_lock_file_says_who_holds_the_store(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        told = json.loads((tmp_path / "store.lock").read_text())
        assert running.process is not None
        assert told == {"pid": running.process.pid, "url": running.url, "socket": str(tmp_path / "convmem.sock")}
        assert (tmp_path / "convmem.sock").stat().st_mode & 0o777 == 0o600
        assert tmp_path.stat().st_mode & 0o777 == 0o700
