"""Tables that stand elsewhere, or no longer where they were mounted: in the backup, named, never followed."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.commands import ran
from tests.support.daemons import Daemon, RawClient, Refused, daemon
from tests.support.tabled import NOTES, put_table

pytestmark = pytest.mark.slow


def convmem(*arguments: str) -> dict[str, object]:
    """What a verb prints as JSON."""
    done = ran(*arguments, "--json", environment={"HOME": "/nowhere"})
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def one_table(directory: Path) -> dict[str, str]:
    """A table by itself, and the settings that name it."""
    directory.mkdir()
    (directory / "my.yaml").write_text(NOTES)
    return {"CONVMEM_SCHEMA": str(directory / "my.yaml"), "CONVMEM_DB": str(directory / "my.sqlite")}


@pytest.mark.parametrize("has_namesake", [False, True])
def test_the_one_table_is_in_the_backup_wherever_it_is_and_comes_back(tmp_path: Path, has_namesake: bool):
    settings, copy, data = one_table(tmp_path / "elsewhere"), str(tmp_path / "copy"), str(tmp_path / "restored")
    if has_namesake:
        put_table(tmp_path / "data" / "tables", "Notes")
    with daemon(tmp_path / "data", environment=settings) as running:
        row = running.client("tables").call("create", data={"title": "kept"})
        made = convmem("backup", copy, "--data-dir", str(tmp_path / "data"))
        assert {"tables/_single/schema.yaml", "tables/_single/_single.db"} <= {part["name"] for part in made["parts"]}
        running.stop()
    convmem("backup", "verify", copy)
    told = str(convmem("restore", copy, "--data-dir", data)["single_table"])
    said = dict(word.rstrip(",").split("=") for word in told.split() if "=" in word)
    assert set(said) == set(settings)
    with daemon(tmp_path / "restored", environment=said) as running:
        assert running.client("tables").call("get", id=row["id"])["data"] == {"title": "kept"}
    with daemon(tmp_path / "restored") as running:
        client = running.client("tables")
        if has_namesake:
            assert client.call("reload")["mounted"] == ["Notes"]
        else:
            assert client.call("get", table="notes", id=row["id"])["data"] == {"title": "kept"}


def test_a_restore_of_the_one_table_that_was_cut_off_goes_on(tmp_path: Path):
    settings, copy = one_table(tmp_path / "elsewhere"), str(tmp_path / "copy")
    with daemon(tmp_path / "data", environment=settings) as running:
        row = running.client("tables").call("create", data={"title": "kept"})
        convmem("backup", copy, "--data-dir", str(tmp_path / "data"))
    convmem("restore", copy, "--data-dir", str(tmp_path / "restored"))
    (tmp_path / "restored" / "convmem.log").unlink()
    convmem("restore", copy, "--data-dir", str(tmp_path / "restored"))
    with daemon(tmp_path / "restored") as running:
        assert running.client("tables").call("get", table="notes", id=row["id"])["data"] == {"title": "kept"}


def test_one_table_that_cannot_be_copied_is_named_and_its_last_copy_stays(tmp_path: Path):
    settings, copy = one_table(tmp_path / "elsewhere"), str(tmp_path / "copy")
    with daemon(tmp_path / "data", environment=settings) as running:
        row = running.client("tables").call("create", data={"title": "kept"})
        convmem("backup", copy, "--data-dir", str(tmp_path / "data"))
        for path in (tmp_path / "elsewhere").glob("my.sqlite*"):
            path.unlink()
        (named,) = convmem("backup", copy, "--data-dir", str(tmp_path / "data"))["not_copied"]
        assert "tables/_single/_single.db" in named
    convmem("restore", copy, "--data-dir", str(tmp_path / "restored"))
    with daemon(tmp_path / "restored") as running:
        assert running.client("tables").call("get", table="notes", id=row["id"])["data"] == {"title": "kept"}


def test_what_no_restore_could_bring_back_is_named_and_spoils_no_backup(tmp_path: Path):
    root, copy = tmp_path / "data" / "tables", str(tmp_path / "copy")
    for name in ("Notes", "notes", "my table"):
        put_table(root, name)
    put_table(tmp_path / "elsewhere", "linked")
    (root / "linked").symlink_to(tmp_path / "elsewhere" / "linked")
    os.mkdir(os.fsencode(root) + b"/bad\xff")
    Path(os.fsdecode(os.fsencode(root) + b"/bad\xff/schema.yaml")).write_text(NOTES)
    with daemon(tmp_path / "data") as running:
        row = running.client("tables").call("create", table="Notes", data={"title": "kept"})
        convmem("backup", copy, "--data-dir", str(tmp_path / "data"))
        made = convmem("backup", copy, "--data-dir", str(tmp_path / "data"))
        assert {part["name"].split("/")[1] for part in made["parts"][1:]} == {"Notes"}
        assert {sentence.split("/")[1] for sentence in made["not_copied"]} == {
            *("linked", "my table", "notes", "bad\\udcff")
        }
    convmem("restore", copy, "--data-dir", str(tmp_path / "restored"))
    with daemon(tmp_path / "restored") as running:
        assert running.client("tables").call("get", table="Notes", id=row["id"])["data"] == {"title": "kept"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with two tables, a row in both."""
    for name in ("notes", "second"):
        put_table(tmp_path / "data" / "tables", name)
    with daemon(tmp_path / "data") as started:
        for name in ("notes", "second"):
            started.client("tables").call("create", table=name, data={"title": "kept"})
        yield started


def refused(client: RawClient, tool: str, **arguments: Any) -> dict[str, Any]:
    with pytest.raises(Refused) as found:
        client.call(tool, **arguments)
    return dict(found.value.error)


def titles(client: RawClient, table: str) -> set[str]:
    return {row["data"]["title"] for row in client.call("list", table=table)["rows"]}


def _folder_by_link(directory: Path) -> None:
    shutil.copytree(directory, directory.parents[2] / "away")
    shutil.rmtree(directory)
    directory.symlink_to(directory.parents[2] / "away")


def _folder_by_link_to_itself(directory: Path) -> None:
    os.rename(directory, directory.parents[2] / "away")
    directory.symlink_to(directory.parents[2] / "away")


def _file_by_link(directory: Path) -> None:
    os.rename(directory / "notes.db", directory.parents[2] / "away.db")
    (directory / "notes.db").symlink_to(directory.parents[2] / "away.db")


def _file_by_another(directory: Path) -> None:
    shutil.copyfile(directory.parent / "second" / "second.db", directory / "new")
    os.replace(directory / "new", directory / "notes.db")


def _file_gone(directory: Path) -> None:
    for path in directory.glob("notes.db*"):
        path.unlink()


REPLACED: dict[str, tuple[Callable[[Path], None], bool]] = {
    "the folder by a link": (_folder_by_link, False),
    "the folder by a link to what it was": (_folder_by_link_to_itself, False),
    "the file by a link": (_file_by_link, False),
    "the file by another": (_file_by_another, True),
    "the file by none": (_file_gone, True),
}


@pytest.mark.parametrize("case", REPLACED)
def test_a_table_that_no_longer_stands_where_it_was_mounted_is_broken_until_a_reload(running: Daemon, case: str):
    client, directory = running.client("all"), running.data_dir / "tables" / "notes"
    replace, is_mounted_again = REPLACED[case]
    replace(directory)
    health = client.call("get_system_health")
    (broken,) = health["tables"]["broken"]
    assert (broken["table"], broken["code"], health["status"]) == ("notes", "STORAGE_ERROR", "degraded")
    assert broken["reason"] in health["reasons"][0]
    for tool, more in (("create", {"data": {"title": "new"}}), ("list", {}), ("info", {})):
        told = refused(client, tool, table="notes", **more)
        assert (told["code"], told["reason"]) == ("TABLE_NOT_FOUND", broken["reason"])
    client.call("create", table="second", data={"title": "goes on"})
    reloaded = client.call("reload")
    for path in (*running.data_dir.parent.glob("away.db"), *running.data_dir.parent.glob("away/notes.db")):
        away = apsw.Connection(str(path))
        assert away.execute("SELECT count(*) FROM rows").fetchone() == (1,), "what was there and no more"
        away.close()
    assert ("notes" in reloaded["mounted"], bool(reloaded["broken"])) == (is_mounted_again, not is_mounted_again)
    if is_mounted_again:
        client.call("create", table="notes", data={"title": "new"})
        assert "new" in titles(client, "notes")
        assert client.call("get_system_health")["status"] == "ok"


def test_what_is_acknowledged_is_in_the_file_that_has_the_name(running: Daemon):
    client, file = running.client("tables"), running.data_dir / "tables" / "notes" / "notes.db"
    told = 0
    for number in range(20):
        if number % 5 == 2:
            _file_gone(file.parent)
        try:
            row = client.call("create", table="notes", data={"title": str(number)})
        except Refused:
            told += 1
            client.call("reload")
            continue
        other = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        assert other.execute("SELECT count(*) FROM rows WHERE id = ?", (row["id"],)).fetchone() == (1,)
        other.close()
    assert told == 4


@pytest.mark.parametrize("sql", ["DROP TABLE rows", "ALTER TABLE rows RENAME COLUMN data TO other"])
@pytest.mark.parametrize("is_running", [True, False])
def test_a_file_that_has_lost_its_rows_is_broken_with_the_reason(running: Daemon, sql: str, is_running: bool):
    if not is_running:
        running.stop()
    file = apsw.Connection(str(running.data_dir / "tables" / "notes" / "notes.db"))
    file.execute(sql)
    file.close()
    if not is_running:
        running.start()
    client = running.client("all")
    reloaded = client.call("reload")
    assert reloaded["mounted"] == ["second"]
    (broken,) = reloaded["broken"]
    assert (broken["table"], broken["code"], "rows" in broken["reason"]) == ("notes", "STORAGE_ERROR", True)
    assert client.call("get_system_health")["status"] == "degraded"
    client.call("create", table="second", data={"title": "goes on"})


def test_a_default_table_that_cannot_be_used_is_a_reason(tmp_path: Path):
    settings = one_table(tmp_path / "elsewhere")
    with daemon(tmp_path / "data", environment=settings) as running:
        client = running.client("all")
        client.call("create", data={"title": "a"})
        Path(settings["CONVMEM_DB"]).unlink()
        assert refused(client, "list")["code"] == "TABLE_NOT_FOUND"
        Path(settings["CONVMEM_SCHEMA"]).write_text("table: [")
        client.call("reload")
        assert client.call("get_system_health")["status"] == "degraded"


def test_the_last_copy_of_a_table_whose_file_is_gone_stays_in_the_backup(running: Daemon, tmp_path: Path):
    copy, data = str(tmp_path / "copy"), str(running.data_dir)
    convmem("backup", copy, "--data-dir", data)
    _file_gone(running.data_dir / "tables" / "notes")
    assert refused(running.client("tables"), "list", table="notes")["code"] == "TABLE_NOT_FOUND"
    schema = running.data_dir / "tables" / "notes" / "schema.yaml"
    for text in (NOTES, "table: ["):
        schema.write_text(text)
        if text != NOTES:
            assert running.client("tables").call("reload")["broken"][0]["table"] == "notes"
        (named,) = convmem("backup", copy, "--data-dir", data)["not_copied"]
        assert "tables/notes/notes.db" in named
    schema.write_text(NOTES)
    convmem("backup", copy, "--data-dir", data)
    convmem("restore", copy, "--data-dir", str(tmp_path / "restored"))
    with daemon(tmp_path / "restored") as restored:
        assert titles(restored.client("tables"), "notes") == {"kept"}
