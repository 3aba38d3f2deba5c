"""A client to be killed with its daemon: writes rows and batches, and says on a list what was answered.

Each row holds its writer and a number; a batch adds three rows that name each other and changes a counter, so that half
of one can be told from a whole one.
"""

import itertools
from typing import Any

import httpx

from tests.support.daemons import Daemon, RawClient, Refused

TABLES = ("one", "two")
SCHEMA = """\
table: one
fields:
  - {name: who, type: string, required: true}
  - {name: number, type: number, required: true}
  - {name: batch, type: string}
  - {name: count, type: number}
"""


class Writer:
    """One client. `answered` are rows by table and id as they were answered last, `batches` those that were."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.answered: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: dict[tuple[str, str], dict[str, Any]] = {}
        self.deleted: set[tuple[str, str]] = set()
        self.batches: set[tuple[str, str]] = set()
        self._numbers = itertools.count()

    def work(self, daemon: Daemon) -> None:
        """Write until the daemon is gone."""
        client = daemon.client("tables")
        try:
            while True:
                self._step(client)
        except (httpx.TransportError, httpx.HTTPStatusError):
            return
        except Refused as refused:
            if refused.code not in ("STOPPING", "BUSY"):
                raise

    def _step(self, client: RawClient) -> None:
        number = next(self._numbers)
        table = TABLES[number % len(TABLES)]
        if number % 3 == 2:
            batch = f"{self.name}-{number}"
            rows = [{"who": self.name, "number": part, "batch": batch} for part in range(3)]
            client.call("schema_batch", table=table, ops=[{"op": "create", "data": row} for row in rows])
            self.batches.add((table, batch))
            return
        made = client.call("create", table=table, data={"who": self.name, "number": number})
        key = (table, made["id"])
        self.answered[key] = made["data"]
        for count in range(2):
            self.asked[key] = {**made["data"], "count": count}
            self.answered[key] = client.call("update", table=table, id=made["id"], data={"count": count})["data"]
        if number % 5 == 0:
            self.asked[key] = {}
            client.call("delete", table=table, id=made["id"])
            self.deleted.add(key)
