"""One INSERT, UPDATE or DELETE of the caller's on `rows`, and nothing else that SQL can do.

The idea: SQLite itself says, while it reads the statement, what that would touch (the authorizer), and while it runs,
which rows it changes (the preupdate hook). So nothing is guessed from the text. Each row that comes out is read as
strictly as one that a caller gives: its id, its times, its data against the schema; and is written as we write data.

What is not asked for by name is refused: other tables, functions that are not listed, recursion, every word that is
about transactions, files or settings. The statements of a batch have a quarter of a second together. `uuid()` makes an
id for a new row.

Rejected: looking for words in the text (a comment, a quote or a new keyword undoes that).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw

from convmem.errors import Invalid, QueryLimit, StorageFault
from convmem.limits import (
    BATCH_ROWS_MAX,
    INT64_MAX,
    INT64_MIN,
    LIKE_PATTERN_BYTES_MAX,
    STATEMENT_MS_MAX,
)
from convmem.tables import data as row_data
from convmem.tables import queries
from convmem.tables.bounded_functions import TEXT_BYTES_MAX, BoundedFunctions, TooLong
from convmem.tables.model import TableSchema
from convmem.targets import TableStamp

COLUMNS = ("id", "data", "created_at", "updated_at")
UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
# One step may read a whole text, so looks are frequent.
STEPS_BETWEEN_LOOKS = 10
# What a statement may read beside rows: JSON taken apart.
TABLES_OF_JSON = frozenset({"json_each", "json_tree"})
FUNCTIONS = frozenset(
    (
        *("json", "json_array", "json_array_insert", "json_array_length", "json_extract", "json_insert", "json_object"),
        *("json_patch", "json_quote", "json_remove", "json_replace", "json_set", "json_type", "json_valid"),
        *("json_group_array", "json_group_object", "->", "->>", "json_each", "json_tree", "uuid"),
        *("abs", "avg", "ceil", "ceiling", "char", "coalesce", "concat", "concat_ws", "count", "cume_dist", "date"),
        *("datetime", "dense_rank", "first_value", "floor", "glob", "group_concat", "hex", "if", "ifnull", "iif"),
        *("instr", "julianday", "lag", "last_value", "lead", "length", "like", "lower", "ltrim", "max", "min", "mod"),
        *("nth_value", "ntile", "nullif", "octet_length", "percent_rank", "quote", "rank", "replace", "round"),
        *("row_number", "rtrim", "sign", "strftime", "string_agg", "substr", "substring", "sum", "time", "timediff"),
        *("total", "trim", "trunc", "typeof", "unicode", "unixepoch", "upper"),
    )
)


Clean = Callable[[dict[str, Any]], dict[str, Any]]


class Change(NamedTuple):
    """A row that the statement changed: its data in the file before and after, None where it was or is not there."""

    row_id: str
    before_json: str | None
    after_json: str | None


class Allowance:
    """How long the statements of a batch may take together. What is done between them does not count."""

    def __init__(self, stamp: TableStamp) -> None:
        self._now_ms = stamp.monotonic_ms
        self._left_ms: float = STATEMENT_MS_MAX
        self._end_ms = 0.0

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Count the time inside the block. QueryLimit if it turns out to have been too long."""
        began_ms = self._now_ms()
        self._end_ms = began_ms + self._left_ms
        try:
            yield
        finally:
            self._left_ms -= self._now_ms() - began_ms
        # One function over long texts is one step, within which nobody is asked.
        self.look()

    @property
    def is_over(self) -> bool:
        """Whether it has been used up."""
        return self._now_ms() > self._end_ms

    def look(self) -> None:
        """QueryLimit once it has been used up."""
        if self.is_over:
            sentence = f"the statements of one batch take at most {STATEMENT_MS_MAX} ms together"
            raise QueryLimit(sentence, ms_max=STATEMENT_MS_MAX)


def run(
    connection: apsw.Connection,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any] | None,
    schema: TableSchema,
    stamp: TableStamp,
    *,
    allowance: Allowance,
    clean: Clean = dict,
) -> Iterator[Change]:
    """Run a statement inside the transaction that is open; the rows it changed, in the order of their first change.

    Each of these rows is checked when it is its turn. `clean` gives the data of a row as it is stored.

    Invalid with field `sql` or `params`, QueryLimit: whoever opened a savepoint undoes what was done.
    """
    bindings = _bindings(params)
    watch = _Watch()
    with allowance.spent(), _watched(connection, watch, stamp, allowance):
        _executed(connection, sql, bindings, watch, allowance)
    if watch.rows is None:
        raise _refused(f"changes more than {BATCH_ROWS_MAX} rows")
    return (_checked(connection, row_id, first, schema, stamp, clean) for row_id, first in watch.rows.items())


class _Watch:
    """What SQLite has said of a statement: what is refused of it, and each row as it was before its first change."""

    def __init__(self) -> None:
        self.denied: str | None = None
        self.statements = 0
        self.fault: str | None = None
        self.rows: dict[str, tuple[Any, ...] | None] | None = {}

    def authorize(self, op: int, first: str | None, second: str | None, _: str | None, source: str | None) -> int:
        """Whether a part of the statement may be."""
        is_written = op in (apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE)
        if is_written and first == "rows" and source is None and (op != apsw.SQLITE_UPDATE or second in COLUMNS):
            return apsw.SQLITE_OK
        if op == apsw.SQLITE_READ and (first == "rows" or first in TABLES_OF_JSON):
            return apsw.SQLITE_OK
        if op == apsw.SQLITE_SELECT or (op == apsw.SQLITE_FUNCTION and (second or "").lower() in FUNCTIONS):
            return apsw.SQLITE_OK
        if self.denied is None:
            kind = str(apsw.mapping_authorizer_function[op]).removeprefix("SQLITE_").lower().replace("_", " ")
            what = " ".join(part for part in (kind, first, second) if part)
            self.denied = what[:100]
        return apsw.SQLITE_DENY

    def begins(self, cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        """Whether a statement may run: one, and one that changes rows."""
        self.statements += 1
        if self.statements > 1:
            self.fault = "holds more than one statement"
        elif cursor.is_readonly or cursor.is_explain:
            self.fault = "must be an INSERT, an UPDATE or a DELETE"
        return self.fault is None

    def changes(self, update: apsw.PreUpdate) -> None:
        """A row is about to be changed."""
        if self.rows is None:
            return
        old, new = update.old, update.new
        row = old or new
        assert row is not None
        if old is not None and new is not None and old[0] != new[0]:
            self.fault = "must not change the id of a row"
            return
        row_id = row[0]
        if not isinstance(row_id, str):
            self.fault = "must give each row an id: a UUID (version 4) in lower case; uuid() makes one"
            return
        self.rows.setdefault(row_id, old)
        if len(self.rows) > BATCH_ROWS_MAX:
            self.rows = None


@contextmanager
def _watched(connection: apsw.Connection, watch: _Watch, stamp: TableStamp, allowance: Allowance) -> Iterator[None]:
    """Have SQLite ask for this one statement, and no other, whatever comes of it."""
    functions = BoundedFunctions(connection)
    functions.watch(allowance.look)
    length_before = connection.limit(apsw.SQLITE_LIMIT_LENGTH, TEXT_BYTES_MAX)
    pattern_before = connection.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LIKE_PATTERN_BYTES_MAX)
    connection.create_scalar_function("uuid", lambda *_: stamp.new_id(), 0)
    connection.preupdate_hook(watch.changes, id=watch)
    connection.set_progress_handler(lambda: watch.rows is None or allowance.is_over, STEPS_BETWEEN_LOOKS)
    connection.authorizer = watch.authorize
    try:
        yield
    finally:
        functions.watch(None)
        connection.authorizer = None
        connection.set_progress_handler(None)
        connection.preupdate_hook(None, id=watch)
        connection.create_scalar_function("uuid", None, 0)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, length_before)
        connection.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, pattern_before)


def _executed(connection: apsw.Connection, sql: str, bindings: Any, watch: _Watch, allowance: Allowance) -> None:
    cursor = connection.cursor()
    cursor.exec_trace = watch.begins
    try:
        for _ in cursor.execute(sql, bindings, can_cache=False):
            pass
    except apsw.AuthError:
        raise _refused(f"may only read and change rows, with plain functions; not: {watch.denied}") from None
    except UnicodeDecodeError:
        # What it met, or left, in a row.
        raise _refused("cannot be carried out: a text is no UTF-8") from None
    except apsw.ExecTraceAbort:
        assert watch.fault is not None
    except apsw.InterruptError:
        if watch.rows is not None:
            allowance.look()
            raise
    except (apsw.BindingsError, apsw.RangeError, KeyError):
        raise Invalid("params do not fit the placeholders of the statement", field="params") from None
    except (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError, TooLong) as error:
        raise _refused(f"cannot be carried out: {str(error)[:200]}") from None
    finally:
        cursor.close(True)
    if watch.fault is not None:
        raise _refused(watch.fault)
    if not watch.statements:
        raise _refused("holds no statement")


def _checked(
    connection: apsw.Connection,
    row_id: str,
    first: tuple[Any, ...] | None,
    schema: TableSchema,
    stamp: TableStamp,
    clean: Clean,
) -> Change:
    """A row as the statement has left it, read as strictly as one that comes in, and written as we write it."""
    before = None if first is None else first[1] if isinstance(first[1], str) else ""
    try:
        found = connection.execute("SELECT data, created_at, updated_at FROM rows WHERE id = ?", (row_id,)).fetchone()
    except UnicodeDecodeError:
        raise _refused("must leave texts of UTF-8 in data") from None
    if found is None:
        return Change(row_id, before, None)
    text, created_at, updated_at = found
    if first is None and not UUID.fullmatch(row_id):
        raise _refused("must give each row an id: a UUID (version 4) in lower case; uuid() makes one")
    for name, value in (("created_at", created_at), ("updated_at", updated_at)):
        if type(value) is not int or value < 0:
            raise _refused(f"must give {name} in whole seconds since 1970")
    try:
        data = row_data.checked(schema, clean(row_data.checked(schema, queries.read_data(text))))
    except StorageFault:
        raise _refused("must leave a JSON object in data") from None
    after = row_data.stored(data).decode()
    changed_at = stamp.at_ms // 1000 if first is not None and updated_at == first[3] else updated_at
    if after != text or changed_at != updated_at:
        connection.execute("UPDATE rows SET data = ?, updated_at = ? WHERE id = ?", (after, changed_at, row_id))
    return Change(row_id, before, after)


def _bindings(params: Any) -> Any:
    """Parameters as SQLite takes them. Invalid unless they are scalars of JSON."""
    values = list(params.values()) if isinstance(params, Mapping) else list(params or [])
    for value in values:
        is_scalar = isinstance(value, str | int | float | None)
        if not is_scalar or (isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX):
            raise Invalid("params must be texts, numbers, true, false or null", field="params")
    return params if isinstance(params, Mapping) else values


def _refused(sentence: str) -> Invalid:
    return Invalid(f"sql {sentence}", field="sql")
