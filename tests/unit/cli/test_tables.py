"""convmem tables: lists, files of rows, and an end of old versions, with a daemon and without one."""

import json
from pathlib import Path
from typing import Any

import apsw
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
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout if status in (0, 3) else done.stderr


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
    assert "not empty" in convmem("tables", "materialize", "notes", str(target), "--data-dir", str(data), status=2)
    one = '{"type": "eq", "field": "title", "value": "title 1"}'
    arguments = ("--filter", one, "--format", "json", "--json", "--data-dir", str(data))
    facts = json.loads(convmem("tables", "materialize", "notes", str(tmp_path / "json"), *arguments))
    assert (facts["written"], facts["left_out_count"]) == (1, 0)
    (file,) = (tmp_path / "json").iterdir()
    assert json.loads(file.read_text())["data"] == {"title": "title 1", "body": "needle-3"}
    assert "TABLE_NOT_FOUND" in convmem(
        "tables", "materialize", "x", str(tmp_path / "x"), "--data-dir", str(data), status=1
    )
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("is_running", [True, False])
def test_a_row_that_is_larger_than_an_answer_becomes_a_whole_file(data: Path, tmp_path: Path, is_running: bool):
    at = ("--data-dir", str(data))
    large = {"title": "T" * 40_000, "body": "b" * 900_000, "tags": ["x" * 30_000, "語" * 20_000]}
    too_large = "00000000-0000-4000-8000-000000000000"
    file = apsw.Connection(str(data / "tables" / "notes" / "notes.db"))
    # Another program is bound by nothing.
    text = json.dumps({"title": "x", "body": "b" * 9_000_000})
    file.execute("INSERT INTO rows VALUES (?, ?, 1, 1)", (too_large, text))
    file.close()
    with daemon(data) as running:
        row_id = running.client("tables").call("create", table="notes", data=large)["id"]
        if not is_running:
            running.stop()
        target = tmp_path / "out"
        said = convmem("tables", "materialize", "notes", str(target), "--format", "json", *at, status=3)
    assert "4 files" in said
    assert f"left out {too_large}: its field body is larger than an answer" in said
    assert json.loads((target / f"{row_id}.json").read_text())["data"] == large
    assert not (target / f"{too_large}.json").exists()
    assert "omitted" not in (target / f"{row_id}.json").read_text()


def test_files_that_are_there_are_replaced_only_if_that_is_asked_for(data: Path, tmp_path: Path):
    at = ("--data-dir", str(data))
    target = tmp_path / "out"
    convmem("tables", "materialize", "notes", str(target), *at)
    first, second, _ = sorted(target.iterdir())
    outside = tmp_path / "outside.md"
    outside.write_text("mine")
    first.write_text("old")
    second.unlink()
    second.symlink_to(outside)
    (target / "other.txt").write_text("theirs")
    convmem("tables", "materialize", "notes", str(target), *at, status=2)
    assert first.read_text() == "old"
    said = convmem("tables", "materialize", "notes", str(target), "--overwrite", *at, status=3)
    assert "2 files" in said
    assert f"left out {second.stem}" in said
    assert first.read_text() != "old"
    assert (outside.read_text(), (target / "other.txt").read_text()) == ("mine", "theirs")


@pytest.mark.parametrize(
    "arguments", [("notes", "out", "--format", "xml"), ("notes", "taken"), ("notes", "full"), ("notes",)]
)
def test_a_place_or_a_form_that_cannot_be_meant_is_wrong_usage(data: Path, tmp_path: Path, arguments: tuple[str, ...]):
    (tmp_path / "taken").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    done = ran("tables", "materialize", *arguments, "--data-dir", str(data), directory=tmp_path)
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()


def everything(data: Path) -> dict[str, tuple[bytes, int]]:
    """All that is kept of the tables; what SQLite needs to look into a file is nothing of it."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in (data / "tables").rglob("*.*")
        if path.is_file() and path.suffix in (".db", ".yaml")
    }


def test_a_dry_run_writes_nothing_and_says_what_a_run_does(data: Path):
    (data / "tables" / "broken" / "schema.yaml").unlink()
    at = ("--data-dir", str(data))
    before = everything(data)
    foreseen = convmem("tables", "purge-history", "--keep", "1", "--dry-run", *at)
    assert everything(data) == before
    assert "notes: 9 versions would go" in foreseen
    assert "notes: 9 versions purged" in convmem("tables", "purge-history", "--keep", "1", *at)


def test_a_table_that_cannot_be_purged_is_named_and_the_others_are(data: Path):
    at = ("--data-dir", str(data))
    (data / "tables" / "empty" / "empty.db").write_bytes(b"no database, but long enough to be one" * 100)
    said = convmem("tables", "purge-history", "--keep", "1", *at, status=3)
    assert "notes: 9 versions purged" in said
    assert "broken: not looked at, since it is broken" in said
    facts = json.loads(convmem("tables", "purge-history", "--keep", "1", "--json", *at, status=3))
    assert [table["table"] for table in facts["broken"]] == ["broken", "empty"] or "error" in facts["tables"][0]


def test_what_an_earlier_run_could_not_take_out_the_next_one_does(data: Path):
    (data / "tables" / "broken" / "schema.yaml").unlink()
    at = ("--data-dir", str(data))
    file = data / "tables" / "notes" / "notes.db"
    with daemon(data) as running:
        running.client("tables").call("list", table="notes")
        # Somebody else looks at the file for as long as the purge takes.
        reader = apsw.Connection(str(file))
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM rows").fetchall()
        said = convmem("tables", "purge-history", "--keep", "1", *at, status=3)
        assert "9 versions purged" in said
        assert "bytes of purged versions are still in the file" in said
        assert "still in the file" in convmem("tables", "purge-history", "--keep", "1", "--dry-run", *at, status=3)
        assert any(b"needle-1" in path.read_bytes() for path in file.parent.iterdir())
        reader.execute("COMMIT")
        reader.close()
        assert "notes: 0 versions purged" in convmem("tables", "purge-history", "--keep", "1", *at)
        assert not any(b"needle-1" in path.read_bytes() for path in file.parent.iterdir())
        running.stop()


def test_old_versions_go_for_good_and_their_bytes_too(data: Path):
    (data / "tables" / "broken" / "schema.yaml").unlink()
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


def test_a_dry_run_beside_a_daemon_changes_no_file(data: Path):
    (data / "tables" / "broken" / "schema.yaml").unlink()
    with daemon(data) as running:
        client = running.client("tables")
        client.call("create", table="notes", data={"title": "in the WAL"})

        def files() -> dict[str, tuple[bytes, int]]:
            # What SQLite keeps of its locks is shared memory and no content.
            found = [path for path in data.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
            return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}

        # A second of quiet moves the WAL into its file; a count that is right twice in a row has met none of that.
        while True:
            before = files()
            said = convmem("tables", "purge-history", "--keep", "1", "--dry-run", "--data-dir", str(data))
            if files() == before:
                break
            assert files()[str(data / "tables" / "notes" / "notes.db-wal")][0] == b"", "a dry run has written"
        assert "notes: 9 versions would go" in said
        running.stop()


def test_what_is_damaged_is_named_with_its_row_and_the_status_says_that_not_all_was_done(data: Path):
    (data / "tables" / "broken" / "schema.yaml").unlink()
    file = apsw.Connection(str(data / "tables" / "notes" / "notes.db"))
    rows: list[Any] = file.execute("SELECT id FROM rows ORDER BY id").fetchall()
    (first,), (second,), _ = rows
    file.execute("UPDATE _row_history SET recorded_at = 'once' WHERE row_id = ? AND version = 2", (first,))
    file.execute("UPDATE _row_history SET version = 'two' WHERE row_id = ? AND version = 2", (second,))
    file.close()
    said = convmem("tables", "purge-history", "--keep", "1", "--data-dir", str(data), status=3)
    assert "notes: 5 versions purged" in said
    assert f"versions 2 to 2 of row {first}" in said
    assert f"all versions of row {second}" in said


def test_a_place_that_cannot_be_written_into_is_said(data: Path, tmp_path: Path):
    (tmp_path / "file").write_text("")
    into = str(tmp_path / "file" / "out")
    said = convmem("tables", "materialize", "notes", into, "--data-dir", str(data), status=1)
    assert said.strip().endswith(f"{into} cannot be written into: Not a directory")
    wrong = ("--filter", '{"type": "eq", "field": "nothing", "value": 1}')
    said = convmem("tables", "materialize", "notes", str(tmp_path / "new"), *wrong, "--data-dir", str(data), status=1)
    assert "VALIDATION_ERROR" in said
    assert not (tmp_path / "new").exists()
