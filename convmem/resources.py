"""Resources: texts that a client reads by URI, some of them once for each table.

    docs://errors                 one text
    schema://yaml?table=books     the text of a table; without the query that of the default table, if there is one

A URI has one spelling: the resource's own, and at most `table` behind it, percent-encoded. Everything else is unknown.
Rejected: taking any query apart as a browser would; two spellings of one text would be kept twice by clients.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from convmem.limits import RESOURCES_A_PAGE, URI_CODE_POINTS_MAX

if TYPE_CHECKING:
    from convmem.domain import Access

QUERY = "?table="


class UnknownResource(Exception):
    """There is no such resource."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One text, or one for each table: `read(access, table)` gives it, for None that of the default table. It raises
    UnknownResource, or the ConvmemError that says why it cannot be read now.
    """

    uri: str
    name: str
    title: str
    description: str
    mime_type: str
    read: Callable[["Access", str | None], Awaitable[str]]
    is_of_tables: bool = False


class Entry(NamedTuple):
    """How one resource stands in a list."""

    uri: str
    name: str
    title: str
    description: str
    mime_type: str

    def facts(self) -> dict[str, Any]:
        """The same as the protocol writes it."""
        facts = {"uri": self.uri, "name": self.name, "title": self.title, "description": self.description}
        return {**facts, "mimeType": self.mime_type}


def entries(resources: Sequence[Resource], tables: Sequence[str]) -> Iterator[Entry]:
    """Every resource that can be read now: those of tables once for each."""
    for resource in resources:
        about = (resource.description, resource.mime_type)
        if not resource.is_of_tables:
            yield Entry(resource.uri, resource.name, resource.title, *about)
            continue
        for table in tables:
            name, title = f"{resource.name}-{table}", f"{resource.title}: {table}"
            yield Entry(f"{resource.uri}{QUERY}{quote(table, safe='')}", name, title, *about)


def templates(resources: Sequence[Resource]) -> list[dict[str, Any]]:
    """How the URIs of tables are made (RFC 6570)."""
    return [
        {
            "uriTemplate": f"{resource.uri}{{?table}}",
            "name": resource.name,
            "title": resource.title,
            "description": resource.description,
            "mimeType": resource.mime_type,
        }
        for resource in resources
        if resource.is_of_tables
    ]


def found(resources: Sequence[Resource], uri: str) -> tuple[Resource, str | None]:
    """The resource that a URI means, and its table if it names one. UnknownResource."""
    base, mark, query = uri.partition(QUERY)
    for resource in resources:
        if resource.uri == base and len(uri) <= URI_CODE_POINTS_MAX and (not mark or resource.is_of_tables):
            table = unquote(query, errors="strict") if mark and query.isascii() else None
            if bool(mark) == (table is not None) and "&" not in query:
                return resource, table
    raise UnknownResource


def page(listed: Sequence[Entry], start: int) -> tuple[Sequence[Entry], int | None]:
    """The entries of a page that begins there, and where the next one does."""
    end = start + RESOURCES_A_PAGE
    return listed[start:end], end if end < len(listed) else None
