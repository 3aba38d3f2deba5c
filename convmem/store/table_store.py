"""One table file as a store: decide, COMMIT, answer.

    one command = one savepoint                               (all of it or none)
    one batch   = one transaction = one COMMIT = one flush    (told to callers only after)

The file is its own truth, so there is nothing but SQLite's promise: a COMMIT with `synchronous=FULL` is durable. What
SQLite does not promise is looked at: before and after each batch the path must still name the file and the WAL that are
open here, or what was stored is lost with the process. Who replaces a file while it is open, or copies another over it,
finds what he put there.

A statement can take the whole transaction with it: an interrupted change, a trigger of the user's that says ROLLBACK.
Only the command that did so is refused; what came before it is decided once more, and what comes behind it begins a
transaction of its own. Rejected: to refuse the batch, for these callers have nothing to do with each other.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apsw

from convmem.clock import Clock
from convmem.domain import Command, Origin
from convmem.errors import CallerError, ConvmemError, RetryError, StorageFault
from convmem.limits import TABLE_WAIT_MS
from convmem.store.store import Ticket
from convmem.store.table_sqlite import ABSENT, OF_THE_FILE, connect_to_table, identity, leave, refusal
from convmem.targets import TableDecider, TableFile, TableStamp

Deciders = Mapping[type[Any], TableDecider]

logger = logging.getLogger("convmem")

# What reading raises where the user or another program has put something that no table holds: a text for a number, a
# number beyond all others. It is this file's trouble, and the command's: the savepoint undoes it, and all else goes on.
UNREADABLE = (ValueError, TypeError, LookupError, OverflowError)
UUID_BITS = 128
RANDOM_BITS_AT_ONCE = 64


class TransactionGone(Exception):
    """A command took its transaction with it. `place` is the command's among those of the transaction."""

    def __init__(self, place: int, outcome: ConvmemError) -> None:
        super().__init__(place)
        self.place = place
        self.outcome = outcome


def new_id(clock: Clock) -> str:
    """Make an id of a row: a random UUID (version 4), in lower case."""
    low = (1 << RANDOM_BITS_AT_ONCE) - 1
    bits = (clock.random_bits() & low) << RANDOM_BITS_AT_ONCE | clock.random_bits() & low
    bits = bits & ~(0xF << 76) | 4 << 76
    bits = bits & ~(0b11 << 62) | 0b10 << 62
    text = f"{bits:0{UUID_BITS // 4}x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class TableStore:
    """The writing connection of one table file. Used by one thread at a time."""

    def __init__(self, file: TableFile, deciders: Deciders, clock: Clock) -> None:
        """Open the file, made if it is missing, and prepare it. A ConvmemError says why it cannot be written."""
        self._file = file
        self._deciders = deciders
        self._clock = clock
        self._new_id: Callable[[], str] = lambda: new_id(clock)
        # Pages in the WAL that are not yet in the file.
        self.waiting_pages = 0
        # True once nobody can know what is in the file's memory: the next batch needs a fresh connection.
        self.is_doubtful = False
        try:
            self._connection = connect_to_table(file.path)
        except OF_THE_FILE as error:
            raise refusal(error, None) from error
        try:
            self._connection.set_wal_hook(self._committed)
            self._prepare()
            self._identity = identity(file.path)
            if ABSENT in (self._identity.file, self._identity.wal):
                raise apsw.CantOpenError("the file has no name any more")
        except OF_THE_FILE as error:
            told = refusal(error, self._connection)
            leave(self._connection)
            raise told from error
        except ConvmemError:
            leave(self._connection)
            raise

    def _committed(self, connection: apsw.Connection, schema: str, pages: int) -> int:
        self.waiting_pages = pages
        return apsw.SQLITE_OK

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._file.prepare(connection)
            connection.execute("COMMIT")
        except (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError) as error:
            raise StorageFault("the table's file holds something else than a table") from error
        finally:
            self._roll_back()

    @property
    def is_in_place(self) -> bool:
        """True while the path names the file and the WAL that are open here."""
        now = identity(self._file.path)
        return (now.file, now.wal) == (self._identity.file, self._identity.wal)

    @property
    def is_as_left(self) -> bool:
        """True while nobody else has changed the file either: what this connection remembers of it still holds."""
        return identity(self._file.path) == self._identity

    def commit(self, tickets: Sequence[Ticket]) -> list[Any]:
        """Make the commands durable. Return one outcome a ticket, in order: its answer or a ConvmemError."""
        outcomes: list[Any] = []
        to_do: list[Sequence[Ticket] | ConvmemError] = [tickets]
        while to_do:
            part = to_do.pop()
            if isinstance(part, ConvmemError):
                outcomes.append(part)
            elif part:
                try:
                    outcomes += self._transaction(part)
                except TransactionGone as gone:
                    to_do += (part[gone.place + 1 :], gone.outcome, part[: gone.place])
        return outcomes

    def _transaction(self, tickets: Sequence[Ticket]) -> list[Any]:
        """One transaction from BEGIN to COMMIT. A fault of the file is the outcome of all."""
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            outcomes = [self._run(place, command, origin) for place, (command, origin) in enumerate(tickets)]
            connection.execute("COMMIT")
        except OF_THE_FILE as error:
            told = refusal(error, connection)
            self.is_doubtful = isinstance(told, StorageFault)
            return [told] * len(tickets)
        finally:
            self._roll_back()
        if not self.is_in_place:
            return [StorageFault("the table's file was taken away; whether this was stored is unknown")] * len(tickets)
        return outcomes

    def _run(self, place: int, command: Command, origin: Origin) -> Any:
        """Decide one command inside a savepoint: a refusal undoes itself and nothing else."""
        connection = self._connection
        connection.execute("SAVEPOINT command")
        stamp = TableStamp(self._clock.now_ms(), origin, self._new_id, self._clock.monotonic_ms)
        outcome: Any
        try:
            outcome = self._deciders[type(command)](connection, command, stamp)
        except (CallerError, RetryError) as refused:
            outcome = refused
        except OF_THE_FILE:
            raise
        except apsw.Error:
            # Tables, triggers and constraints of the user's may stand in the file.
            outcome = StorageFault("the table's file does not admit this change")
        except UNREADABLE as fault:
            logger.error(
                "%s was refused: what stands in %s is not understood",
                type(command).__name__,
                self._file.path,
                exc_info=fault,
            )
            outcome = StorageFault("the table's file holds something that is not understood")
        if not connection.in_transaction:
            if not isinstance(outcome, ConvmemError):
                outcome = StorageFault("the table's file undid this change")
            raise TransactionGone(place, outcome)
        if isinstance(outcome, ConvmemError):
            connection.execute("ROLLBACK TO command")
        connection.execute("RELEASE command")
        return outcome

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            # Where even that fails, the connection is given up, and the transaction with it.
            try:
                self._connection.execute("ROLLBACK")
            except OF_THE_FILE:
                self.is_doubtful = True

    def rest(self) -> None:
        """Move what waits in the WAL into the file, as far as nobody else needs it, and wait for nobody."""
        if self.is_as_left and self._empty_wal():
            self._identity = self._identity._replace(content=identity(self._file.path).content)

    def _empty_wal(self) -> bool:
        self._connection.set_busy_timeout(0)
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self.waiting_pages = 0
        except OF_THE_FILE:
            # What a lock or a full disk holds back stays in the WAL, which is as good.
            return False
        finally:
            self._connection.set_busy_timeout(TABLE_WAIT_MS)
        return True

    def close(self) -> None:
        """Close the file and leave it whole by itself, as far as nobody else needs the WAL; the last one removes it."""
        if not self.is_doubtful and self.is_as_left:
            self._empty_wal()
            self._connection.close()
        elif not self.part():
            leave(self._connection)

    def part(self) -> bool:
        """Close a file that is not as it was left, so that what is there now can be opened; False if not yet.

        A WAL knows no file but only a name: of one that was replaced it would be played into the other. So what waits
        in it goes first to where it belongs, wherever that file is now, which must wait while somebody reads it.
        """
        now = identity(self._file.path)
        if not self.is_doubtful and not self.is_in_place and now.wal in (self._identity.wal, ABSENT):
            is_empty = self._empty_wal()
            is_replaced = now.file not in (self._identity.file, ABSENT)
            if is_replaced and now.wal != ABSENT and not is_empty:
                return False
        leave(self._connection)
        return True
