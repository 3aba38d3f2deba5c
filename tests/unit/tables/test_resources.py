"""The eight resources: what they hold is what the tables and the pages say now."""

import json
from pathlib import Path

import jsonschema
import pytest

from convmem.resources import UnknownResource, found
from convmem.tables import resources, schema
from tests.support.engines import ORIGIN
from tests.support.pages import page
from tests.support.tabled import NOTES, Tables, put_table, tables


async def read(t: Tables, uri: str) -> str:
    resource, table = found(resources.RESOURCES, uri)
    return await resource.read(t.engine.access(ORIGIN), table)


async def test_there_are_eight_and_each_can_be_read(tmp_path: Path):
    put_table(tmp_path / "data" / "tables")
    async with tables(tmp_path) as t:
        assert len(resources.RESOURCES) == 8
        parsed = schema.parse(NOTES.encode())
        assert schema.parse((await read(t, "schema://yaml?table=notes")).encode()) == parsed
        assert json.loads(await read(t, "schema://json?table=notes")) == parsed.facts()
        draft = json.loads(await read(t, "schema://json-schema?table=notes"))
        jsonschema.Draft7Validator.check_schema(draft)
        jsonschema.validate({"title": "a", "stars": 1}, draft)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"stars": 1}, draft)
        for name in resources.PAGES:
            assert await read(t, f"docs://{name}") == page(f"{name}.md")


async def test_a_table_that_is_not_there_has_none_and_a_new_one_at_once(tmp_path: Path):
    async with tables(tmp_path) as t:
        for uri in ("schema://yaml?table=notes", "schema://yaml"):
            with pytest.raises(UnknownResource):
                await read(t, uri)
        await t.call("schema_create", table="notes", fields=[])
        assert "table: notes" in await read(t, "schema://yaml?table=notes")
        assert await resources.tables(t.engine.access(ORIGIN)) == ["notes"]
