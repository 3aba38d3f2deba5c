"""The operations of a batch, read from JSON: each an object whose `op` says what it is and which arguments it has.

Names come in two spellings (`data_insert`, `create`), because both are in use. What an operation may hold stands in one
table; an argument that it does not have is refused, as everywhere. What needs a schema is checked where the schema is
known: those before it may change it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from convmem.errors import Invalid
from convmem.limits import BATCH_OPS_MAX, FIELD_CODE_POINTS_MAX, STATEMENT_BYTES_MAX
from convmem.tables.fields import ID_LENGTH, PREFIX, SHA256

MODES = ("merge", "replace")
DECLARED = ("title", "description", "fields", "history", "dump")


class InsertData(NamedTuple):
    """Add a row."""

    name: str
    data: Mapping[str, Any]


class UpdateData(NamedTuple):
    """Change a row."""

    name: str
    id: str
    data: Mapping[str, Any]
    mode: str
    expected_sha256: str | None


class DeleteData(NamedTuple):
    """Take a row away."""

    name: str
    id: str
    expected_sha256: str | None


class Replace(NamedTuple):
    """Take rows away and add others."""

    name: str
    match: Any
    items: tuple[Mapping[str, Any], ...]


class Query(NamedTuple):
    """Run a statement."""

    name: str
    sql: str
    params: Any


class CreateSchema(NamedTuple):
    """Make the table."""

    name: str
    declared: Mapping[str, Any]
    adopt: bool


class UpdateSchema(NamedTuple):
    """Declare its fields anew."""

    name: str
    declared: Mapping[str, Any]


class DeleteSchema(NamedTuple):
    """Take it away."""

    name: str


Op = InsertData | UpdateData | DeleteData | Replace | Query | CreateSchema | UpdateSchema | DeleteSchema
OF_SCHEMAS = (CreateSchema, UpdateSchema, DeleteSchema)


class Batch(NamedTuple):
    """The operations of one table; `table` is the one that they name, None if none does."""

    table: str | None
    ops: tuple[Op, ...]

    @property
    def changes_schema(self) -> bool:
        """Whether any of them is about the schema."""
        return any(isinstance(op, OF_SCHEMAS) for op in self.ops)

    @property
    def creates_schema(self) -> bool:
        """Whether any of them makes the table."""
        return any(isinstance(op, CreateSchema) for op in self.ops)


class _Given:
    """The arguments of one operation. Each is taken once; what is left over is none of its arguments."""

    def __init__(self, given: Mapping[str, Any], at: str) -> None:
        self._left = {name: value for name, value in given.items() if value is not None}
        self._at = at

    def refused(self, name: str, sentence: str) -> Invalid:
        field = f"{self._at}.{name}"[:FIELD_CODE_POINTS_MAX]
        return Invalid(f"{field} {sentence}", field=field)

    def take(self, name: str, is_right: Callable[[Any], bool], sentence: str, default: Any = ...) -> Any:
        if name not in self._left:
            if default is ...:
                raise self.refused(name, "is required")
            return default
        value = self._left.pop(name)
        if not is_right(value):
            raise self.refused(name, sentence)
        return value

    def object(self, name: str) -> Mapping[str, Any]:
        value: Mapping[str, Any] = self.take(name, lambda value: isinstance(value, dict), "must be an object")
        return value

    def id(self) -> str:
        value: str = self.take("id", _is_id, "must be an id of 36 characters, or the beginning of one")
        return value

    def guard(self) -> str | None:
        value: str | None = self.take(
            "expected_sha256",
            lambda value: isinstance(value, str) and SHA256.fullmatch(value.lower()) is not None,
            "must be a SHA-256 in hex",
            None,
        )
        return None if value is None else value.lower()

    def declared(self) -> Mapping[str, Any]:
        """What is said of a schema: left to whoever reads schemas."""
        return {name: self._left.pop(name) for name in DECLARED if name in self._left}

    def done(self) -> None:
        for name in self._left:
            raise self.refused(str(name), "is not an argument here")


def _is_id(value: Any) -> bool:
    is_whole = isinstance(value, str) and len(value) == ID_LENGTH and "\0" not in value
    return is_whole or (isinstance(value, str) and PREFIX.fullmatch(value) is not None)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _update(name: str, given: _Given) -> UpdateData:
    mode = given.take("mode", lambda value: value in MODES, "must be merge or replace", "merge")
    return UpdateData(name, given.id(), given.object("data"), mode, given.guard())


def _replace(name: str, given: _Given) -> Replace:
    items = given.take(
        "items",
        lambda value: (
            isinstance(value, list) and len(value) <= BATCH_OPS_MAX and all(isinstance(one, dict) for one in value)
        ),
        f"must be a list of at most {BATCH_OPS_MAX} objects",
    )
    return Replace(name, given.object("match"), tuple(items))


def _query(name: str, given: _Given) -> Query:
    sql = given.take(
        "sql",
        lambda value: isinstance(value, str) and len(value.encode(errors="surrogatepass")) <= STATEMENT_BYTES_MAX,
        f"must be a text of at most {STATEMENT_BYTES_MAX} bytes",
    )
    params = given.take("params", lambda value: isinstance(value, list | dict), "must be a list or an object", None)
    return Query(name, sql, params)


READERS: Mapping[str, Callable[[str, _Given], Op]] = {
    "data_insert": lambda name, given: InsertData(name, given.object("data")),
    "data_update": _update,
    "data_delete": lambda name, given: DeleteData(name, given.id(), given.guard()),
    "replace": _replace,
    "query": _query,
    "schema_create": lambda name, given: CreateSchema(
        name, given.declared(), given.take("adopt", _is_flag, "must be true or false", False)
    ),
    "schema_update": lambda name, given: UpdateSchema(name, given.declared()),
    "schema_delete": lambda name, given: DeleteSchema(name),
}
OTHER_SPELLINGS = {"create": "data_insert", "update": "data_update", "delete": "data_delete"}


def parse(ops: Sequence[Mapping[str, Any]], at: str = "ops") -> Batch:
    """The operations of a batch. Invalid with the path of the first thing that is wrong."""
    found: list[Op] = []
    tables: dict[str, None] = {}
    items = 0
    for number, given in enumerate(ops):
        here = f"{at}.{number}"
        kind: Any = given.get("op", given.get("type"))
        kind = OTHER_SPELLINGS.get(kind, kind) if isinstance(kind, str) else ""
        if kind not in READERS:
            raise Invalid(f"{here}.op must be one of {', '.join(READERS)}", field=f"{here}.op")
        arguments = _Given({name: value for name, value in given.items() if name not in ("op", "type")}, here)
        table = arguments.take("table", lambda value: isinstance(value, str), "must be the name of a table", None)
        if table is not None:
            tables[table] = None
        op = READERS[kind](kind, arguments)
        arguments.done()
        items += len(op.items) if isinstance(op, Replace) else 1
        found.append(op)
    if len(tables) > 1:
        raise Invalid(f"{at} must all be about one table", field=at)
    if items > BATCH_OPS_MAX:
        raise Invalid(f"{at} hold more than {BATCH_OPS_MAX} operations and items", field=at)
    return Batch(next(iter(tables), None), tuple(found))
