"""Events that wait on disk: appended behind all others, taken off at the head, each change under a short kernel lock.

    <name>.jsonl    one event a line
    <name>.state    where the head is, in which file; how many events were dropped, and since when
    <name>.lock     whose turn it is: held for one change
    <name>.drain    who delivers: held as long as that takes, and inherited by the process that does it

Killing any process at any moment loses nothing that was in the file and spoils no other line. A line that was never
finished is followed by a line break before the next one is appended. Taking off moves the head in the state, which is
replaced as a whole; the file is emptied when all is taken, and rewritten only when much of it is. A state that does not
belong to the file as it is (another file, an emptied one) says nothing of the head, so all that is there is sent again,
and the daemon stores each event once.

Nothing is synced: what a power cut takes from here is what the host itself would have lost.

Rejected: a file for each event (thousands of them are slow to list in order), and a database (importing one takes as
long as the whole hook may).
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from convmem import file_descriptors as disk
from convmem import strict_json
from convmem.clock import Clock, sleep_ms
from convmem.hooks import lines
from convmem.limits import (
    CAPTURE_EVENTS_MAX,
    DELIVERY_BYTES_MAX,
    HOOK_TURN_MS_MAX,
    SPOOL_AGE_MS_MAX,
    SPOOL_BYTES_MAX,
    SPOOL_LINE_BYTES_MAX,
    SPOOL_ROOM_BYTES,
    SPOOL_TAKEN_BYTES_MAX,
)

STATE_BYTES_MAX = 1024
# How the file of the right to deliver begins: somebody has it, or somebody else asks for it. A pid follows.
HELD, ASKED, PID_DIGITS = b" ", b"?", 12


class Unavailable(Exception):
    """The spool could not be used in time, or the disk does not let it; the sentence says which."""


class State(NamedTuple):
    """Where the head is in which file, and what was dropped since when (0: nothing was)."""

    file: int = 0
    offset: int = 0
    dropped: int = 0
    dropped_since: int = 0


class Batch(NamedTuple):
    """What stands at the head: its bytes as they are in the file, the events among them, how many lines hold none that
    can be sent, and what the spool says of itself once all of it is taken off.
    """

    raw: bytes
    events: tuple[bytes, ...]
    spoiled: int
    behind: dict[str, Any]


class Spool:
    """The spool of one daemon. Methods raise Unavailable."""

    def __init__(self, directory: str, name: str, clock: Clock) -> None:
        self._directory = directory
        self._path = os.path.join(directory, name)
        self._clock = clock

    def is_empty(self) -> bool:
        """Whether nothing waits, as far as one look without a turn can tell: a file that holds nothing but what was
        taken off is not empty yet.
        """
        return disk.size(self._path + ".jsonl") == 0

    def at_rest(self) -> dict[str, Any]:
        """What the spool says of itself when nothing waits."""
        return _facts(0, None, self._said())

    def facts(self) -> dict[str, Any]:
        """What waits, since when, and what was dropped; nothing is made where there is nothing."""
        if not os.path.isdir(self._directory):
            return self.at_rest()
        with self._turn() as file:
            state, size = self._state(file)
            return self._behind(file, state.offset, size, state)

    def append(self, events: Sequence[bytes]) -> None:
        """Put events behind all others; the oldest make room. Either all of them are in the file then, or none."""
        data = b"".join(event + lines.BREAK for event in events)
        if len(data) >= SPOOL_BYTES_MAX:
            raise Unavailable("it is more than the spool holds")
        with self._turn() as file:
            state, size = self._state(file)
            if size and disk.read(file, size - 1, 1) != lines.BREAK:
                data = lines.BREAK + data
            if size + len(data) <= SPOOL_BYTES_MAX:
                disk.write_at_end(file, size, data)
                return
            self._make_room(file, state, size, len(data))
        self.append(events)

    def count_dropped(self, number: int) -> None:
        """Count events that will never be delivered."""
        with self._turn() as file:
            state, _ = self._state(file)
            self._tell(self._counted(state, number))

    def head(self, events_max: int = CAPTURE_EVENTS_MAX) -> Batch:
        """The oldest events, so many that one request carries them. Without one, nothing or only spoiled lines are
        there.
        """
        with self._turn() as file:
            state, size = self._state(file)
            data = disk.read(file, state.offset, DELIVERY_BYTES_MAX)
            is_all = state.offset + len(data) == size
            events, spoiled, end = lines.sorted_out(data, events_max, self._clock.now_ms(), is_all=is_all)
            after = self._counted(state, spoiled)
            return Batch(data[:end], events, spoiled, self._behind(file, state.offset + end, size, after))

    def take_off(self, batch: Batch, dropped: int) -> None:
        """Take off what was at the head, and count what of it is dropped. What has left meanwhile, to make room, is
        gone already; what else is at the head stays.
        """
        with self._turn() as file:
            state, size = self._state(file)
            there = disk.read(file, state.offset, len(batch.raw))
            taken = batch.raw
            while not there.startswith(taken):
                taken = taken[taken.find(lines.BREAK) + 1 :] if lines.BREAK in taken else b""
            offset = state.offset + len(taken)
            state = self._counted(state, dropped)._replace(offset=offset)
            if offset == size:
                # Emptied first: an offset beyond the end says that this happened.
                disk.truncate(file)
                state = state._replace(offset=0)
            self._tell(state)
            if state.offset > SPOOL_TAKEN_BYTES_MAX and state.offset > size - state.offset:
                self._rewrite(file, state)

    def claim(self) -> "Claim | None":
        """The right to deliver, if nobody has it."""
        with self._usable():
            descriptor = disk.open_file(self._path + ".drain")
            if disk.lock(descriptor):
                return Claim(descriptor)
            disk.close(descriptor)
        return None

    def ask_for_claim(self, wait_ms: int) -> "Claim | None":
        """The same for somebody who waits: whoever has the right is asked to leave it."""
        with self._usable():
            descriptor = disk.open_file(self._path + ".drain")
            if not disk.lock(descriptor):
                disk.overwrite(descriptor, 0, ASKED)
                if not disk.lock_within(descriptor, wait_ms, sleep_ms):
                    disk.close(descriptor)
                    return None
        return Claim(descriptor)

    def leave(self, claim: "Claim") -> bool:
        """Give the right back if nothing waits. An event that is appended later finds it free."""
        with self._turn() as file:
            state, size = self._state(file)
            if state.offset < size:
                return False
            claim.close()
            return True

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            disk.make_directory(self._directory)
            yield
        except OSError as error:
            raise Unavailable(f"the spool cannot be used: {error.strerror}") from None

    @contextmanager
    def _turn(self) -> Iterator[int]:
        """The file, open, while nobody else changes it."""
        with self._usable():
            turn = disk.open_file(self._path + ".lock")
            try:
                if not disk.lock_within(turn, HOOK_TURN_MS_MAX, sleep_ms):
                    raise Unavailable("others kept the spool too long")
                file = disk.open_file(self._path + ".jsonl")
                try:
                    yield file
                finally:
                    disk.close(file)
            finally:
                disk.close(turn)

    def _said(self) -> State:
        """What the state file says; a damaged one says nothing. What was dropped is forgotten after a while."""
        try:
            text = disk.read_small(self._path + ".state", STATE_BYTES_MAX)
            found = strict_json.parse(text or b"{}")
            numbers = [found[name] for name in State._fields]
        except (OSError, ValueError, TypeError, KeyError):
            return State()
        if not all(type(number) is int and number >= 0 for number in numbers):
            return State()
        state = State(*numbers)
        is_forgotten = self._clock.now_ms() - state.dropped_since > SPOOL_AGE_MS_MAX
        return state._replace(dropped=0, dropped_since=0) if is_forgotten else state

    def _state(self, file: int) -> tuple[State, int]:
        """The state as it is of this file, and the file's size. One of another file, or of one that has been emptied
        since, is put right at once: the next file may bear the same number.
        """
        size, number = disk.size_and_number(file)
        state = self._said()
        if state.file != number or state.offset > size:
            stale = state.offset > 0
            state = state._replace(file=number, offset=0)
            if stale:
                self._tell(state)
        return state, size

    def _tell(self, state: State) -> None:
        disk.replace(self._path + ".state", json.dumps(state._asdict()).encode())

    def _counted(self, state: State, number: int) -> State:
        """The state with so many more dropped."""
        if number == 0:
            return state
        since = state.dropped_since or self._clock.now_ms()
        return state._replace(dropped=state.dropped + number, dropped_since=since)

    def _make_room(self, file: int, state: State, size: int, length: int) -> None:
        """Cut off what was taken; if that is not enough, the oldest lines too, and count them."""
        excess = size - state.offset + length - SPOOL_BYTES_MAX
        if excess > 0:
            data = disk.read(file, state.offset, min(size - state.offset, excess + SPOOL_ROOM_BYTES))
            end = data.rfind(lines.BREAK) + 1 or len(data)
            state = self._counted(state, data.count(lines.BREAK, 0, end))._replace(offset=state.offset + end)
            self._tell(state)
        self._rewrite(file, state)

    def _rewrite(self, file: int, state: State) -> None:
        """Let the file begin at its head. Until the state says so too it belongs to another file, whose head is its
        start: the same place.
        """
        path = self._path + ".jsonl"
        disk.keep_from(path, file, state.offset)
        rewritten = disk.open_file(path)
        self._tell(state._replace(file=disk.size_and_number(rewritten)[1], offset=0))
        disk.close(rewritten)

    def _behind(self, file: int, offset: int, size: int, state: State) -> dict[str, Any]:
        if disk.read(file, offset, 1) == lines.BREAK:
            offset += 1  # It ends a line that was never finished.
        depth, at = 0, offset
        while piece := disk.read(file, at, DELIVERY_BYTES_MAX):
            depth, at = depth + piece.count(lines.BREAK), at + len(piece)
        first = disk.read(file, offset, min(size - offset, SPOOL_LINE_BYTES_MAX)).partition(lines.BREAK)[0]
        return _facts(depth, lines.time_of(first), state)


class Claim:
    """The right to deliver. Closed, or left by the end of its process, it is free again. Its file says who has it and
    whether somebody else asks for it; a full disk is no reason to have less of a right.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        with suppress(OSError):
            disk.overwrite(descriptor, 0, HELD)
        self.tell()

    def tell(self) -> None:
        """Say that it is this process that has it, beside what was asked meanwhile."""
        with suppress(OSError):
            disk.overwrite(self.descriptor, len(HELD), b"%*d" % (PID_DIGITS, os.getpid()))

    def is_over(self) -> bool:
        """Whether somebody else waits for it, or its file was removed and the spool with it."""
        return disk.read(self.descriptor, 0, 1) == ASKED or not disk.is_linked(self.descriptor)

    def close(self) -> None:
        """Give it back."""
        disk.close(self.descriptor)


def _facts(depth: int, oldest_at: int | None, state: State) -> dict[str, Any]:
    since = state.dropped_since or None
    return {"depth": depth, "oldest_at": oldest_at, "dropped": state.dropped, "dropped_since": since}
