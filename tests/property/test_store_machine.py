"""A random caller against a list, with compactions, power cuts, full disks, lost indexes and clocks that step back as
rules.
"""

import errno
from contextlib import suppress
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from convmem.errors import ConvmemError, DiskFault, NotFound, StorageFull
from convmem.store.log import NAME
from tests.support.faulty_files import FaultyFiles, Names, PowerLost, Tear
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

    @rule(tear=st.sampled_from(Tear), names=st.sampled_from(Names), with_index=st.booleans())
    def lose_power(self, tear: Tear, names: Names, with_index: bool) -> None:
        generation = self.opened.store.log.generation
        index = {generation: self.opened.shelf.image()} if with_index else None
        disk = self.opened.disk.after_power_loss(tear, names)
        self.opened = open_store(disk, index=index, clock=self.clock)

    @rule(meanwhile=st.lists(TEXT, max_size=2), strikes=st.booleans())
    def compact(self, meanwhile: list[str], strikes: bool) -> None:
        """While the live state is written, others add and strike."""
        rewrite = self.opened.rewrite()
        rewrite.prepare()
        if meanwhile:
            self.commit(Add(tuple(meanwhile)))
        if strikes and self.known:
            self.commit(Strike(self.known[0][0]))
        generation = self.opened.store.log.generation
        rewrite.finish(self.opened.store)
        rewrite.clean()
        assert self.opened.store.log.generation == generation + 1
        assert self.opened.disk.names() == [NAME]

    @rule(step=st.integers(1, 12), error=st.sampled_from([errno.ENOSPC, errno.EIO]))
    def fail_to_compact(self, step: int, error: int) -> None:
        disk = self.opened.disk
        generation = self.opened.store.log.generation
        rewrite = self.opened.rewrite()
        disk.fail_at_step, disk.error = len(disk.steps) + step, error
        try:
            rewrite.prepare()
        except (StorageFull, DiskFault):
            assert self.opened.store.log.generation == generation
        finally:
            disk.fail_at_step = None
            rewrite.discard()

    @rule(step=st.integers(1, 12), tear=st.sampled_from(Tear), names=st.sampled_from(Names), with_old=st.booleans())
    def lose_power_while_compacting(self, step: int, tear: Tear, names: Names, with_old: bool) -> None:
        """Whatever is left of it, what is known is there."""
        opened = self.opened
        generation, index = opened.store.log.generation, opened.shelf.image()
        opened.disk.cut_at_step = len(opened.disk.steps) + step
        with suppress(PowerLost):
            opened.compact()
        disk = opened.disk.after_power_loss(tear, names)
        self.opened = open_store(disk, index={generation: index} if with_old else None, clock=self.clock)
        assert self.opened.store.log.generation in (generation, generation + 1)

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
