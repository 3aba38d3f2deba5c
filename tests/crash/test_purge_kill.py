"""Kill a process in the middle of a purge: a second run ends what it began, and nothing purged is left in any byte."""

import random
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from convmem.domain import Origin
from convmem.tables import create, history, purge_marks
from convmem.tables.history import Keeping
from tests.support.commands import WAIT_S, command, ran
from tests.support.daemons import daemon
from tests.support.tabled import put_table

pytestmark = pytest.mark.slow
KILLS = 12
ROWS, RECENT, PACKED = 50, 400, 40
ORIGIN = Origin("local", "test")
NEEDLE, KEPT = "old needle ", '{"title":"kept"}'


def filled(data: Path) -> Path:
    """A table whose rows have a long past that nobody wants to keep, some of it in chunks, beside rows that take their
    time when the file is written anew; the table's directory.
    """
    directory = put_table(data / "tables")
    with daemon(data) as running:
        client = running.client("tables")
        ids = [client.call("create", table="notes", data={"title": f"title {number}"})["id"] for number in range(ROWS)]
        running.stop()
    file = apsw.Connection(str(directory / "notes.db"))
    create.prepare(file)
    file.execute("BEGIN")
    dice = random.Random(7)
    for row_id in ids:
        texts = [f'{{"body":"{NEEDLE}{number} {dice.getrandbits(3_000):x}"}}' for number in range(PACKED + RECENT)]
        for text in texts[:PACKED]:
            history.append(file, "notes", row_id, "update", text, None, ORIGIN, 1, keeping=Keeping(4, 8))
        recent = [(row_id, number, text) for number, text in enumerate((*texts[PACKED:], KEPT), PACKED + 2)]
        columns = "table_name, recorded_at, op, row_id, version, data_json"
        file.executemany(f"INSERT INTO _row_history ({columns}) VALUES ('notes', 1, 'update', ?, ?, ?)", recent)
        file.execute("UPDATE rows SET data = ? WHERE id = ?", (KEPT, row_id))
    for number in range(4_000):
        values = (f"{number:08x}-0000-4000-8000-000000000000", f'{{"title":"{dice.getrandbits(16_000):x}"}}')
        file.execute("INSERT INTO rows VALUES (?, ?, 1, 1)", values)
    file.execute("COMMIT")
    file.close()
    return directory


def left(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if NEEDLE.encode() in path.read_bytes()]


class Seen(NamedTuple):
    """What a process that was killed has left: how many entries, and whether it says that it is not done."""

    entries: int
    is_unfinished: bool


def begun(data: Path) -> "subprocess.Popen[bytes]":
    """A process that purges, once it has begun to write."""
    process = subprocess.Popen(
        command("tables", "purge-history", "--keep", "1", "--data-dir", str(data)),
        cwd="/",
        env={},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wal = data / "tables" / "notes" / "notes.db-wal"
    while process.poll() is None and not (wal.exists() and wal.stat().st_size):
        pass
    return process


def look(directory: Path) -> Seen:
    """Look into a copy, so that what was left stays as it was left."""
    copy = directory.parent.parent.parent / "copy"
    shutil.copytree(directory, copy)
    file = apsw.Connection(str(copy / "notes.db"))
    try:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        newest: list[Any] = file.execute(
            "SELECT row_id, max(version), data_json FROM _row_history GROUP BY 1"
        ).fetchall()
        assert [(version, text) for _, version, text in newest] == [(PACKED + RECENT + 2, KEPT)] * ROWS
        (entries,) = file.execute("SELECT count(*) FROM _row_history").fetchone() or (0,)
        return Seen(int(entries), purge_marks.is_unfinished(file))
    finally:
        file.close()
        shutil.rmtree(copy)


def test_kill_9_in_the_middle_of_a_purge_leaves_nothing_of_it_for_good(tmp_path: Path):
    filled(tmp_path / "filled")
    data = tmp_path / "data"
    directory = data / "tables" / "notes"
    shutil.copytree(tmp_path / "filled", data)
    all_entries = look(directory).entries
    process, start = begun(data), time.monotonic()
    process.wait(WAIT_S)
    takes_s = time.monotonic() - start
    assert left(directory) == []

    dice, seen = random.Random(11), list[Seen]()
    for _ in range(KILLS):
        shutil.rmtree(data)
        shutil.copytree(tmp_path / "filled", data)
        process = begun(data)
        killer = threading.Timer(dice.uniform(0, 0.9) * takes_s, process.kill)
        killer.start()
        process.wait(WAIT_S)
        killer.join()
        seen.append(look(directory))
        assert seen[-1].is_unfinished or not left(directory) or seen[-1].entries == all_entries
        done = ran("tables", "purge-history", "--keep", "1", "--data-dir", str(data), environment={})
        assert done.returncode == 0, done.stderr
        assert left(directory) == []
        assert [path.name for path in directory.iterdir() if "etilqs" in path.name] == []
    assert sum(found.is_unfinished for found in seen) > KILLS // 2, f"the kills came at other times: {seen}"
    with daemon(data) as running:
        rows = running.client("tables").call("list", table="notes", limit=ROWS)["rows"]
        assert [row["data"] for row in rows] == [{"title": "kept"}] * ROWS
        running.stop()
