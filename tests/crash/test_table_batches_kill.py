"""kill -9 while eight clients write rows and batches and schemas change: what was answered is there, and whole."""

import random
import shutil
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem import strict_json
from convmem.tables import schema
from tests.support.daemons import Daemon, daemon
from tests.support.table_client import SCHEMA, TABLES, Writer

pytestmark = pytest.mark.slow
CLIENTS, KILLS, DELAY_MS = 8, 5, (300, 900)
SHAPED = [{"name": "text", "type": "string", "required": True}]


def put_tables(root: Path) -> None:
    for table in TABLES:
        (root / table).mkdir(parents=True)
        (root / table / "schema.yaml").write_text(SCHEMA.replace("table: one", f"table: {table}"))


def shape(running: Daemon, acknowledged: list[int]) -> None:
    """Change a table's schema and rows in one batch, again and again: field f<number> and a row that has it."""
    import httpx

    client = running.client("tables")
    try:
        while True:
            number = (acknowledged[-1] if acknowledged else 0) + 1
            fields = [*SHAPED, {"name": f"f{number}", "type": "number", "required": True}]
            ops: list[dict[str, Any]] = [
                {"op": "schema_update", "fields": fields},
                {"op": "query", "sql": "DELETE FROM rows"},
                {"op": "create", "data": {"text": "x", f"f{number}": number}},
            ]
            client.call("schema_batch", table="shaped", ops=ops)
            acknowledged.append(number)
    except (httpx.TransportError, httpx.HTTPStatusError):
        return


def rows_of(path: Path) -> dict[str, Any]:
    """All rows of a file, as any other program reads them."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    return {row[0]: strict_json.parse(str(row[1]).encode()) for row in connection.execute("SELECT id, data FROM rows")}


def check_rows(root: Path, writers: list[Writer]) -> None:
    for table in TABLES:
        found = rows_of(root / table / f"{table}.db")
        batches: dict[str, set[int]] = defaultdict(set)
        for data in found.values():
            if "batch" in data:
                batches[data["batch"]].add(data["number"])
        assert all(parts == {0, 1, 2} for parts in batches.values()), "a batch is there by half"
        for writer in writers:
            assert {batch for name, batch in writer.batches if name == table} <= set(batches), "a batch is lost"
            for (name, row_id), data in writer.answered.items():
                if name == table and (name, row_id) not in writer.deleted:
                    is_being_deleted = writer.asked.get((name, row_id)) == {}
                    possible = [data, writer.asked.get((name, row_id), data)]
                    assert found.get(row_id) in possible or (is_being_deleted and row_id not in found), "a row is lost"
            assert not {row_id for name, row_id in writer.deleted if name == table} & set(found), "a row came back"


def check_history(root: Path) -> None:
    for table in TABLES:
        connection = apsw.Connection(str(root / table / f"{table}.db"), flags=apsw.SQLITE_OPEN_READONLY)
        versions: dict[str, list[int]] = defaultdict(list)
        for row_id, version in connection.execute("SELECT row_id, version FROM _row_history ORDER BY row_id, version"):
            versions[str(row_id)].append(int(str(version)))
        assert all(found == list(range(1, len(found) + 1)) for found in versions.values()), "a version is missing"
        assert set(versions) >= set(rows_of(root / table / f"{table}.db"))


def check_shape(root: Path, acknowledged: list[int]) -> None:
    """The schema's file and the rows belong together, and are of what was acknowledged last or of what came next."""
    parsed = schema.parse((root / "shaped" / "schema.yaml").read_bytes())
    (field,) = [field.name for field in parsed.fields if field.name != "text"] or ["f0"]
    number = int(field.removeprefix("f"))
    last = acknowledged[-1] if acknowledged else 0
    assert number in (last, last + 1)
    if number:
        (data,) = rows_of(root / "shaped" / "shaped.db").values()
        assert data[f"f{number}"] == number
        acknowledged.append(number)


def test_kill_9_under_eight_clients_loses_nothing_and_halves_nothing(tmp_path: Path):
    dice = random.Random(7)
    root = tmp_path / "data" / "tables"
    put_tables(root)
    (root / "shaped").mkdir()
    (root / "shaped" / "schema.yaml").write_text(
        "table: shaped\nfields:\n  - {name: text, type: string, required: true}\n"
    )
    acknowledged: list[int] = []
    writers: list[Writer] = []
    with daemon(tmp_path / "data") as running:
        for run in range(KILLS):
            now = [Writer(f"w{run}-{number}") for number in range(CLIENTS)]
            writers += now
            threads = [threading.Thread(target=writer.work, args=(running,)) for writer in now]
            threads.append(threading.Thread(target=shape, args=(running, acknowledged)))
            for thread in threads:
                thread.start()
            threading.Event().wait(dice.uniform(*DELAY_MS) / 1_000)
            running.kill()
            for thread in threads:
                thread.join()
            running.start()
            running.client("tables").call("reload")
            check_rows(root, writers)
            check_history(root)
            check_shape(root, acknowledged)
        running.stop()
    assert sum(len(writer.answered) + len(writer.batches) for writer in writers) > 100, "too little load"
    assert len(acknowledged) > KILLS
    shutil.rmtree(tmp_path)
