"""convmem tables: lists, files of rows, and an end of old versions, with a daemon and without one."""

import json
from pathlib import Path

import pytest

from tests.support.commands import ran
from tests.support.daemons import daemon
from tests.support.tabled import put_table

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with two tables, rows in one, and a broken one."""
    root = tmp_path / "data" / "tables"
    put_table(root, "notes")
    put_table(root, "empty")
    (root / "broken").mkdir()
    (root / "broken" / "schema.yaml").write_text("table: broken\nfields: [\n")
    with daemon(tmp_path / "data") as running:
        client = running.client("tables")
        for number in range(3):
            row = client.call("create", table="notes", data={"title": f"title {number}", "body": "needle-0"})
            for change in range(1, 4):
                client.call("update", table="notes", id=row["id"], data={"body": f"needle-{change}"})
        running.stop()
    return tmp_path / "data"


def convmem(*arguments: str, status: int = 0) -> str:
    done = ran(*arguments, environment={})
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def test_tables_are_listed_with_a_daemon_and_without(data: Path):
    alone = convmem("tables", "list", "--data-dir", str(data))
    with daemon(data) as running:
        asked = convmem("tables", "list", "--data-dir", str(data))
        found = json.loads(convmem("tables", "list", "--json", "--url", running.url.removesuffix("/mcp")))
        running.stop()
    assert alone == asked
    assert [line.split("\t")[:4] for line in alone.splitlines()[:2]] == [
        ["empty", "user", "0", "full"],
        ["notes", "user", "3", "full"],
    ]
    assert alone.splitlines()[2].startswith("broken: broken (user): ")
    assert found["broken"][0]["line"] >= 2


def test_rows_become_files_where_the_person_says(data: Path, tmp_path: Path):
    target = tmp_path / "out"
    assert "3 files" in convmem("tables", "materialize", "notes", str(target), "--data-dir", str(data))
    texts = sorted(path.read_text() for path in target.iterdir())
    assert texts == [f"# title {number}\n\nneedle-3\n" for number in range(3)]
    assert "not empty" in convmem("tables", "materialize", "notes", str(target), "--data-dir", str(data), status=1)
    one = '{"type": "eq", "field": "title", "value": "title 1"}'
    arguments = ("--filter", one, "--format", "json", "--json", "--data-dir", str(data))
    facts = json.loads(convmem("tables", "materialize", "notes", str(tmp_path / "json"), *arguments))
    assert (facts["written"], facts["skipped"]) == (1, 0)
    (file,) = (tmp_path / "json").iterdir()
    assert json.loads(file.read_text())["data"] == {"title": "title 1", "body": "needle-3"}
    assert "TABLE_NOT_FOUND" in convmem(
        "tables", "materialize", "x", str(tmp_path / "x"), "--data-dir", str(data), status=1
    )
    assert not (tmp_path / "x").exists()


def test_old_versions_go_for_good_and_their_bytes_too(data: Path):
    at = ("--data-dir", str(data))
    assert "VALIDATION_ERROR" in convmem("tables", "purge-history", *at, status=1)
    assert "9 versions would go" in convmem("tables", "purge-history", "--keep", "1", "--dry-run", *at)
    assert "0 versions" in convmem("tables", "purge-history", "--older-than", "1h", "--table", "notes", *at)
    files = list((data / "tables" / "notes").iterdir())
    assert any(b"needle-1" in path.read_bytes() for path in files)
    with daemon(data) as running:
        client = running.client("tables")
        client.call("list", table="notes")
        assert "9 versions purged" in convmem("tables", "purge-history", "--keep", "1", *at)
        assert not any(b"needle-1" in path.read_bytes() for path in (data / "tables" / "notes").iterdir())
        row = client.call("list", table="notes")["rows"][0]
        assert [
            version["version"] for version in client.call("row_history", table="notes", id=row["id"])["versions"]
        ] == [4]
        assert client.call("update", table="notes", id=row["id"], data={"body": "x"})["version"] == 5
        running.stop()
