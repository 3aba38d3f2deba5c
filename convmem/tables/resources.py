"""The eight resources: a table's schema in three forms, and five pages of the documentation.

The pages are those that people read, served as they are packaged. A table's texts are made from the schema as it is
mounted now.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from convmem import folders
from convmem.domain import Access
from convmem.errors import TableNotFound, TableRequired
from convmem.limits import MIB
from convmem.resources import Resource, UnknownResource
from convmem.tables import schema
from convmem.tables.model import TableSchema
from convmem.tables.mounts import mounts_of

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {
    "quickstart": "First steps, with examples",
    "tools": "Every tool and its arguments",
    "errors": "Every error code and who can act",
    "filters": "How to say which rows",
    "order-by": "How to say in which order",
}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


FORMS: dict[str, tuple[str, str, Callable[[TableSchema], str]]] = {
    "yaml": ("application/yaml", "The schema.yaml of a table", lambda found: schema.render(found).decode()),
    "json": ("application/json", "The schema of a table as JSON", lambda found: _json(found.facts())),
    "json-schema": (
        "application/schema+json",
        "JSON Schema (draft-07) of the data of a row",
        lambda found: _json(schema.json_schema(found)),
    ),
}


async def _schema(form: str, access: Access, table: str | None) -> str:
    try:
        mount = await (await mounts_of(access)).mounted(table)
    except (TableNotFound, TableRequired):
        raise UnknownResource from None
    return FORMS[form][2](mount.schema)


async def _page(name: str, access: Access, table: str | None) -> str:
    return (await asyncio.to_thread(folders.read, DOCS / f"{name}.md", MIB)).decode()


RESOURCES = (
    *(
        Resource(
            uri=f"schema://{form}",
            name=f"schema-{form}",
            title=f"Schema ({form})",
            description=about,
            mime_type=mime_type,
            read=partial(_schema, form),
            is_of_tables=True,
        )
        for form, (mime_type, about, _) in FORMS.items()
    ),
    *(
        Resource(
            uri=f"docs://{name}",
            name=f"docs-{name}",
            title=name.replace("-", " ").capitalize(),
            description=about,
            mime_type="text/markdown",
            read=partial(_page, name),
        )
        for name, about in PAGES.items()
    ),
)


async def tables(access: Access) -> list[str]:
    """The names of all tables that are mounted."""
    mounts = await mounts_of(access)
    return mounts.names()
