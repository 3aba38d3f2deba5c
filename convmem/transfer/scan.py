"""The first reading of a file of records: every line, every field, every reference, before anything is changed.

What is remembered is small: for each record its identity and where it stands, for each reference that points forward
where it was made, and the few ids that are no identities. That lies in a scratch database (sqlite), so a file of a
million records costs memory like one of a thousand. The second reading (intake.py) finds a file that has passed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import apsw
import msgspec

from convmem import strict_json
from convmem.domain import Domain, Named, Record, RecordType
from convmem.errors import CallerError, Conflict, Invalid
from convmem.files import File
from convmem.limits import IMPORT_BYTES_MAX, IMPORT_RECORDS_MAX
from convmem.transfer.lines import Line, lines
from convmem.transfer.manifest import MANIFEST, records_promised

SCRATCH = """
CREATE TABLE record (
    identity BLOB PRIMARY KEY, offset INTEGER NOT NULL, size INTEGER NOT NULL, line INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE reference (line INTEGER NOT NULL, field TEXT NOT NULL, identity BLOB NOT NULL) STRICT;
CREATE TABLE borne (id BLOB PRIMARY KEY, identity BLOB NOT NULL, line INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE limited (line INTEGER PRIMARY KEY, tag TEXT NOT NULL, identity BLOB NOT NULL) STRICT;
CREATE TABLE known (offset INTEGER PRIMARY KEY) STRICT;
CREATE TABLE replaced (
    sequence INTEGER NOT NULL, identity BLOB NOT NULL, offset INTEGER NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (sequence, identity)
) STRICT, WITHOUT ROWID;
"""
# Lines between two looks at whether to stop.
STRIDE = 500

Told = Callable[[int, int], None]


class _Tagged(msgspec.Struct):
    type: str


_TAGS = msgspec.json.Decoder(_Tagged)


class Scan(NamedTuple):
    """A file that has passed: where it is, how its records are read, and what was remembered of them."""

    file: File
    types: Mapping[str, RecordType]
    scratch: apsw.Connection
    records: int
    checksum: int

    def decode(self, data: bytes) -> Record:
        """A line of the file as its record. Conflict if this is not what was checked."""
        try:
            if len(self.types) == 1:
                (kind,) = self.types.values()
                return kind.decode(data)
            return self.types[_TAGS.decode(data).type].decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, KeyError):
            raise changed() from None


def scan(file: File, domains: Sequence[Domain], scratch: apsw.Connection, told: Told) -> Scan:
    """Check the whole file. Invalid, Conflict or ContentTooLarge with `line` for the first thing that is wrong.

    `scratch` is an empty database; `told(done, total)` hears bytes and may raise to end it.
    """
    types = {kind.tag: kind for domain in domains for kind in domain.record_types}
    total = file.size()
    if total > IMPORT_BYTES_MAX:
        raise Invalid(f"the file is larger than {IMPORT_BYTES_MAX} bytes", field="file")
    scratch.execute(SCRATCH)
    scratch.execute("BEGIN")
    promised: int | None = None
    records = checksum = 0
    last = None
    for last in (found := lines(file)):
        promised = records_promised(last.data)
        break
    if last is None:
        raise Invalid("line 1: the file is empty", line=1)
    for line in found:
        if records == IMPORT_RECORDS_MAX:
            raise Invalid(f"line {line.number}: more than {IMPORT_RECORDS_MAX} records", line=line.number)
        try:
            _remember(scratch, line, *_named(line.data, types))
        except CallerError as error:
            raise at_line(error, line.number) from None
        records += 1
        checksum = crc32(line.data, checksum)
        last = line
        if records % STRIDE == 0:
            told(line.offset, total)
    if promised is not None and promised != records:
        raise Invalid(
            f"line {last.number}: the file ends with {records} records, its manifest promises {promised}",
            line=last.number,
            field="records",
        )
    _refuse_shared_ids(scratch)
    return Scan(file, types, scratch, records, checksum)


def _named(data: bytes, types: Mapping[str, RecordType]) -> tuple[RecordType, Named]:
    for kind in types.values():
        if (named := kind.check_quickly(data)) is not None:
            return kind, named
    try:
        value: Any = strict_json.parse(data)
    except strict_json.MalformedJSON as error:
        raise Invalid(f"not JSON by our rules: {error}") from None
    if not isinstance(value, dict):
        raise Invalid("a record is an object")
    tag = value.get("type")
    if tag == MANIFEST:
        raise Invalid("a second manifest: these are two files in one, import each by itself", field="type")
    if not isinstance(tag, str) or tag not in types:
        raise Invalid(f"type must be one of {', '.join(types)}", field="type")
    return types[tag], types[tag].check(value)


def _remember(scratch: apsw.Connection, line: Line, kind: RecordType, named: Named) -> None:
    try:
        scratch.execute(
            "INSERT INTO record VALUES (?, ?, ?, ?)", (named.identity, line.offset, len(line.data), line.number)
        )
    except apsw.ConstraintError:
        row: Any = scratch.execute("SELECT line FROM record WHERE identity = ?", (named.identity,)).fetchone()
        raise Conflict(f"the same record stands in line {row[0]} already", first_line=row[0]) from None
    for reference in named.references:
        is_there = scratch.execute("SELECT 1 FROM record WHERE identity = ?", (reference.identity,)).fetchone()
        if is_there is None:
            scratch.execute(
                "INSERT INTO reference VALUES (?, ?, ?)", (line.number, reference.field, reference.identity)
            )
    for borne in named.ids:
        try:
            scratch.execute("INSERT INTO borne VALUES (?, ?, ?)", (borne, named.identity, line.number))
        except apsw.ConstraintError:
            found: Any = scratch.execute("SELECT line FROM borne WHERE id = ?", (borne,)).fetchone()
            raise _shared_id(found[0]) from None
    if named.is_limited:
        scratch.execute("INSERT INTO limited VALUES (?, ?, ?)", (line.number, kind.tag, named.identity))


def _refuse_shared_ids(scratch: apsw.Connection) -> None:
    """Conflict if a record bears an id that is the identity of another: looked for at the end, where it costs those
    records nothing whose id is their identity.
    """
    row: Any = scratch.execute(
        "SELECT max(borne.line, record.line) AS later, min(borne.line, record.line) FROM borne JOIN record"
        " ON record.identity = borne.id ORDER BY later LIMIT 1"
    ).fetchone()
    if row is not None:
        line, first_line = row
        raise at_line(_shared_id(first_line), line)


def _shared_id(first_line: int) -> Conflict:
    return Conflict(f"the record in line {first_line} bears the same id", first_line=first_line)


def changed() -> Conflict:
    """The refusal of a file that is another one at its second reading."""
    return Conflict("the file changed while it was read; nothing was imported", field="file")


def at_line(error: CallerError, number: int) -> CallerError:
    """The same refusal, with the line that caused it."""
    return type(error)(f"line {number}: {error.message}", **{**error.details, "line": number})
