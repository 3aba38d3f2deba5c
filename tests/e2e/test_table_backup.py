"""Tables in backups: taken along while they are written, proven, and brought back whole."""

from pathlib import Path

import pytest

from tests.support.commands import ran
from tests.support.daemons import daemon
from tests.support.tabled import put_table

pytestmark = pytest.mark.slow


def convmem(*arguments: str) -> str:
    done = ran(*arguments, environment={"HOME": "/nowhere"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_was_in_tables_is_in_the_backup_and_comes_back(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_table(root, "notes")
    put_table(root, "empty")
    with daemon(tmp_path / "data") as running:
        client = running.client("tables")
        rows = [client.call("create", table="notes", data={"title": f"{number}"}) for number in range(20)]
        client.call("alias_create", table="notes", name="all", filter={"type": "exists", "field": "title"})
        convmem("backup", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "data"))
        first = {path.name for path in (tmp_path / "backup").iterdir()}
        client.call("update", table="notes", id=rows[0]["id"], data={"title": "changed"})
        convmem("backup", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "data"))
        second = {path.name for path in (tmp_path / "backup").iterdir()}
        assert len(first) == len(second)
        assert len(second - first) == 1, "one file changed"
        running.stop()
    convmem("backup", "verify", str(tmp_path / "backup"))
    convmem("restore", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "restored"))
    with daemon(tmp_path / "restored") as running:
        client = running.client("tables")
        found = {row["id"]: row["data"]["title"] for row in client.call("alias_run", name="all", limit=100)["rows"]}
        assert found == {row["id"]: row["data"]["title"] for row in rows} | {rows[0]["id"]: "changed"}
        assert [
            version["version"] for version in client.call("row_history", table="notes", id=rows[0]["id"])["versions"]
        ] == [2, 1]
        assert client.call("reload")["mounted"] == ["empty", "notes"]
        running.stop()


def test_a_damaged_table_stops_no_backup_and_its_last_copy_stays(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_table(root, "notes")
    with daemon(tmp_path / "data") as running:
        client = running.client("tables")
        row = client.call("create", table="notes", data={"title": "good"})
        convmem("backup", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "data"))
        for path in (root / "notes").glob("notes.db*"):
            path.unlink()
        (root / "notes" / "notes.db").write_bytes(b"spoiled" * 1_000)
        running.client("all").write("goes on")
        convmem("backup", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "data"))
        health = running.client("all").call("get_system_health")
        assert any("could not copy a table" in reason for reason in health["reasons"])
        running.stop()
    convmem("restore", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "restored"))
    with daemon(tmp_path / "restored") as running:
        client = running.client("tables")
        assert client.call("get", table="notes", id=row["id"])["data"] == {"title": "good"}
        running.stop()


def test_a_restore_mixes_with_no_other_tables(tmp_path: Path):
    put_table(tmp_path / "data" / "tables", "notes")
    with daemon(tmp_path / "data") as running:
        running.client("tables").call("create", table="notes", data={"title": "a"})
        convmem("backup", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "data"))
        running.stop()
    put_table(tmp_path / "other" / "tables", "mine")
    done = ran("restore", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "other"), environment={})
    assert (done.returncode, "BACKUP_ERROR" in done.stderr) == (1, True)
    assert sorted(path.name for path in (tmp_path / "other" / "tables").iterdir()) == ["mine"]
