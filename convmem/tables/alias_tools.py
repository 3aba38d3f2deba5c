"""The tools for questions with a name, and for questions to many rows at once."""

from collections.abc import Sequence
from typing import Any

from convmem import folders
from convmem.domain import Access, Answer
from convmem.errors import AggregateRefused, Invalid
from convmem.limits import (
    AGGREGATE_SOURCES_MAX,
    ALIASES_SHOWN_MAX,
    REPLY_BYTES_DEFAULT,
    REPLY_ENVELOPE_BYTES,
    ROWS_LIMIT_DEFAULT,
)
from convmem.reply_bytes import reply_bytes
from convmem.tables import aggregate, alias_tables, aliases, filters, ordering, selection, sources, union_pages, views
from convmem.tables.aggregate import Source
from convmem.tables.alias_inputs import AliasCreate, AliasDelete, AliasList, AliasRun, QueryAggregate
from convmem.tables.alias_tables import CreateAlias, DeleteAlias, Line, alias_file
from convmem.tables.aliases import Alias, Placed
from convmem.tables.mounts import Mounts, mounts_of
from convmem.tables.offering import reads, writes
from convmem.tables.pages import Question
from convmem.tables.places import Scope
from convmem.tables.scanning import Mount
from convmem.tables.sources import Sources

DAMAGED_SHOWN_MAX = 20


async def alias_create(access: Access, ask: AliasCreate) -> Answer:
    """Keep a question under its name."""
    mounts = await mounts_of(access)
    given = ask.model_dump(exclude={"scope"})
    scope: Scope = ask.scope or "user"
    schemas = []
    if ask.sources is None:
        mount = await mounts.mounted(ask.table)
        given |= {"table": mount.table}
        scope, schemas = ask.scope or mount.scope, [mount.schema]
    else:
        given |= {"table": ask.table or ""}
        schemas = [mounts.table(name).schema for name in _there(mounts, sources.parse(ask.sources))]
    alias = aliases.checked(Alias(**given), schemas)
    root = mounts.root(scope)
    if root is None:
        raise Invalid(f"there is no directory for tables of scope {scope} that can be used", field="scope")
    await access.write(CreateAlias(alias_file(root.aliases), alias))
    return Answer({"created": alias.name, "table": alias.table or None, "scope": scope})


def _there(mounts: Mounts, asked: Sources) -> list[str]:
    """The tables of sources that are there now: an alias may be made before its tables are."""
    return [name for name in mounts.names() if asked.cover(name)][:AGGREGATE_SOURCES_MAX]


async def alias_list(access: Access, ask: AliasList) -> Answer:
    """All of them, those of the project first; what it hides is left out. {aliases, damaged?, truncated?}."""
    found = await _lines(access, alias_tables.every, ALIASES_SHOWN_MAX + 1)
    seen: set[tuple[str, str]] = set()
    shown, damaged = list[dict[str, Any]](), list[dict[str, Any]]()
    for scope, (table, name, alias) in found:
        is_asked = (ask.scope in (None, scope)) and (ask.table is None or table in (ask.table, ""))
        if is_asked and alias is None:
            damaged.append({"name": name, "table": table or None, "scope": scope})
        elif is_asked and alias is not None and (ask.scope is not None or (table, name) not in seen):
            shown.append(alias.facts(scope))
        seen.add((table, name))
    facts, is_cut = _fitting(shown[:ALIASES_SHOWN_MAX])
    cut = {"truncated": True} if is_cut or len(shown) > ALIASES_SHOWN_MAX else {}
    named = {"damaged": damaged[:DAMAGED_SHOWN_MAX]} if damaged else {}
    return Answer({"aliases": facts, **named, **cut})


async def alias_run(access: Access, ask: AliasRun) -> Answer:
    """Ask the question that bears the name."""
    placed = aliases.chosen(await _placed(access, ask.name), ask.name, ask.table)
    alias, mounts = placed.alias, await mounts_of(access)
    if alias.sources is None:
        return await _rows_of_one(access, await mounts.mounted(alias.table), alias, ask)
    tables = await _mounted(mounts, aliases.sources_of(alias))
    schemas = [mount.schema for mount in tables]
    filter_ = aliases.filter_of(alias, ask.params, schemas)
    aggregator = aliases.aggregator_of(alias, schemas)
    if aggregator is not None:
        return await _aggregated(access, tables, filter_, aggregator)
    for schema in schemas:
        order = ordering.parse(ask.order_by or alias.order_by, schema)
        shown = selection.parse(ask.fields or alias.fields, schema)
    limit = ask.limit or alias.default_limit or ROWS_LIMIT_DEFAULT
    asked = union_pages.Asked(filter_, order, shown, limit, ask.offset, ask.reply_bytes_max)
    return Answer(await access.read_files(_paths(tables), union_pages.rows, _attached(tables), asked))


async def _rows_of_one(access: Access, mount: Mount, alias: Alias, ask: AliasRun) -> Answer:
    filter_ = aliases.filter_of(alias, ask.params, [mount.schema])
    order = ordering.parse(ask.order_by or alias.order_by, mount.schema)
    shown = selection.parse(ask.fields or alias.fields, mount.schema)
    page = views.Page(
        limit=ask.limit or alias.default_limit or ROWS_LIMIT_DEFAULT,
        offset=ask.offset,
        cursor=ask.cursor,
        reply_bytes_max=ask.reply_bytes_max,
    )
    question = Question(mount.table, filter_, order)
    return Answer(await access.read_files([mount.file.path], views.list_rows, question, shown, page))


async def alias_delete(access: Access, ask: AliasDelete) -> Answer:
    """Take a name away."""
    found = await _placed(access, ask.name)
    wanted = [placed for placed in found if ask.scope in (None, placed.scope)]
    scope, alias = aliases.chosen(wanted, ask.name, ask.table)
    root = (await mounts_of(access)).root(scope)
    assert root is not None, "it was found there"
    await access.write(DeleteAlias(alias_file(root.aliases), alias.table, alias.name))
    return Answer({"deleted": alias.name, "table": alias.table or None, "scope": scope})


async def query_aggregate(access: Access, ask: QueryAggregate) -> Answer:
    """Count, sum or group the rows of tables."""
    tables = await _mounted(await mounts_of(access), sources.parse(ask.sources))
    schemas = [mount.schema for mount in tables]
    filter_ = None
    for schema in schemas:
        filter_ = None if ask.filter is None else filters.parse(ask.filter, schema)
    return await _aggregated(access, tables, filter_, aggregate.parse(ask.aggregator, schemas))


async def _aggregated(access: Access, tables: Sequence[Mount], filter_: Any, aggregator: Any) -> Answer:
    facts = await access.read_files(_paths(tables), aggregate.run, _attached(tables), filter_, aggregator)
    if facts["kind"] == "groups":
        shown, is_cut = _fitting(facts["value"])
        facts = {**facts, "value": shown, **({"truncated": True} if is_cut else {})}
    return Answer(facts)


async def _mounted(mounts: Mounts, asked: Sources) -> list[Mount]:
    """The tables that are asked, no more than may be looked at together. TableNotFound, AggregateRefused."""
    await mounts.ready()
    names = asked.among(mounts.names())
    if len(names) > AGGREGATE_SOURCES_MAX:
        sentence = f"at most {AGGREGATE_SOURCES_MAX} tables are looked at together, not {len(names)}"
        raise AggregateRefused(sentence)
    return [await mounts.mounted(name) for name in names]


def _paths(tables: Sequence[Mount]) -> list[Any]:
    return [mount.file.path for mount in tables]


def _attached(tables: Sequence[Mount]) -> list[Source]:
    names = ("main", *(f"source_{number}" for number in range(1, len(tables))))
    return [Source(mount.schema, name) for mount, name in zip(tables, names, strict=True)]


async def _placed(access: Access, name: str) -> list[Placed]:
    """The aliases of a name in each scope, the project's first."""
    found = await _lines(access, alias_tables.named, name)
    return [Placed(scope, line.alias) for scope, line in found if line.alias is not None]


async def _lines(access: Access, query: Any, *arguments: Any) -> list[tuple[Scope, Line]]:
    """What a query finds in each scope, likewise."""
    mounts = await mounts_of(access)
    found: list[tuple[Scope, Line]] = []
    for root in mounts.roots:
        if folders.size(root.aliases):
            lines = await access.read_files([root.aliases], query, *arguments)
            found += [(root.scope, line) for line in lines]
    return found


def _fitting(facts: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
    """As many as a reply holds, at least one, and whether others are left out."""
    left = REPLY_BYTES_DEFAULT - REPLY_ENVELOPE_BYTES
    shown: list[dict[str, Any]] = []
    for one in facts:
        left -= reply_bytes(one) + 2
        if left < 0 and shown:
            return shown, True
        shown.append(one)
    return shown, False


TOOLS = (
    writes(
        "alias_create",
        "Name a question",
        "Keep a filter, a template of one or an aggregate under a name.",
        AliasCreate,
        alias_create,
        destructive=False,
    ),
    reads("alias_list", "List aliases", "List the questions that have names.", AliasList, alias_list),
    reads("alias_run", "Run an alias", "Ask a question by its name.", AliasRun, alias_run),
    writes("alias_delete", "Delete an alias", "Take a name away.", AliasDelete, alias_delete),
    reads(
        "query_aggregate",
        "Aggregate rows",
        "Count, sum, average, minimum, maximum or groups over one table or several.",
        QueryAggregate,
        query_aggregate,
    ),
)
