"""Events that wait on disk: appended behind all others, taken off at the head, each change under a short kernel lock.

    <name>.jsonl    one event a line
    <name>.state    where the head is, in which file; how many events were dropped, and since when (state.py)
    <name>.lock     whose turn it is: held for one change
    <name>.late     what came while the turn was others' (late.py); part of what waits
    <name>.drain    who delivers: held as long as that takes, and inherited by the process that does it (claim.py)

Killing any process at any moment loses nothing that was in the file and spoils no other line. A line that was never
finished is followed by a line break before the next one is appended. Taking off moves the head in the state, which is
replaced as a whole; the file is emptied when all is taken, and rewritten only when much of it is. A state that does not
belong to the file as it is (another file, an emptied one) says nothing of the head, so all that is there is sent again,
and the daemon stores each event once.

Nothing is synced: what a power cut takes from here is what the host itself would have lost.

Rejected: a file for each event (thousands of them are slow to list in order), and a database (importing one takes as
long as the whole hook may).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from convmem import file_descriptors as disk
from convmem.clock import Clock, sleep_ms
from convmem.hooks import lines
from convmem.hooks.claim import Claim, asked_for, claimed
from convmem.hooks.late import Late, following
from convmem.hooks.state import State, state_in
from convmem.limits import (
    CAPTURE_EVENTS_MAX,
    DELIVERY_BYTES_MAX,
    DELIVERY_LATE_MS_MAX,
    DELIVERY_TURN_MS_MAX,
    HOOK_LATE_MS_MAX,
    HOOK_TURN_MS_MAX,
    SPOOL_BYTES_MAX,
    SPOOL_LINE_BYTES_MAX,
    SPOOL_ROOM_BYTES,
    SPOOL_TAKEN_BYTES_MAX,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:
    from convmem.hooks.named_tuple import NamedTuple


class Unavailable(Exception):
    """The disk does not let the spool be used; the sentence says why."""


class Busy(Unavailable):
    """Others had the spool for too long. It can be used, so nothing may go past it."""

    def __init__(self) -> None:
        super().__init__("others kept the spool too long")


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
        self._late = Late(self._path + ".late", clock)

    def is_empty(self) -> bool:
        """Whether nothing waits, as far as one look without a turn can tell: a file that holds nothing but what was
        taken off is not empty yet.
        """
        return disk.size(self._path + ".jsonl") == 0 and self._late.is_empty()

    def at_rest(self) -> dict[str, Any]:
        """What the spool says of itself when nothing waits."""
        return self._said().facts(0, None)

    def glance(self) -> dict[str, Any]:
        """The same as one look without a turn can tell it: nothing is made, written or locked."""
        path, state = self._path + ".jsonl", self._said()
        with self._usable(is_made=False):
            waiting = disk.read_small(path, SPOOL_BYTES_MAX) or b""
            is_of_file = waiting and os.stat(path).st_ino == state.file
            waiting = waiting[state.offset if is_of_file else 0 :] + (
                disk.read_small(self._path + ".late", SPOOL_BYTES_MAX) or b""
            )
        events = [line for line in waiting.split(lines.BREAK) if line]
        return state.facts(len(events), lines.time_of(events[0]) if events else None)

    def facts(self) -> dict[str, Any]:
        """What waits, since when, and what was dropped; nothing is made where there is nothing."""
        with self._usable(is_made=False):
            if not disk.is_there(self._directory):
                return self.at_rest()
        with self._turn(DELIVERY_TURN_MS_MAX):
            self._fault_of_taking_in()
            with self._opened() as file:
                state, size = self._state(file)
                return self._behind(file, state.offset, size, state)

    def append(self, events: Sequence[bytes], dropped: int = 0) -> None:
        """Put events behind all others, and count some that were dropped; the oldest make room. Either all of them are
        in the file then, or none. Busy after a moment, for a host does not wait.
        """
        data = b"".join(lines.line_of(event, self._clock.now_ms()) for event in events)
        if len(data) >= SPOOL_BYTES_MAX:
            raise Unavailable("it is more than the spool holds")
        try:
            with self._turn(HOOK_TURN_MS_MAX):
                self._take_in(HOOK_LATE_MS_MAX)
                if dropped:
                    with self._opened() as file:
                        self._tell(self._counted(self._state(file)[0], dropped))
                self._put(data)
        except Busy:
            with self._usable():
                if not self._late.add(data + lines.NO_EVENT * dropped):
                    raise

    def head(self, events_max: int = CAPTURE_EVENTS_MAX) -> Batch:
        """The oldest events, so many that one request carries them. Without one, nothing or only spoiled lines are
        there.
        """
        with self._turn(DELIVERY_TURN_MS_MAX):
            fault = self._fault_of_taking_in()
            with self._opened() as file:
                state, size = self._state(file)
                if fault is not None and state.offset == size:
                    raise fault
                data = disk.read(file, state.offset, DELIVERY_BYTES_MAX)
                is_all = state.offset + len(data) == size
                events, spoiled, end = lines.sorted_out(data, events_max, self._clock.now_ms(), is_all=is_all)
                after = self._counted(state, spoiled)
                return Batch(data[:end], events, spoiled, self._behind(file, state.offset + end, size, after))

    def take_off(self, batch: Batch, dropped: int) -> None:
        """Take off what was at the head, and count what of it is dropped. What has left meanwhile, to make room, is
        gone already; what else is at the head stays.
        """
        with self._turn(DELIVERY_TURN_MS_MAX), self._opened() as file:
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

    def claim(self) -> Claim | None:
        """The right to deliver, if nobody has it."""
        with self._usable():
            return claimed(self._path + ".drain")

    def ask_for_claim(self, wait_ms: int) -> Claim | None:
        """The same for somebody who waits: whoever has the right is asked to leave it."""
        with self._usable():
            return asked_for(self._path + ".drain", wait_ms, self._clock)

    def leave(self, claim: Claim) -> bool:
        """Give the right back if nothing waits. An event that is appended later finds it free; only one that came late
        may not, so look again.
        """
        with self._turn(DELIVERY_TURN_MS_MAX), self._opened() as file:
            state, size = self._state(file)
            if state.offset < size:
                return False
            if size:
                disk.truncate(file)
                self._tell(state._replace(offset=0))
            claim.close()
            return True

    @contextmanager
    def _usable(self, *, is_made: bool = True) -> Iterator[None]:
        try:
            if is_made:
                disk.make_directory(self._directory)
            yield
        except OSError as error:
            raise Unavailable(f"the spool cannot be used: {error.strerror}") from None

    @contextmanager
    def _turn(self, wait_ms: int) -> Iterator[None]:
        """Nobody else changes anything meanwhile. Busy."""
        with self._usable():
            turn = disk.open_file(self._path + ".lock")
            try:
                if not disk.lock_within(turn, wait_ms, self._clock.monotonic_ms, sleep_ms):
                    raise Busy
                yield
            finally:
                disk.close(turn)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        file = disk.open_file(self._path + ".jsonl")
        try:
            yield file
        finally:
            disk.close(file)

    def _take_in(self, wait_ms: int) -> None:
        """Put what came late behind what waits. OSError; Busy."""
        if not self._late.hand_over(self._put, wait_ms):
            raise Busy

    def _fault_of_taking_in(self) -> OSError | Busy | None:
        """The same for whoever can do without: why it could not be done."""
        try:
            self._take_in(DELIVERY_LATE_MS_MAX)
        except (OSError, Busy) as fault:
            return fault
        return None

    def _put(self, data: bytes) -> None:
        """Put whole lines behind all others; the oldest make room. OSError, and none of them is in the file."""
        with self._opened() as file:
            state, size = self._state(file)
            added = following(file, size, data)
            if size + len(added) <= SPOOL_BYTES_MAX:
                disk.write_at_end(file, size, added)
                return
            self._make_room(file, state, size, len(added))
        self._put(data)

    def _said(self) -> State:
        return state_in(self._path + ".state", self._clock.now_ms())

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
        disk.replace(self._path + ".state", state.text())

    def _counted(self, state: State, number: int) -> State:
        return state.counted(number, self._clock.now_ms())

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
        return state.facts(depth, lines.time_of(first))
