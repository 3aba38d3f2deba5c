"""The actor: one task that owns the stores; everybody else leaves commands in its mailbox.

There is no batching timer. While one batch is being synced the next one gathers in the mailbox, so a lone caller never
waits for company and a crowd shares one sync. The store's synchronous code runs on one thread of its own, so the event
loop goes on answering.

Every command has one store: the log, or one table file (convmem/targets.py). A batch is committed store by store, the
log first, and who waits for a store is answered as soon as that one is durable. A table file that fails refuses its own
commands; a log that fails ends the writer.

A caller who goes away takes nothing back: the command is in the mailbox, and what is in the mailbox is finished.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from convmem.domain import Command, Origin
from convmem.errors import Busy, ConvmemError, Stopping, StoreFailed
from convmem.limits import (
    BATCH_BYTES_MAX,
    BATCH_COMMANDS_MAX,
    BUSY_RETRY_MS,
    CHECKPOINT_PAGES_BUSY,
    CHECKPOINT_PAGES_IDLE,
    MAILBOX_BYTES_MAX,
    MAILBOX_COMMANDS_MAX,
    TABLE_REST_MS,
    TABLE_WAL_PAGES_MAX,
)
from convmem.store.store import Facts, Store, Ticket
from convmem.store.table_files import TableFiles
from convmem.targets import TableFile, target_of

Result = TypeVar("Result")
Reply = asyncio.Future[Any]
Job = Callable[[Store], Any]


class Letter(NamedTuple):
    """What lies in the mailbox: a command or a job, who waits for its outcome, and about how many bytes it holds."""

    item: Ticket | Job
    reply: Reply
    size: int


class Writer:
    """The mailbox and the task that empties it. All methods are called on the event loop's thread."""

    def __init__(self, store: Store, tables: TableFiles | None = None) -> None:
        """Take over the stores, which whoever opened them closes after run(). Without `tables` there are none."""
        self._store = store
        self._tables = tables
        self._mailbox: deque[Letter] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._failure: StoreFailed | None = None
        self._thread = ThreadPoolExecutor(1, "convmem-writer")
        self._is_at_work = False
        # Set after everything that may have changed the store; for one who follows and clears it.
        self.changed = asyncio.Event()
        self.facts: Facts = store.facts()

    @property
    def depth(self) -> int:
        """How many commands wait."""
        return len(self._mailbox)

    @property
    def has_work(self) -> bool:
        """True while commands wait or are carried out. May be asked on any thread."""
        return self._is_at_work or bool(self._mailbox)

    @property
    def bytes_held(self) -> int:
        """About how many bytes the waiting commands hold."""
        return self._bytes

    @property
    def is_failed(self) -> bool:
        """True once the store is poisoned."""
        return self._failure is not None

    async def write(self, command: Command, origin: Origin) -> Any:
        """Return the command's answer once it is durable, or raise the ConvmemError that says why not."""
        return await self._posted(command, origin)

    async def write_all(self, commands: Sequence[Command], origin: Origin) -> list[Any]:
        """Leave commands together, in their order; the outcome of each: its answer, or the ConvmemError."""
        replies: list[Reply | ConvmemError] = []
        for command in commands:
            try:
                replies.append(self._posted(command, origin))
            except ConvmemError as refused:
                replies.append(refused)
        waiting = [reply for reply in replies if isinstance(reply, asyncio.Future)]
        outcomes = iter(await asyncio.gather(*waiting, return_exceptions=True))
        return [next(outcomes) if isinstance(reply, asyncio.Future) else reply for reply in replies]

    def _posted(self, command: Command, origin: Origin) -> Reply:
        size = command.size_bytes
        if len(self._mailbox) >= MAILBOX_COMMANDS_MAX or self._bytes + size > MAILBOX_BYTES_MAX:
            raise Busy("too many writes are waiting", retry_after_ms=BUSY_RETRY_MS, waiting=len(self._mailbox))
        return self._post(Ticket(command, origin), size)

    async def alone(self, job: Callable[[Store], Result]) -> Result:
        """Run `job(store)` between two batches and return what it returns."""
        result: Result = await self._post(job, 0)
        return result

    def _post(self, item: Ticket | Job, size: int) -> Reply:
        if self._failure is not None:
            raise self._failure
        if self._is_stopping:
            raise Stopping("the daemon is stopping", retry_after_ms=BUSY_RETRY_MS)
        reply: Reply = asyncio.get_running_loop().create_future()
        self._bytes += size
        self._mailbox.append(Letter(item, reply, size))
        self._wake.set()
        return reply

    async def run(self) -> None:
        """Work until stop() was called and the mailbox is empty. Raises StoreFailed if the store is poisoned."""
        try:
            while await self._has_work():
                if batch := self._gather():
                    await self._commit(batch)
                else:
                    await self._run_alone(self._mailbox.popleft())
        except Exception as error:
            failure = error if isinstance(error, StoreFailed) else StoreFailed("the writer stopped after a failure")
            self.fail(failure)
            raise failure from error
        finally:
            self._thread.shutdown()

    def stop(self) -> None:
        """Take no more commands; run() ends once those in the mailbox are answered."""
        self._is_stopping = True
        self._wake.set()

    def fail(self, failure: StoreFailed) -> None:
        """Take no more commands and answer everybody who waits with `failure`; nothing of theirs was begun."""
        self._failure = failure
        while self._mailbox:
            _answer(self._mailbox.popleft().reply, failure)
        self._bytes = 0
        self._wake.set()

    async def _has_work(self) -> bool:
        """Wait for work; False once there is none and will be none. Rests when nobody waits, or when it is overdue."""
        due = CHECKPOINT_PAGES_BUSY if self._mailbox else CHECKPOINT_PAGES_IDLE
        if self.facts.waiting_pages >= due:
            self.facts = await self._in_thread(self._store.rest)
        if self._tables is not None and self._tables.waiting_pages >= TABLE_WAL_PAGES_MAX:
            await self._in_thread(self._tables.rest)
        while not self._mailbox:
            if self._failure is not None:
                raise self._failure
            if self._is_stopping:
                return False
            self._wake.clear()
            await self._wait()
        return True

    async def _wait(self) -> None:
        """Wait to be woken. Where nobody writes for a while, table files are made whole meanwhile."""
        if self._tables is not None and self._tables.waiting_pages:
            try:
                async with asyncio.timeout(TABLE_REST_MS / 1000):
                    await self._wake.wait()
                return
            except TimeoutError:
                await self._in_thread(self._tables.rest)
        await self._wake.wait()

    def _gather(self) -> list[Letter]:
        """Take the commands of the next batch: all that wait, up to the batch's bounds or the next job."""
        batch: list[Letter] = []
        size = 0
        while self._mailbox and len(batch) < BATCH_COMMANDS_MAX:
            letter = self._mailbox[0]
            size += letter.size
            if not isinstance(letter.item, Ticket) or (batch and size > BATCH_BYTES_MAX):
                break
            self._mailbox.popleft()
            self._bytes -= letter.size
            batch.append(letter)
        return batch

    async def _commit(self, batch: list[Letter]) -> None:
        failure = StoreFailed("the writer stopped after a failure; whether this was saved is unknown")
        try:
            for target, letters in _by_store(batch):
                tickets = [letter.item for letter in letters]
                if target is None:
                    outcomes, self.facts = await self._in_thread(self._commit_and_look, tickets)
                else:
                    assert self._tables is not None, "a command of a table, and no tables"
                    outcomes = await self._in_thread(self._tables.commit, target, tickets)
                for letter, outcome in zip(letters, outcomes, strict=True):
                    _answer(letter.reply, outcome)
        except StoreFailed as error:
            failure = error
            raise
        finally:
            # Only those who have no answer yet, because the stores before theirs stopped the writer.
            for letter in batch:
                _answer(letter.reply, failure)

    def _commit_and_look(self, tickets: list[Any]) -> tuple[list[Any], Facts]:
        return self._store.commit(tickets), self._store.facts()

    async def _run_alone(self, letter: Letter) -> None:
        assert not isinstance(letter.item, Ticket)
        try:
            outcome = await self._in_thread(letter.item, self._store)
        except StoreFailed as failure:
            _answer(letter.reply, failure)
            raise
        except ConvmemError as error:
            outcome = error
        self.facts = await self._in_thread(self._store.facts)
        _answer(letter.reply, outcome)

    async def _in_thread(self, function: Callable[..., Result], *arguments: Any) -> Result:
        self._is_at_work = True
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        finally:
            self._is_at_work = False
            self.changed.set()


def _by_store(batch: list[Letter]) -> list[tuple[TableFile | None, list[Letter]]]:
    """Part a batch by the stores of its commands: the log first, each store's commands in their order."""
    parts: dict[TableFile | None, list[Letter]] = {None: []}
    for letter in batch:
        assert isinstance(letter.item, Ticket)
        parts.setdefault(target_of(letter.item.command), []).append(letter)
    return [(target, letters) for target, letters in parts.items() if letters]


def _answer(reply: Reply, outcome: Any) -> None:
    if reply.done():
        return  # the caller has gone; the command was finished all the same
    if isinstance(outcome, ConvmemError):
        reply.set_exception(outcome)
    else:
        reply.set_result(outcome)
