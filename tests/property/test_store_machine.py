"""A random caller against a list, with power cuts, full disks, lost indexes and clocks that step back as rules."""

import errno
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from convmem.errors import ConvmemError, NotFound, StorageFull
from tests.support.faulty_files import FaultyFiles, Tear
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTE_MAX, Add, Strike, notes
from tests.support.stores import open_store

TEXT = st.text(max_size=30)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.opened = open_store(FaultyFiles(), clock=self.clock)
        self.known: list[tuple[int, str]] = []
        self.sequence = 0
        self.made: list[str] = []

    def commit(self, *commands: Any) -> list[Any]:
        outcomes = self.opened.commit(*commands)
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(outcome, ConvmemError):
                continue
            if isinstance(command, Add) and command.notes:
                self.sequence += 1
                assert outcome["sequence"] == self.sequence
                self.known += [(self.sequence, note) for note in command.notes]
                self.made.append(outcome["note_id"])
            elif isinstance(command, Strike):
                self.sequence += 1
                self.known = [known for known in self.known if known[0] != command.sequence]
        return outcomes

    @rule(batch=st.lists(st.lists(TEXT, max_size=3), min_size=1, max_size=4))
    def add(self, batch: list[list[str]]) -> None:
        self.commit(*(Add(tuple(texts)) for texts in batch))

    @rule(text=TEXT)
    def refuse_half_way(self, text: str) -> None:
        before = list(self.known)
        outcomes = self.commit(Add((text, "x" * (NOTE_MAX + 1))), Add((text,)))
        assert isinstance(outcomes[0], ConvmemError)
        assert self.known == [*before, (self.sequence, text)]

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def strike(self, data: st.DataObject) -> None:
        sequence, _ = data.draw(st.sampled_from(self.known))
        outcomes = self.commit(Strike(sequence), Strike(sequence))
        assert isinstance(outcomes[1], NotFound)

    @rule(text=TEXT)
    def meet_a_full_disk(self, text: str) -> None:
        disk = self.opened.disk
        disk.fail_at_step, disk.error = len(disk.steps) + 1, errno.ENOSPC
        assert isinstance(self.commit(Add((text,)))[0], StorageFull)
        disk.fail_at_step = None

    @rule(elapsed_ms=st.integers(-100_000, 100_000))
    def move_the_clock(self, elapsed_ms: int) -> None:
        self.clock.pass_ms(elapsed_ms)

    @rule(tear=st.sampled_from(Tear), with_index=st.booleans())
    def lose_power(self, tear: Tear, with_index: bool) -> None:
        index = self.opened.shelf.image() if with_index else None
        disk = self.opened.disk.after_power_loss(tear)
        self.opened = open_store(disk, index=index, clock=self.clock)

    @rule()
    def rebuild(self) -> None:
        self.opened.store.rebuild(lambda done, total: None)

    @invariant()
    def the_index_equals_the_list(self) -> None:
        assert notes(self.opened.connection) == self.known
        assert self.opened.store.facts().sequence == self.sequence

    @invariant()
    def ids_rise(self) -> None:
        assert self.made == sorted(set(self.made))

    def teardown(self) -> None:
        assert self.opened.check() == []


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
