"""Whatever a caller sends to the tools of tables, it gets an answer or a refusal, and the daemon goes on."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from convmem.catalog import PROFILES, Catalog
from convmem.daemon import domains
from convmem.errors import CallerError, RetryError
from tests.support.tabled import Tables, put_table, tables

SCHEMAS = Catalog(domains()).schemas
CALLS = 1_200
WORDS = ("", "a", "notes", "title", "\0", "é" * 50, "%", "{{ x }}", "$.x", "../x", "0" * 36, "x" * 5_000, '{"a":1}')
NUMBERS = (0, 1, -1, 2**53, 2**63 - 1, -(2**63), 1.5, -0.0, 1e308)
NAMES = (
    "type",
    "field",
    "value",
    "values",
    "filter",
    "filters",
    "kind",
    "mode",
    "fields",
    "op",
    "data",
    "id",
    "sql",
    "",
)
EQUAL = {"type": "eq", "field": "stars", "value": 3}
STATEMENTS = ("DELETE FROM rows WHERE rowid % 5 = 0", "UPDATE rows SET data = json_set(data, '$.stars', 1)", "SELECT 1")
CODES = {kind.code for family in (CallerError, RetryError) for kind in family.__subclasses__() if "code" in vars(kind)}


class Dice:
    """Makes arguments: mostly such as could be meant, else anything that JSON has."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.ids: list[str] = []

    def anything(self, level: int = 0) -> Any:
        choose = self._random.choice
        if level < 3 and self._random.random() < 0.3:
            if choose([True, False]):
                return [self.anything(level + 1) for _ in range(self._random.randrange(4))]
            return {choose(NAMES): self.anything(level + 1) for _ in range(self._random.randrange(5))}
        return choose([None, True, False, *NUMBERS, *WORDS, *self.ids[-5:], [], {}])

    def meant(self, name: str) -> Any:
        """A value that an argument of this name could have."""
        choose = self._random.choice
        if name == "ops":
            return [self._operation() for _ in range(self._random.randrange(1, 4))]
        made: dict[str, list[Any]] = {
            "table": ["notes"] * 9 + ["books", "nowhere"],
            "id": [*self.ids[-20:], "0", "ffffffff"],
            "data": [{"title": "t", "stars": self._random.randrange(9)}, {"stars": None}, {"title": None}],
            "filter": [EQUAL, {"type": "not", "filter": EQUAL}, {"type": "and", "filters": [EQUAL, self.anything(2)]}],
            "fields": [{"mode": "list", "fields": ["title"]}, [{"name": "title", "type": "string"}], self.anything(1)],
            "order_by": [[{"field": "stars"}], [{"field": "title", "direction": choose(["asc", "desc", "x"])}]],
            "sources": [{"kind": "single", "value": "notes"}, {"kind": "pattern", "value": "*"}, self.anything(1)],
            "aggregator": [{"kind": "count"}, {"kind": "group_by", "by_field": "title", "order": self.anything(1)}],
            "version": [1, 2, 2**53, 2**63 - 1],
            "field": ["title", "body", "stars"],
            "name": ["x", "y"],
            "dry_run": [True],
        }
        return choose(made[name]) if name in made else self.anything(1)

    def _operation(self) -> Any:
        choose = self._random.choice
        kind = choose(["create", "update", "delete", "replace", "query", "schema_update", "schema_create", "x"])
        rest = {"data": self.meant("data"), "id": self.meant("id"), "sql": choose(STATEMENTS), "match": {"stars": 1}}
        return {"op": kind, **{name: value for name, value in rest.items() if self._random.random() < 0.5}}

    def call(self) -> tuple[str, dict[str, Any]]:
        tool = self._random.choice(PROFILES["tables"])
        schema = SCHEMAS[tool]
        arguments = {}
        for name in schema["properties"]:
            is_given = name in schema.get("required", ()) or name == "table" or self._random.random() < 0.15
            if is_given:
                arguments[name] = self.meant(name) if self._random.random() < 0.9 else self.anything()
        if tool == "schema_delete":
            arguments["dry_run"] = True
        if self._random.random() < 0.02:
            arguments["unknown"] = 1
        return tool, arguments


async def made_again(t: Tables, table: str) -> None:
    """Have a table there again that a batch has taken away."""
    if table not in t.mounts.names():
        fields = [{"name": "title", "type": "string"}, {"name": "stars", "type": "number"}]
        await t.call("schema_create", table=table, fields=fields, adopt=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_sent_is_answered_and_the_daemon_goes_on(tmp_path: Path, seed: int):
    for table in ("notes", "books"):
        put_table(tmp_path / "data" / "tables", table)
    dice, answered, codes = Dice(seed), 0, set()
    async with tables(tmp_path) as t:
        for number in range(CALLS):
            tool, arguments = dice.call()
            reply = await t.reply(tool, **arguments)
            json.loads(json.dumps(reply.facts, allow_nan=False))
            if reply.refused:
                codes.add(reply.facts["error"]["code"])
            else:
                answered += 1
                if tool == "create":
                    dice.ids.append(str(reply.facts["id"]))
            if number % 100 == 0:
                for table in ("notes", "books"):
                    await made_again(t, table)
        assert t.engine.phase == "ready"
        assert codes <= CODES
        assert answered > CALLS // 10
        assert len(codes) > 5
        await t.add(title="goes on")
