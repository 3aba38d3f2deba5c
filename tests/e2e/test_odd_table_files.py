"""Files of tables that stand, or come to stand, where or as nobody expects them: named, never followed, never lost."""

import json
import os
from pathlib import Path

import pytest

from tests.support.commands import ran
from tests.support.daemons import daemon
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
