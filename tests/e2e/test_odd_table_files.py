"""Files of tables that others have written, moved or replaced while a daemon uses them."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.daemons import Daemon, RawClient, Refused, daemon
from tests.support.tabled import put_table

pytestmark = pytest.mark.slow
NO_UTF8 = "CAST(x'ff41' AS TEXT)"
ROW = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with two tables, a row in both."""
    for name in ("notes", "second"):
        put_table(tmp_path / "data" / "tables", name)
    with daemon(tmp_path / "data") as started:
        for name in ("notes", "second"):
            started.client("tables").call("create", table=name, data={"title": "kept"})
        yield started


def tables_of(running: Daemon) -> Path:
    return running.data_dir / "tables"


def there(running: Daemon) -> list[str]:
    root = tables_of(running)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def refused(client: RawClient, tool: str, **arguments: Any) -> dict[str, Any]:
    with pytest.raises(Refused) as found:
        client.call(tool, **arguments)
    return dict(found.value.error)


def meddle(running: Daemon, *statements: str, table: str = "notes") -> None:
    """What another program does to a table's file meanwhile."""
    file = apsw.Connection(str(tables_of(running) / table / f"{table}.db"))
    for statement in statements:
        file.execute(statement)
    file.close()


def test_a_text_that_is_no_utf_8_hides_no_row(running: Daemon):
    client = running.client("tables")
    (row,) = client.call("list", table="notes")["rows"]
    meddle(
        running,
        f"INSERT INTO rows VALUES ('{ROW}', {NO_UTF8}, 1, 1), ({NO_UTF8}, '{{}}', 2, 2)",
        f"INSERT INTO _row_history (table_name, row_id, version, recorded_at, op, data_json)"
        f" VALUES ('notes', '{row['id']}', 7, 1, 'update', {NO_UTF8})",
    )
    for _ in range(2):
        for order in ([], [{"field": "title"}]):
            page = client.call("list", table="notes", order_by=order)
            assert {one["id"]: "damaged" in one for one in page["rows"]} == {row["id"]: False, ROW: True}
            assert page["unreadable"] == 1
    meddle(running, "INSERT INTO rows VALUES (NULL, '{}', 1, 1)")
    alias = {"name": "both", "sources": {"kind": "multi", "value": ["notes", "second"]}}
    client.call("alias_create", **alias)
    assert len(client.call("alias_run", name="both")["rows"]) == 4
    meddle(running, "DELETE FROM rows WHERE id IS NULL")
    assert refused(client, "get", table="notes", id=ROW)["code"] == "STORAGE_ERROR"
    prefix = row["id"][:6]
    meddle(running, f"INSERT INTO rows VALUES (CAST(x'{prefix.encode().hex()}30ff' AS TEXT), '{{}}', 1, 1)")
    for tool in ("get", "row_history"):
        assert client.call(tool, table="notes", id=prefix)["id"] == row["id"]
    meddle(running, f"DELETE FROM rows WHERE CAST(id AS BLOB) = x'{prefix.encode().hex()}30ff'")
    assert client.call("row_history", table="notes", id=row["id"])["damaged"] == [[7, 7]]
    assert client.call("update", table="notes", id=row["id"], data={"title": "changed"})["version"] == 8
    assert [one["version"] for one in client.call("row_history", table="notes", id=row["id"])["versions"]] == [8, 1]
    fields = [{"name": "title", "type": "string"}]
    assert client.call("schema_update", table="notes", fields=fields)["rows_failing"] == 1


def test_a_statement_that_would_leave_no_utf_8_is_refused_and_the_table_is_well(running: Daemon):
    client = running.client("tables")
    sql = "UPDATE rows SET data = json_set(data, '$.a', char(55296))"
    assert refused(client, "schema_batch", table="notes", ops=[{"op": "query", "sql": sql}])["code"] == "BATCH_ABORTED"
    meddle(running, f"INSERT INTO rows VALUES ('{ROW}', {NO_UTF8}, 1, 1)")
    error = refused(client, "schema_batch", table="notes", ops=[{"op": "query", "sql": "DELETE FROM rows"}])
    assert (error["code"], error["cause"]["field"]) == ("BATCH_ABORTED", "sql")
    assert client.call("create", table="notes", data={"title": "more"})["version"] == 1


def test_one_alias_that_is_no_utf_8_hides_no_other(running: Daemon):
    client = running.client("tables")
    for name in ("first", "last"):
        client.call("alias_create", table="notes", name=name, filter={"type": "exists", "field": "title"})
    running.stop()
    own = apsw.Connection(str(tables_of(running) / "_global.db"))
    own.execute(f"UPDATE aliases SET definition = {NO_UTF8} WHERE name = 'first'")
    own.close()
    meddle(
        running,
        "CREATE TABLE _aliases (name TEXT PRIMARY KEY, filter TEXT, default_limit INTEGER, description TEXT,"
        " params_schema TEXT)",
        f"INSERT INTO _aliases VALUES ('theirs', NULL, 5, {NO_UTF8}, NULL), ('whole', NULL, 5, 'x', NULL)",
        table="second",
    )
    running.start()
    found = running.client("tables").call("alias_list")
    assert {(alias["table"], alias["name"]) for alias in found["aliases"]} == {("notes", "last"), ("second", "whole")}
    assert found["damaged"] == [{"name": "first", "table": "notes", "scope": "user"}]
    assert "an alias in second was not taken over, it cannot be read: theirs" in running.stop()[1]


def test_what_is_tried_or_cannot_be_made_leaves_nothing(running: Daemon):
    before = there(running)
    client = running.client("tables")
    os.mkdir(tables_of(running) / "empty")
    for name in ("fresh", "empty"):
        ops = [{"op": "schema_create", "table": name, "fields": [{"name": "a", "type": "string"}]}]
        assert client.call("schema_batch", ops=ops, dry_run=True)["dry_run"] is True
    os.rmdir(tables_of(running) / "empty")
    assert there(running) == before


def test_a_table_for_which_the_disk_has_no_room_leaves_nothing(tmp_path: Path):
    put_table(tmp_path / "data" / "tables")
    with daemon(tmp_path / "data") as running:
        assert running.process is not None
        # As if the disk took no file of more than a page.
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))
        fields = [{"name": "a", "type": "string"}]
        # The tables that are there are mounted, or the daemon would not answer this.
        error = refused(running.client("tables"), "schema_create", table="fresh", fields=fields)
        assert error["code"] in ("STORAGE_FULL", "STORAGE_ERROR")
        assert not [name for name in there(running) if name.startswith("fresh")]
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert running.client("tables").call("schema_create", table="fresh", fields=fields)["created"] == "fresh"
        assert running.client("tables").call("create", table="notes", data={"title": "kept"})["version"] == 1


@pytest.mark.parametrize("what", ["notes", "notes/notes.db"])
def test_a_link_that_takes_a_place_while_the_daemon_runs_is_not_followed(running: Daemon, what: str, tmp_path: Path):
    client = running.client("tables")
    place, elsewhere = tables_of(running) / what, tmp_path / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    for tool, arguments in (("list", {}), ("create", {"data": {"title": "lost"}})):
        error = refused(client, tool, table="notes", **arguments)
        assert (error["code"], "link" in error["reason"]) == ("TABLE_NOT_FOUND", True)
    assert client.call("create", table="second", data={"title": "more"})["version"] == 1
    place.unlink()
    elsewhere.rename(place)
    assert [row["data"]["title"] for row in client.call("list", table="notes")["rows"]] == ["kept"]
