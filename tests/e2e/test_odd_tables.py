"""What users and other programs put into the files of tables: it is that table's trouble, and nobody else's."""

import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from convmem import cursors
from tests.support.daemons import Daemon, RawClient, Refused, daemon
from tests.support.tabled import put_table

pytestmark = pytest.mark.slow


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with two tables, rows in both."""
    for name in ("notes", "second"):
        put_table(tmp_path / "data" / "tables", name)
    with daemon(tmp_path / "data") as started:
        for name in ("notes", "second"):
            started.client("tables").call("create", table=name, data={"title": "kept"})
        yield started


def is_well(running: Daemon, *tables: str) -> None:
    """The daemon lives, and these tables and the messages can be written."""
    running.client("all").write("still here")
    for table in tables:
        running.client("tables").call("create", table=table, data={"title": "more"})
    assert running.process is not None
    assert running.process.poll() is None


def refused(client: RawClient, tool: str, **arguments: Any) -> dict[str, Any]:
    with pytest.raises(Refused) as found:
        client.call(tool, **arguments)
    return dict(found.value.error)


@pytest.mark.parametrize("is_dry", [True, False])
@pytest.mark.parametrize(("where", "params"), [("id = :x", {"y": 1}), ("id = ?1", {}), ("id = :x", [])])
def test_a_parameter_that_is_not_given_refuses_the_statement_alone(
    running: Daemon, where: str, params: Any, is_dry: bool
):
    ops = [{"op": "query", "sql": f"DELETE FROM rows WHERE {where}", "params": params}]
    error = refused(running.client("tables"), "schema_batch", table="notes", ops=ops, dry_run=is_dry)
    assert (error["code"], error["cause"]["field"]) == ("BATCH_ABORTED", "params")
    is_well(running, "notes", "second")


def test_a_statement_that_compares_without_end_is_refused(running: Daemon):
    client = running.client("tables")
    client.call("create", table="notes", data={"title": "t", "body": "a" * 1_000_000})
    sql = "UPDATE rows SET updated_at = updated_at WHERE data LIKE ?"
    ops = [{"op": "query", "sql": sql, "params": ["%" + "a" * 20_000 + "b"]}]
    assert refused(client, "schema_batch", table="notes", ops=ops)["code"] == "BATCH_ABORTED"
    is_well(running, "notes", "second")


@pytest.mark.parametrize("function", ["instr(data, :long)", "trim(data, :long) = ''", "replace(data, :long, 'x') = ''"])
def test_a_function_of_two_long_texts_holds_nobody_up(running: Daemon, function: str):
    client = running.client("tables")
    client.call("create", table="notes", data={"title": "t", "body": "a" * 1_000_000})
    ops = [{"op": "query", "sql": f"DELETE FROM rows WHERE {function}", "params": {"long": "a" * 500_000 + "b"}}]
    assert client.call("schema_batch", table="notes", ops=ops)["affects"]["deleted"] == 0
    is_well(running, "notes", "second")


def test_a_batch_has_its_time_whatever_it_does(running: Daemon):
    client = running.client("tables")
    large = {"title": "t", "body": "a" * 900_000}
    first = client.call("create", table="notes", data=large)["id"]
    ops = [{"op": "data_update", "id": first, "data": {"title": str(number)}} for number in range(1_000)]
    error = refused(client, "schema_batch", table="notes", ops=ops)
    assert (error["code"], error["cause"]["code"]) == ("BATCH_ABORTED", "QUERY_LIMIT")
    assert client.call("get", table="notes", id=first, fields={"mode": "list", "fields": ["title"]})["data"] == {
        "title": "t"
    }
    is_well(running, "notes", "second")


def test_a_stop_does_not_wait_for_questions_that_take_long(running: Daemon):
    client = running.client("tables")
    for number in range(8):
        client.call("create", table="notes", data={"title": "t", "body": f"{number}" + "a" * 1_000_000})
    tests = [{"type": "like", "field": "body", "pattern": "%" + "a" * 200 + f"{number}%"} for number in range(100)]
    filter_ = {"type": "or", "filters": tests}
    clients = [running.client("tables", x_convmem_device=str(number)) for number in range(8)]
    outcomes: list[str] = []

    def ask(one: RawClient) -> None:
        try:
            one.call("list", table="notes", filter=filter_)
        except Refused as found:
            outcomes.append(found.code)
        except httpx.HTTPError as found:
            outcomes.append(repr(found))

    with ThreadPoolExecutor(len(clients)) as threads:
        asked = [threads.submit(ask, one) for one in clients]
        # The first of them is over its time: the others wait behind it.
        wait(asked, return_when=FIRST_COMPLETED)
        status, _ = running.stop()
    assert status == 0
    assert set(outcomes) == {"QUERY_LIMIT", "STOPPING"}


ODD = {
    "a version that is a text": "UPDATE _row_history SET version = 'vvv'",
    "the largest version there is": "UPDATE _row_history SET version = 9223372036854775807",
    "a chunk that ends nowhere": (
        "INSERT INTO _row_history_archive (table_name, row_id, version_start, version_end, recorded_start,"
        " recorded_end, entry_count, blob) SELECT 'notes', id, 1, 'x', 1, 1, 1, x'00' FROM rows"
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_a_history_that_another_program_has_spoiled_stops_nothing_else(running: Daemon, name: str):
    client = running.client("tables")
    (row,) = client.call("list", table="notes")["rows"]
    running.stop()
    file = apsw.Connection(str(running.data_dir / "tables" / "notes" / "notes.db"))
    file.execute(ODD[name])
    file.close()
    running.start()
    client = running.client("tables")
    error = refused(client, "update", table="notes", id=row["id"], data={"title": "changed"})
    assert error["code"] == "STORAGE_ERROR"
    assert client.call("get", table="notes", id=row["id"])["data"] == {"title": "kept"}
    is_well(running, "second")


def test_what_stands_beside_the_rows_keeps_no_daemon_from_starting(running: Daemon):
    root = running.data_dir / "tables"
    running.stop()
    file = apsw.Connection(str(root / "notes" / "notes.db"))
    file.execute("INSERT INTO _schema_pending VALUES (1, 'a text')")
    file.close()
    file = apsw.Connection(str(root / "_global.db"))
    file.execute("DROP TABLE IF EXISTS aliases_taken_over")
    file.execute("CREATE TABLE aliases_taken_over (x)")
    file.close()
    os.mkdir(os.fsencode(root) + b"/bad\xff")
    running.start()
    is_well(running, "second")
    broken = running.client("tables").call("reload")["broken"]
    assert {one["table"] for one in broken} == {"bad\\xff", "notes"}
    health = running.client("all").call("get_system_health")
    assert health["status"] == "degraded"
    assert len(health["reasons"]) == 2


def test_a_row_with_an_id_that_is_none_hides_no_other(running: Daemon):
    running.stop()
    file = apsw.Connection(str(running.data_dir / "tables" / "notes" / "notes.db"))
    file.execute("INSERT INTO rows VALUES (NULL, '{}', 1, 1)")
    file.close()
    running.start()
    rows = running.client("tables").call("list", table="notes")["rows"]
    assert sorted(row.get("damaged", "") for row in rows) == ["", "the row has an id that is none"]


def test_a_cursor_with_another_number_of_keys_is_not_ours(running: Daemon):
    client = running.client("tables")
    order = [{"field": "title", "direction": "asc"}]
    for number in range(3):
        client.call("create", table="notes", data={"title": str(number)})
    real = client.call("list", table="notes", limit=1, order_by=order)["next_cursor"]
    assert client.call("list", table="notes", order_by=order, cursor=real)["rows"]
    # The check of a cursor is no secret; that of this question is not known here, so any other is refused too.
    for keys in ((), ("a", "b")):
        forged = cursors.cursor(("notes",), (keys, "x"))
        error = refused(client, "list", table="notes", order_by=order, cursor=forged)
        assert error["code"] == "INVALID_CURSOR"


def test_a_table_that_is_no_more_in_its_file_is_refused_in_words(running: Daemon):
    file = apsw.Connection(str(running.data_dir / "tables" / "notes" / "notes.db"))
    file.execute("DROP TABLE rows")
    file.close()
    assert refused(running.client("tables"), "list", table="notes")["code"] == "STORAGE_ERROR"
    is_well(running, "second")


def test_what_is_answered_again_is_what_was_stored_where_secrets_are_taken_out(tmp_path: Path):
    put_table(tmp_path / "data" / "tables")
    with daemon(tmp_path / "data", "--redact", "all") as running:
        client = running.client("tables")
        given = {"title": "key AKIA" + "IOSFODNN7EXAMPLE"}
        first = client.call("create", table="notes", data=given, idempotency_key="k")
        again = client.call("create", table="notes", data=given, idempotency_key="k")
        assert again.pop("replayed") is True
        assert again == first
        assert "AKIA" not in again["data"]["title"]
        client.call("update", table="notes", id=first["id"], data={"body": "x"}, expected_sha256=again["sha256"])


def test_a_receipt_is_given_again_whatever_the_schema_says_today(running: Daemon):
    client = running.client("tables")
    given = {"title": "first", "body": None}
    first = client.call("create", table="notes", data=given, idempotency_key="k")
    fields = [{"name": name, "type": "string", "required": name != "body"} for name in ("body", "title", "who")]
    client.call("delete", table="notes", id=first["id"])
    for row in client.call("list", table="notes")["rows"]:
        client.call("delete", table="notes", id=row["id"])
    client.call("schema_update", table="notes", fields=fields)
    running.stop()
    running.start()
    again = running.client("tables").call("create", table="notes", data={"title": "first"}, idempotency_key="k")
    assert again.pop("replayed") is True
    assert again == first
    error = refused(running.client("tables"), "create", table="notes", data={"title": "2"}, idempotency_key="k")
    assert error["code"] == "CONFLICT"


def test_a_key_that_was_used_for_one_table_is_not_for_another(running: Daemon):
    client = running.client("tables")
    client.call("create", table="notes", data={"title": "t"}, idempotency_key="k")
    running.stop()
    running.start()
    client = running.client("tables")
    error = refused(client, "create", table="second", data={"title": "t"}, idempotency_key="k")
    assert (error["code"], error["field"]) == ("CONFLICT", "idempotency_key")
    assert client.call("info", table="second")["rows"] == 1
    assert client.call("create", table="notes", data={"title": "t"}, idempotency_key="k")["replayed"] is True


def test_rows_are_written_where_the_file_of_aliases_is_damaged(running: Daemon):
    running.stop()
    (running.data_dir / "tables" / "_global.db").write_bytes(b"no file of SQLite" * 1_000)
    running.start()
    client = running.client("tables")
    first = client.call("create", table="notes", data={"title": "t"}, idempotency_key="k")
    again = client.call("create", table="notes", data={"title": "t"}, idempotency_key="k")
    assert (again["id"], again["replayed"]) == (first["id"], True)
