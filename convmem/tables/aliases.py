"""A question with a name: what an alias is, whether it can be meant, and which one a name means.

An alias belongs to one table, or to several by `sources`; then it may carry an aggregator. Its filter is fixed, or a
template that parameters are filled into; only one over several tables may ask for all of their rows. All of it is
checked when the alias is made, as far as the schemas of that day let it be, and again when it runs: schemas change.

Of one name, that of the table asked for goes before one over several tables, and the project's hides the user's.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from convmem.errors import AliasNotFound, AmbiguousId, Invalid
from convmem.limits import ALIAS_NAME_BYTES_MAX, ID_CANDIDATES_MAX, ROWS_LIMIT_MAX
from convmem.tables import aggregate, filters, ordering, params, selection, sources, templates
from convmem.tables.aggregate import Aggregator
from convmem.tables.filters import Filter
from convmem.tables.model import TableSchema
from convmem.tables.names import field_name_fault
from convmem.tables.places import Scope
from convmem.tables.sources import Sources


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """A named question. `table` is empty where `sources` say which tables are meant. JSON values as they were given."""

    name: str
    table: str = ""
    filter: Any = None
    filter_template: str | None = None
    params_schema: Any = None
    default_limit: int | None = None
    description: str | None = None
    order_by: Any = None
    fields: Any = None
    sources: Any = None
    aggregator: Any = None

    def facts(self, scope: Scope) -> dict[str, Any]:
        """The alias for programs: every part, null where there is none."""
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        return {**shown, "table": self.table or None, "scope": scope}


class Placed(NamedTuple):
    """An alias and the scope it was found in."""

    scope: Scope
    alias: Alias


SchemaOf = Callable[[str], TableSchema]


def checked(alias: Alias, schemas: Sequence[TableSchema]) -> Alias:
    """The alias if it can be meant of tables of these schemas (none: its tables are not there yet). Invalid with the
    path of the fault, TemplateRefused.
    """
    if len(alias.name.encode()) > ALIAS_NAME_BYTES_MAX or field_name_fault(alias.name):
        refuse("name", f"must be 1 to {ALIAS_NAME_BYTES_MAX} bytes of text without control characters")
    if bool(alias.table) == (alias.sources is not None):
        refuse("sources", "must be given where there is no table, and only there")
    if alias.filter is not None and alias.filter_template is not None:
        refuse("filter_template", "must not stand beside filter")
    if alias.sources is None and alias.filter is None and alias.filter_template is None:
        refuse("filter", "must be given, or filter_template: an alias of one table that asks nothing is a list")
    if alias.params_schema is not None and alias.filter_template is None:
        refuse("params_schema", "is for a filter_template")
    if alias.aggregator is not None and alias.sources is None:
        refuse("aggregator", "is for sources")
    if alias.aggregator is not None and (alias.order_by or alias.fields or alias.default_limit):
        refuse("aggregator", "must not stand beside order_by, fields or default_limit")
    if alias.default_limit is not None and not 1 <= alias.default_limit <= ROWS_LIMIT_MAX:
        refuse("default_limit", f"must be 1 to {ROWS_LIMIT_MAX}")
    if alias.sources is not None:
        sources.parse(alias.sources)
    if alias.filter_template is not None:
        templates.check(alias.filter_template)
        if alias.params_schema is not None:
            params.check_schema(alias.params_schema)
    for schema in schemas:
        if alias.filter is not None:
            filters.parse(alias.filter, schema)
        ordering.parse(alias.order_by, schema)
        selection.parse(alias.fields, schema)
    if schemas and alias.aggregator is not None:
        aggregate.parse(alias.aggregator, schemas)
    return alias


def filter_of(alias: Alias, given: Mapping[str, Any] | None, schemas: Sequence[TableSchema]) -> Filter | None:
    """The filter to run, filled in and held against every schema. ParamsRequired, Invalid, TemplateRefused."""
    if alias.filter_template is None:
        if given:
            refuse("params", "are for an alias with a filter_template")
        value = alias.filter
    else:
        value = templates.fill(alias.filter_template, params.given(alias.params_schema, given))
    if value is None:
        return None
    found = [filters.parse(value, schema) for schema in schemas]
    return found[0]


def aggregator_of(alias: Alias, schemas: Sequence[TableSchema]) -> Aggregator | None:
    """The aggregate to run, None if rows are asked for."""
    return None if alias.aggregator is None else aggregate.parse(alias.aggregator, schemas)


def sources_of(alias: Alias) -> Sources:
    """The tables that an alias over several means."""
    return sources.parse(alias.sources)


def chosen(found: Sequence[Placed], name: str, table: str | None) -> Placed:
    """The alias that a name means, of those that bear it; those of the project come first in `found`. AliasNotFound,
    AmbiguousId.
    """
    visible: dict[str, Placed] = {}
    for placed in found:
        visible.setdefault(placed.alias.table, placed)
    if table is not None:
        for wanted in (table, ""):
            if wanted in visible:
                return visible[wanted]
        raise not_found(name)
    if not visible:
        raise not_found(name)
    if len(visible) > 1:
        tables = sorted(visible)
        raise AmbiguousId(
            "several tables have an alias of this name; say which table is meant",
            matches=len(tables),
            candidates=tables[:ID_CANDIDATES_MAX],
        )
    return next(iter(visible.values()))


def not_found(name: str) -> AliasNotFound:
    """What whoever asks for an alias is told if there is none."""
    return AliasNotFound("there is no alias of this name here", name=name[:128])


def refuse(at: str, what: str) -> None:
    """Invalid for an argument."""
    raise Invalid(f"{at} {what}", field=at)
