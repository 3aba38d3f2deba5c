"""Rows over MCP beside the same statements in plain apsw: python -m tests.bench.table_calls [DIRECTORY [ROWS]]

create, get, list with a filter and update, at 1 and at 32 clients; the floor is one connection that does by itself what
has to be done on the disk: the same INSERT, SELECT and UPDATE with their history, each in one flushed transaction.
Then, over ROWS rows (100,000): a filtered list has a goal of 20 ms at p99, a group_by one of 300 ms.
"""

import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from tests.bench.load import drive, table, tool_request
from tests.support.daemons import Daemon, RawClient, daemon

ROUNDS, CALLS, CLIENTS, ROWS = 3, 600, 32, 100_000
SCHEMA = """\
table: tasks
fields:
  - {name: title, type: string, required: true}
  - {name: state, type: string}
  - {name: owner, type: string}
  - {name: points, type: number}
  - {name: note, type: string}
"""
STATES, OWNERS = ("open", "doing", "done", "dropped"), 50
LAYOUT = """
CREATE TABLE rows (id TEXT PRIMARY KEY, data TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE history (id INTEGER PRIMARY KEY, row_id TEXT, version INTEGER, at INTEGER, op TEXT, data TEXT);
CREATE INDEX history_of_row ON history (row_id, version);
"""
FILTER = "SELECT id, data FROM rows WHERE data ->> '$.state' = ? ORDER BY created_at DESC LIMIT 20"


def data(number: int) -> dict[str, Any]:
    return {
        "title": f"Task number {number}",
        "state": STATES[number % len(STATES)],
        "owner": f"person {number % OWNERS}",
        "points": number % 13,
        "note": "What has to be looked at before this can be closed. " * 3,
    }


def timed(work: Callable[[int], Any], count: int = CALLS) -> float:
    """The median of so many calls in microseconds."""
    found = []
    for number in range(count):
        begun = time.perf_counter()
        work(number)
        found.append((time.perf_counter() - begun) * 1e6)
    return statistics.median(found)


def floor(directory: Path) -> dict[str, float]:
    """What the statements alone take, on the same disk."""
    connection = apsw.Connection(str(directory / "floor.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", 2)
    connection.execute(LAYOUT)
    ids: list[str] = []

    def change(op: str, row_id: str, text: str, sql: str) -> None:
        with connection:
            connection.execute(sql, (text, row_id))
            connection.execute(
                "INSERT INTO history (row_id, version, at, op, data) VALUES"
                " (?, (SELECT 1 + ifnull(max(version), 0) FROM history WHERE row_id = ?), 0, ?, ?)",
                (row_id, row_id, op, text),
            )

    def create(number: int) -> None:
        ids.append(str(uuid.UUID(int=number)))
        change(
            "create",
            ids[-1],
            json.dumps(data(number)),
            "INSERT INTO rows (data, id, created_at, updated_at) VALUES (?, ?, 0, 0)",
        )

    return {
        "create": timed(create),
        "get": timed(lambda number: connection.execute("SELECT * FROM rows WHERE id = ?", (ids[number],)).fetchall()),
        "list": timed(lambda number: connection.execute(FILTER, (STATES[number % 4],)).fetchall()),
        "update": timed(
            lambda number: change(
                "update", ids[number], json.dumps(data(number + 1)), "UPDATE rows SET data = ? WHERE id = ?"
            )
        ),
    }


def requests(running: Daemon, row_id: str) -> dict[str, bytes]:
    def made(tool: str, **arguments: Any) -> bytes:
        return tool_request(running.port, "/mcp/tables", tool, {"table": "tasks", **arguments})

    return {
        "create": made("create", data=data(1)),
        "get": made("get", id=row_id),
        "list": made("list", filter={"type": "eq", "field": "state", "value": "doing"}, limit=20),
        "update": made("update", id=row_id, data={"points": 7}),
    }


def main() -> None:
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="convmem-tables-"))
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else ROWS
    place.mkdir(parents=True, exist_ok=True)
    base = floor(place)
    (place / "data" / "tables" / "tasks").mkdir(parents=True)
    (place / "data" / "tables" / "tasks" / "schema.yaml").write_text(SCHEMA)
    with daemon(place / "data") as running:
        client = RawClient(f"{running.url}/tables")
        pid = running.process.pid if running.process else 0
        first = client.call("create", table="tasks", data=data(0))["id"]
        found = []
        for name, request in requests(running, first).items():
            one = [drive(running.port, pid, request, count=CALLS, connections=1) for _ in range(ROUNDS)]
            many = [drive(running.port, pid, request, count=4 * CALLS, connections=CLIENTS) for _ in range(ROUNDS)]
            p50 = statistics.median(run.p50_us for run in one)
            found.append(
                [
                    *(name, f"{base[name]:.0f}", f"{p50:.0f}", f"{p50 / base[name]:.1f}"),
                    *(
                        f"{statistics.median(run.p99_us for run in one):.0f}",
                        f"{statistics.median(run.cpu_us for run in one):.0f}",
                    ),
                    *(
                        f"{statistics.median(run.rate for run in many):.0f}",
                        f"{statistics.median(run.p99_us for run in many):.0f}",
                    ),
                ]
            )
        columns = [
            "tool",
            "apsw us",
            "p50 us",
            "x apsw",
            "p99 us",
            "CPU us",
            f"calls/s at {CLIENTS}",
            f"p99 us at {CLIENTS}",
        ]
        table(f"rows over MCP, median of {ROUNDS} rounds of {CALLS} calls", columns, found)
        large(client, rows)
        running.stop()
    print(f"files: {os.path.getsize(place / 'data/tables/tasks/tasks.db'):,} bytes")


def large(client: RawClient, rows: int) -> None:
    """Questions to a large table."""
    begun = time.perf_counter()
    for start in range(0, rows, 1_000):
        ops = [{"op": "data_insert", "data": data(number)} for number in range(start, min(rows, start + 1_000))]
        client.call("schema_batch", table="tasks", ops=ops)
    print(f"{rows:,} rows in batches of 1,000: {rows / (time.perf_counter() - begun):,.0f} a second")
    sources = {"kind": "single", "value": "tasks"}
    by_state = {"kind": "group_by", "by_field": "state", "inner": {"kind": "sum", "field": "points"}}
    owner = {"type": "eq", "field": "owner", "value": "person 7"}
    rare = {"type": "and", "filters": [owner, {"type": "gt", "field": "points", "value": 11}]}

    def listed(**more: Any) -> Callable[[], Any]:
        return lambda: client.call("list", table="tasks", limit=20, **more)

    def aggregated(**more: Any) -> Callable[[], Any]:
        return lambda: client.call("query_aggregate", sources=sources, **more)

    questions: dict[str, tuple[int, Callable[[], Any]]] = {
        "list, a quarter matches": (20, listed(filter={"type": "eq", "field": "state", "value": "open"})),
        "list, one in 650 matches": (20, listed(filter=rare)),
        "list, nothing matches": (20, listed(filter={"type": "eq", "field": "state", "value": "none"})),
        "list ordered by title": (20, listed(order_by=[{"field": "title"}])),
        "count of a filter": (300, aggregated(filter=rare, aggregator={"kind": "count"})),
        "group_by with a sum": (300, aggregated(aggregator=by_state)),
    }
    shown = []
    for name, (goal_ms, ask) in questions.items():
        took = []
        for _ in range(40):
            begun = time.perf_counter()
            ask()
            took.append((time.perf_counter() - begun) * 1000)
        took.sort()
        p99 = took[-1]
        shown.append([name, f"{took[20]:.1f}", f"{p99:.1f}", str(goal_ms), "kept" if p99 <= goal_ms else "BROKEN"])
    table(f"questions to {rows:,} rows, 40 times each", ["question", "p50 ms", "most ms", "goal", ""], shown)


if __name__ == "__main__":
    main()
