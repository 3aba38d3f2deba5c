"""The second reading of a file of records: what meets the store becomes part of its next generation.

    known and says nothing new      unchanged
    known and different             `reject`: the file is refused; `overwrite`: the file's record takes the stored one's
                                    place, with its sequence and a revision above both
    new                             behind everything that is there, in the order of the file; refused if its id is
                                    that of another record, or if the store holds as many of the kind as it can

An import is a compaction that also takes records in (store/compaction.py): the old log stays as it is until the new
one, complete and folded, takes its name.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple
from zlib import crc32

import apsw

from convmem.domain import Domain, Event, Kept
from convmem.errors import CallerError, Conflict, NotFound
from convmem.store.compaction import live
from convmem.transfer.lines import lines
from convmem.transfer.scan import STRIDE, Scan, at_line, changed

Policy = Literal["reject", "overwrite"]
POLICIES: tuple[Policy, ...] = ("reject", "overwrite")
Told = Callable[[int, int], None]


class Plan(NamedTuple):
    """What an import will do: how many records of the file are new, the same, or take a stored one's place."""

    new: int
    unchanged: int
    overwritten: int


class Intake:
    """One scanned file and the store that it meets."""

    def __init__(self, scan: Scan, domains: Sequence[Domain], policy: Policy, told: Told) -> None:
        self._scan = scan
        self._domains = domains
        self._policy = policy
        self._told = told
        self._kinds = {kind.event: kind for kind in scan.types.values()}
        self._last_number = 0

    def meet(self, connection: apsw.Connection) -> Plan:
        """Compare the file with the store, of which nothing changes from here on.

        Conflict or NotFound with `line` for the first record that is refused.
        """
        self._refuse_dead_references(connection)
        unchanged = overwritten = 0
        if any(domain.records(connection) for domain in self._domains):
            unchanged, overwritten = self._compare(connection)
            self._refuse_shared_ids(connection)
        self._refuse_too_many(connection)
        return Plan(self._scan.records - unchanged - overwritten, unchanged, overwritten)

    def _compare(self, connection: apsw.Connection) -> tuple[int, int]:
        """How many records are unchanged and how many overwritten, and where they are, in the scratch database."""
        unchanged = overwritten = 0
        refused: list[int] = []
        rows: Any = self._scan.scratch.execute("SELECT identity, offset, size, line FROM record")
        for number, (identity, offset, size, line) in enumerate(rows):
            if number % STRIDE == 0:
                self._told(number, self._scan.records)
            stored = self._stored(connection, identity)
            if stored is None:
                continue
            self._scan.scratch.execute("INSERT INTO known VALUES (?)", (offset,))
            record, kind = self._scan.decode(self._scan.file.read(offset, size)), self._kinds[type(stored.event)]
            if kind.is_same(stored, record):
                unchanged += 1
            elif self._policy == "reject":
                refused.append(line)
            else:
                overwritten += 1
                where = (stored.sequence, identity, offset, size)
                self._scan.scratch.execute("INSERT INTO replaced VALUES (?, ?, ?, ?)", where)
        if refused:
            raise Conflict(
                f"line {min(refused)}: the store knows this record with other content (and {len(refused) - 1} more);"
                " policy overwrite would replace what it has",
                line=min(refused),
            )
        return unchanged, overwritten

    def _refuse_dead_references(self, connection: apsw.Connection) -> None:
        rows: Any = self._scan.scratch.execute(
            "SELECT line, field, identity FROM reference WHERE identity NOT IN (SELECT identity FROM record)"
            " ORDER BY line"
        )
        for line, field, identity in rows:
            if self._stored(connection, identity) is None:
                raise NotFound(
                    f"line {line}: {field} names a record that is neither in the file nor in the store",
                    field=field,
                    line=line,
                )

    def _refuse_shared_ids(self, connection: apsw.Connection) -> None:
        """Conflict if a new record bears the id of another one in the store. A known one has its id from the store."""
        met = self._with_ids_of_others(connection)
        refused = [line for identity, line in met if self._stored(connection, identity) is None]
        if refused:
            raise Conflict(f"line {min(refused)}: another record in the store bears this id", line=min(refused))

    def _with_ids_of_others(self, connection: apsw.Connection) -> Iterator[tuple[bytes, int]]:
        """Identity and line of every record of the file whose id another one in the store bears."""
        rows: Any = self._scan.scratch.execute("SELECT id, identity, line FROM borne")
        for borne, identity, line in rows:
            if self._stored(connection, borne) is not None:
                yield identity, line
        for kind in self._kinds.values():
            for stored in kind.borne(connection):
                rows = self._scan.scratch.execute(
                    "SELECT identity, line FROM borne WHERE id = ?1 AND identity != ?2"
                    " UNION ALL SELECT identity, line FROM record WHERE identity = ?1",
                    stored,
                )
                yield from rows

    def _refuse_too_many(self, connection: apsw.Connection) -> None:
        """CallerError with `line` for the first new record for which its kind has no room."""
        rows: Any = self._scan.scratch.execute("SELECT tag, identity, line FROM limited ORDER BY line")
        new: Counter[str] = Counter()
        for tag, identity, line in rows:
            if self._stored(connection, identity) is not None:
                continue
            new[tag] += 1
            try:
                self._scan.types[tag].refuse_more(connection, new[tag])
            except CallerError as error:
                raise at_line(error, line) from None

    def _stored(self, connection: apsw.Connection, identity: bytes) -> Kept | None:
        found = (kind.stored(connection, identity) for kind in self._kinds.values())
        return next((kept for kept in found if kept is not None), None)

    def records(self, connection: apsw.Connection, through: int, last_number: int) -> Iterator[Kept]:
        """Every record of the next generation: the stored ones in their places, then the new ones of the file, which
        are given numbers above the last one. What a record of the file leaves stands behind it.
        """
        self._last_number = last_number
        replaced: Any = self._scan.scratch.execute("SELECT sequence FROM replaced ORDER BY sequence")
        awaited = next(replaced, None)
        for kept in live(connection, self._domains):
            while awaited is not None and awaited[0] < kept.sequence:
                awaited = next(replaced, None)
            if awaited is None or awaited[0] != kept.sequence:
                yield kept
                continue
            put = self._replaced(kept, through)
            yield put
            if put is not kept and (left := self._left(connection, put)) is not None:
                yield left
        yield from self._new(connection, through)

    def _replaced(self, kept: Kept, through: int) -> Kept:
        """The file's record in the place of a stored one; `kept` itself if only its neighbour is replaced."""
        kind = self._kinds.get(type(kept.event))
        if kind is None:
            return kept
        row: Any = self._scan.scratch.execute(
            "SELECT offset, size, (SELECT line FROM record WHERE record.identity = replaced.identity) FROM replaced"
            " WHERE sequence = ? AND identity = ?",
            (kept.sequence, kind.identify(kept)),
        ).fetchone()
        if row is None:
            return kept
        offset, size, line = row
        try:
            put = kind.replacing(kept, self._scan.decode(self._scan.file.read(offset, size)), through)
        except CallerError as error:
            raise at_line(error, line) from None
        return put._replace(event=self._numbered(put.event))

    def _new(self, connection: apsw.Connection, through: int) -> Iterator[Kept]:
        rows: Any = self._scan.scratch.execute("SELECT offset FROM known ORDER BY offset")
        known = next(rows, None)
        total = self._scan.file.size()
        found = lines(self._scan.file)
        next(found, None)  # the manifest
        sequence, checksum = through, 0
        for line in found:
            checksum = crc32(line.data, checksum)
            if known is not None and known[0] == line.offset:
                known = next(rows, None)
                continue
            sequence += 1
            if sequence % STRIDE == 0:
                self._told(line.offset, total)
            record = self._scan.decode(line.data)
            kept = Kept(sequence, record.at_ms, record.origin, self._numbered(record.event))
            yield kept
            if (left := self._left(connection, kept)) is not None:
                yield left
        if checksum != self._scan.checksum:
            raise changed()

    def _numbered(self, event: Event) -> Event:
        numbered: Event = self._kinds[type(event)].numbered(event, self._last_number + 1)
        self._last_number += numbered is not event
        return numbered

    def _left(self, connection: apsw.Connection, kept: Kept) -> Kept | None:
        """What a record of the file leaves beside itself, at its own place and time."""
        event = self._kinds[type(kept.event)].leaves(connection, kept)
        return None if event is None else kept._replace(event=event)
