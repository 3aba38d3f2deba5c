"""Kill a process in the middle of a purge: a second run ends what it began, and nothing purged is left in any byte."""

import random
import subprocess
import threading
from pathlib import Path

import apsw
import pytest

from convmem.domain import Origin
from convmem.tables import create, history
from convmem.tables.history import Keeping
from tests.support.commands import command, ran
from tests.support.daemons import daemon
from tests.support.tabled import put_table

pytestmark = pytest.mark.slow
KILLS, DELAY_MS_MAX = 10, 900
ROWS, VERSIONS = 40, 120
ORIGIN = Origin("local", "test")
NEEDLE = "old needle "


def filled(data: Path) -> Path:
    """A table whose rows have a long past that nobody wants to keep, most of it in chunks; the table's directory."""
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
        for number in range(VERSIONS):
            noise = f"{dice.getrandbits(2_000):x}"
            text = f'{{"title":"t","body":"{NEEDLE}{number} {noise}"}}'
            history.append(file, "notes", row_id, "update", text, None, ORIGIN, 1, keeping=Keeping(4, 8))
        history.append(file, "notes", row_id, "update", '{"title":"kept"}', None, ORIGIN, 1, keeping=Keeping(4, 8))
        file.execute('UPDATE rows SET data = \'{"title":"kept"}\' WHERE id = ?', (row_id,))
    file.execute("COMMIT")
    file.close()
    return directory


def left(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if NEEDLE.encode() in path.read_bytes()]


def test_kill_9_in_the_middle_of_a_purge_leaves_nothing_of_it_for_good(tmp_path: Path):
    data = tmp_path / "data"
    directory = filled(data)
    purge = ("tables", "purge-history", "--keep", "1", "--data-dir", str(data))
    assert left(directory)
    dice = random.Random(11)
    for _ in range(KILLS):
        process = subprocess.Popen(
            command(*purge), cwd="/", env={}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        killer = threading.Timer(dice.uniform(150, DELAY_MS_MAX) / 1_000, process.kill)
        killer.start()
        process.wait()
        killer.cancel()
        killer.join()
        file = apsw.Connection(str(directory / "notes.db"))
        (versions,) = file.execute("SELECT count(DISTINCT row_id) FROM _row_history").fetchone() or (0,)
        assert versions == ROWS
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        file.close()
    done = ran(*purge, environment={})
    assert done.returncode == 0, done.stderr
    assert left(directory) == []
    assert sorted(path.name for path in directory.iterdir() if "etilqs" in path.name) == []
    with daemon(data) as running:
        client = running.client("tables")
        rows = client.call("list", table="notes", limit=100)["rows"]
        assert [row["data"] for row in rows] == [{"title": "kept"}] * ROWS
        for row in rows:
            found = client.call("row_history", table="notes", id=row["id"])["versions"]
            assert [version["version"] for version in found] == [VERSIONS + 2]
        running.stop()
