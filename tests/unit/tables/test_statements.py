"""Statements of a caller's: rows and nothing else, whatever SQL offers, and each row as strict as one that comes in."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.clock import SystemClock
from convmem.domain import Origin
from convmem.errors import Invalid, QueryLimit
from convmem.limits import STATEMENT_MS_MAX
from convmem.store.table_store import new_id
from convmem.tables import create, history, schema, statements
from convmem.tables.statements import Allowance, Change, run
from convmem.targets import TableStamp

SCHEMA = schema.parse(
    b"table: t\nfields:\n  - {name: title, type: string, required: true}\n  - {name: n, type: number}\n"
)
CLOCK = SystemClock()
STAMP = TableStamp(5_000_000, Origin("local", "test"), lambda: new_id(CLOCK), CLOCK.monotonic_ms)
IDS = [f"0000000{number}-0000-4000-8000-000000000000" for number in range(3)]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[apsw.Connection]:
    """A table's file with three rows, in an open transaction as a decider has it."""
    connection = apsw.Connection(str(tmp_path / "t.db"))
    create.prepare(connection)
    for number, row_id in enumerate(IDS):
        text = json.dumps({"title": f"t{number}", "n": number})
        connection.execute("INSERT INTO rows VALUES (?, ?, 1, 1)", (row_id, text))
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("SAVEPOINT command")
    yield connection
    connection.close()


def done(file: apsw.Connection, sql: str, params: Any = None) -> list[Change]:
    return list(run(file, sql, params, SCHEMA, STAMP, allowance=Allowance(STAMP)))


def rows(file: apsw.Connection) -> list[Any]:
    return file.execute("SELECT * FROM rows ORDER BY id").fetchall()


def test_each_row_that_changes_is_told_with_what_it_was_and_is(file: apsw.Connection):
    found = done(
        file, "UPDATE rows SET data = json_set(data, '$.n', n + ?) FROM (SELECT 10 AS n) WHERE id > ?", [1, IDS[0]]
    )
    assert found == [
        Change(row_id, f'{{"title": "t{n}", "n": {n}}}', f'{{"title":"t{n}","n":11}}')
        for n, row_id in enumerate(IDS)
        if n
    ]
    assert [row[3] for row in rows(file)] == [1, 5000, 5000], "the time of a change"
    found = done(file, "DELETE FROM rows WHERE data->>'title' = :title", {"title": "t0"})
    assert [(change.row_id, change.after_json) for change in found] == [(IDS[0], None)]
    found = done(
        file, "INSERT INTO rows SELECT uuid(), json_object('title', value), 7, 8 FROM json_each('[\"x\",\"y\"]')"
    )
    assert [json.loads(change.after_json or "") for change in found] == [{"title": "x"}, {"title": "y"}]
    assert all(change.before_json is None for change in found)


def test_a_row_that_is_replaced_or_upserted_changed_once(file: apsw.Connection):
    sql = "INSERT OR REPLACE INTO rows VALUES (?, ?, 1, 9)"
    (found,) = done(file, sql, [IDS[0], '{"title":"new"}'])
    assert (found.before_json, found.after_json) == ('{"title": "t0", "n": 0}', '{"title":"new"}')
    upsert = "INSERT INTO rows VALUES (?, ?, 1, 9) ON CONFLICT (id) DO UPDATE SET data = excluded.data RETURNING id"
    (found,) = done(file, upsert, [IDS[0], '{"title":"newer"}'])
    assert found.after_json == '{"title":"newer"}'


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM _row_history",
        "UPDATE _schema_pending SET yaml = NULL",
        "DELETE FROM sqlite_schema",
        "INSERT INTO rows SELECT row_id, data_json, 1, 1 FROM _row_history",
        "UPDATE rows SET data = (SELECT sql FROM sqlite_schema LIMIT 1)",
        "UPDATE rows SET rowid = 99",
        "UPDATE rows SET oid = 99 WHERE id = '1'",
        "PRAGMA journal_mode = delete",
        "DELETE FROM rows WHERE id IN (SELECT name FROM pragma_table_list)",
        "ATTACH '/tmp/x.db' AS x",
        "DETACH main",
        "VACUUM",
        "VACUUM INTO '/tmp/x.db'",
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "ROLLBACK TO command",
        "RELEASE command",
        "SAVEPOINT mine",
        "CREATE TABLE x (y)",
        "CREATE TEMP TABLE rows (y)",
        "CREATE TRIGGER x AFTER DELETE ON rows BEGIN DELETE FROM _row_history; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON rows (data)",
        "CREATE VIRTUAL TABLE v USING fts5(x)",
        "ALTER TABLE rows ADD COLUMN x",
        "DROP TABLE rows",
        "SELECT 1",
        "SELECT * FROM rows",
        "EXPLAIN DELETE FROM rows",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) DELETE FROM rows WHERE id IN (SELECT n FROM r)",
        "DELETE FROM rows; DELETE FROM rows",
        "DELETE FROM rows; DROP TABLE rows",
        "DELETE FROM rows WHERE load_extension('x') = 1",
        "DELETE FROM rows WHERE randomblob(9) = 1",
        "DELETE FROM rows WHERE zeroblob(1000000000) = 1",
        "DELETE FROM rows WHERE printf('%.*c', 1000000000, 'x') = 1",
        "DELETE FROM rows WHERE readfile('/etc/passwd') = 1",
        "DELETE FROM rows WHERE sqlite_version() = 1",
        "DELETE FROM rows WHERE fts3_tokenizer('x') = 1",
        "UPDATE rows SET data = replace(replace(hex(data), '0', data || data), '2', hex(hex(hex(data))))",
        "",
        "-- nothing",
        "DELETE",
        "DELETE FROM temp.rows",
        "DELETE FROM nothing",
        "UPDATE rows SET nothing = 1",
        "INSERT INTO rows (id) VALUES ('x')",
        "INSERT INTO rows VALUES ('0000', '{\"title\":\"a\"}', 1, 1)",
        "INSERT INTO rows VALUES ('00000000-0000-1000-8000-00000000000a', '{\"title\":\"a\"}', 1, 1)",
        "INSERT INTO rows VALUES ('0000000A-0000-4000-8000-00000000000A', '{\"title\":\"a\"}', 1, 1)",
        "INSERT INTO rows VALUES (x'00', '{\"title\":\"a\"}', 1, 1)",
        'INSERT INTO rows VALUES (NULL, \'{"title":"a"}\', 1, 1)',
        "UPDATE rows SET id = uuid()",
        "UPDATE rows SET data = 'no json'",
        "UPDATE rows SET data = '[1]'",
        "UPDATE rows SET data = NULL",
        'UPDATE rows SET data = \'{"title":"a","title":"b"}\'',
        "UPDATE rows SET data = json_remove(data, '$.title')",
        "UPDATE rows SET data = json_set(data, '$.n', 'text')",
        "UPDATE rows SET data = x'7b7d'",
        "UPDATE rows SET created_at = 'now'",
        "UPDATE rows SET updated_at = -1",
        "UPDATE rows SET updated_at = 1.5",
    ],
)
def test_nothing_else_is_done(file: apsw.Connection, sql: str):
    before, past = rows(file), file.execute("SELECT count(*) FROM _row_history").fetchall()
    with pytest.raises(Invalid) as caught:
        done(file, sql)
    assert caught.value.details["field"].split(".")[0] in ("sql", "data")
    if file.in_transaction:
        file.execute("ROLLBACK TO command")
    assert rows(file) == before
    assert file.execute("SELECT count(*) FROM _row_history").fetchall() == past
    assert [row[0] for row in file.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")] == []


def test_a_statement_that_we_have_run_ourselves_is_looked_at_all_the_same(file: apsw.Connection):
    sql = "DELETE FROM _schema_pending"
    for _ in range(3):
        file.execute(sql)
    with pytest.raises(Invalid):
        done(file, sql)


def test_a_statement_without_end_is_ended(file: apsw.Connection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(statements, "STATEMENT_MS_MAX", 20)
    sources = ", ".join(f"rows AS r{number}" for number in range(60))
    with pytest.raises(QueryLimit):
        done(file, f"DELETE FROM rows WHERE (SELECT count(*) FROM {sources}) > 0")


def test_statements_of_a_batch_share_their_time_and_nothing_else_counts(file: apsw.Connection):
    now_ms = 0
    stamp = TableStamp(5_000_000, Origin("local", "test"), lambda: new_id(CLOCK), lambda: now_ms)
    allowance = Allowance(stamp)

    def delete(took_ms: int) -> None:
        def clean(data: dict[str, Any]) -> dict[str, Any]:
            nonlocal now_ms
            now_ms += 10_000
            return data

        sql = "UPDATE rows SET data = json_set(data, '$.n', 5) WHERE id = ?"
        with allowance.spent():
            nonlocal now_ms
            now_ms += took_ms
        assert list(run(file, sql, [IDS[0]], SCHEMA, stamp, allowance=allowance, clean=clean))

    for _ in range(2):
        delete(STATEMENT_MS_MAX // 2)
    with pytest.raises(QueryLimit):
        delete(1)


def test_no_statement_changes_more_rows_than_a_batch_may(file: apsw.Connection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(statements, "BATCH_ROWS_MAX", 2)
    with pytest.raises(Invalid):
        done(file, "DELETE FROM rows")


def test_a_trigger_of_the_users_does_not_get_further_than_the_statement(file: apsw.Connection):
    file.execute("CREATE TRIGGER x AFTER DELETE ON rows BEGIN DELETE FROM _row_history; END")
    with pytest.raises(Invalid):
        done(file, "DELETE FROM rows")


@pytest.mark.parametrize("params", [[[1]], [{}], [1, 2], []])
def test_params_are_scalars_and_as_many_as_there_are_places(file: apsw.Connection, params: Any):
    with pytest.raises(Invalid) as caught:
        done(file, "DELETE FROM rows WHERE id = ?", params)
    assert caught.value.details["field"] == "params"


def test_afterwards_the_connection_is_as_it_was(file: apsw.Connection):
    limit = file.limit(apsw.SQLITE_LIMIT_LENGTH)
    for sql in ("DELETE FROM rows WHERE id = '1'", "DROP TABLE rows"):
        with suppress(Invalid):
            done(file, sql)
    assert file.authorizer is None
    assert file.limit(apsw.SQLITE_LIMIT_LENGTH) == limit
    file.execute("CREATE TABLE mine (x)")
    history.append(file, "t", IDS[0], "delete", None, "{}", None, 1)
    with pytest.raises(apsw.SQLError):
        file.execute("SELECT uuid()")
