"""A real engine with tables, in the test's own loop: its tools called as the daemon calls them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from convmem.catalog import Catalog, Reply
from convmem.clock import Clock, SystemClock
from convmem.daemon import domains
from convmem.domain import Origin
from convmem.engine import Engine
from convmem.files import RealFiles
from convmem.tables.mounts import Mounts
from convmem.tables.places import Places
from tests.support.engines import ORIGIN, started

NOTES = """\
table: notes
title: Notes
fields:
  - name: title
    type: string
    required: true
  - name: body
    type: string
  - name: stars
    type: number
  - name: done
    type: boolean
  - name: tags
    type: array
  - name: extra
    type: object
"""


def put_table(root: Path, name: str = "notes", schema: str = NOTES) -> Path:
    """Write the schema of a table into a root; the table's directory."""
    directory = root / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "schema.yaml").write_text(schema.replace("table: notes", f"table: {name}", 1))
    return directory


class Refused(Exception):
    """A tool answered with an error."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        super().__init__(facts["code"], facts["message"])
        self.facts = facts
        self.code: str = facts["code"]


class Tables:
    """The tools over one engine, and its mounts."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._catalog = Catalog(domains())

    @property
    def mounts(self) -> Mounts:
        assert isinstance(self.engine.mounting, Mounts)
        return self.engine.mounting

    async def reply(self, tool: str, origin: Origin = ORIGIN, **arguments: Any) -> Reply:
        """The whole reply."""
        return await self._catalog.call(self._catalog.tools[tool], arguments, self.engine.access(origin))

    async def call(self, tool: str, origin: Origin = ORIGIN, **arguments: Any) -> dict[str, Any]:
        """The facts of the answer; Refused if it is none."""
        reply = await self.reply(tool, origin, **arguments)
        if reply.refused:
            raise Refused(reply.facts["error"])
        return dict(reply.facts)

    async def add(self, table: str = "notes", **data: Any) -> dict[str, Any]:
        """A new row; its receipt."""
        return await self.call("create", table=table, data=data)


@asynccontextmanager
async def tables(
    directory: Path, clock: Clock | None = None, places: Places | None = None, **more: Any
) -> AsyncIterator[Tables]:
    """An engine whose user's tables are in directory/tables, or in these places; `more` are fields of Places."""
    user = directory / "data" / "tables"
    user.mkdir(parents=True, exist_ok=True)
    where = places or Places(**{"user": user, "working_directory": directory, **more})
    engine = Engine(RealFiles(directory / "data"), domains, clock or SystemClock(), lambda: Mounts(where))
    async with started(engine):
        await engine.ready()
        found = Tables(engine)
        await found.mounts.ready()
        yield found
