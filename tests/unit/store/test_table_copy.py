"""A copy of a table file: one moment of it, one file, and no name before it is whole."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest

from convmem.errors import Conflict, Stopping, StorageFault
from convmem.store import table_copy
from convmem.store.table_copy import copy

SCRIPT = """
import sys
from pathlib import Path
from convmem.store import table_copy
table_copy.COPY_PAGES_AT_ONCE = 1
print("begun", flush=True)
seen = []
def is_stopped():
    seen.append(1)
    if len(seen) == 20:
        print("half", flush=True)
        sys.stdin.read()
    return False
table_copy.copy(Path(sys.argv[1]), Path(sys.argv[2]), is_stopped=is_stopped)
"""


def never() -> bool:
    return False


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file in WAL mode, a part of it still in the WAL."""
    path = tmp_path / "source.db"
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE t (x)")
    for number in range(300):
        connection.execute("INSERT INTO t VALUES (?)", (f"{number}" * 1_000,))
    return path


def count(path: Path) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    return int(connection.execute("SELECT count(*) FROM t").fetchall()[0][0])


def test_a_copy_is_one_private_file_that_holds_everything(source: Path, tmp_path: Path):
    target = tmp_path / "target.db"
    assert copy(source, target, is_stopped=never) == target.stat().st_size
    assert count(target) == 300
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("source")) == ["target.db"]


def test_what_is_there_is_not_written_over(source: Path, tmp_path: Path):
    (tmp_path / "target.db").write_bytes(b"mine")
    with pytest.raises(Conflict):
        copy(source, tmp_path / "target.db", is_stopped=never)
    assert (tmp_path / "target.db").read_bytes() == b"mine"


def test_a_file_that_is_written_to_all_the_time_is_copied_as_it_was_at_one_moment(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(table_copy, "COPY_PAGES_AT_ONCE", 5)
    is_over = threading.Event()

    def write() -> None:
        connection = apsw.Connection(str(source))
        connection.set_busy_timeout(1000)
        while not is_over.is_set():
            with connection:
                connection.execute("INSERT INTO t VALUES ('one of two')")
                connection.execute("INSERT INTO t VALUES ('one of two')")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        copy(source, tmp_path / "target.db", is_stopped=never)
    finally:
        is_over.set()
        thread.join()
    assert count(tmp_path / "target.db") % 2 == 0
    assert count(tmp_path / "target.db") >= 300


def test_a_damaged_file_is_refused_and_nothing_has_the_name(source: Path, tmp_path: Path):
    connection = apsw.Connection(str(source))
    connection.pragma("wal_checkpoint(truncate)")
    connection.close()
    data = bytearray(source.read_bytes())
    data[8192:20480] = b"\xff" * 12288
    source.write_bytes(data)
    with pytest.raises(StorageFault):
        copy(source, tmp_path / "target.db", is_stopped=never)
    assert [path.name for path in tmp_path.iterdir() if "target" in path.name] == []


def test_a_stop_ends_it_and_nothing_has_the_name(source: Path, tmp_path: Path):
    with pytest.raises(Stopping):
        copy(source, tmp_path / "target.db", is_stopped=lambda: True)
    assert [path.name for path in tmp_path.iterdir() if "target" in path.name] == []


@pytest.mark.slow
def test_killed_half_way_nothing_has_the_name_and_the_next_copy_clears_up(source: Path, tmp_path: Path):
    target = tmp_path / "copies" / "target.db"
    target.parent.mkdir()
    command = [sys.executable, "-c", SCRIPT, str(source), str(target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"begun\n", b"half\n"]
        process.send_signal(signal.SIGKILL)
    left = [path.name for path in target.parent.iterdir()]
    assert left
    assert "target.db" not in left
    copy(source, target, is_stopped=never)
    assert [path.name for path in target.parent.iterdir()] == ["target.db"]
    assert count(target) == 300
