"""clock: identifiers rise, whatever the clock and the dice do."""

import itertools

from ulid import ULID

from convmem.clock import RANDOM_BITS, Identifiers, SystemClock
from tests.support.manual_clock import ManualClock


def test_identifiers_rise_within_one_millisecond():
    clock = ManualClock()
    identifiers = Identifiers(clock, None)
    made = [identifiers.next(clock.now_ms()) for _ in range(1_000)]
    assert all(earlier < later for earlier, later in itertools.pairwise(made))


def test_identifiers_rise_when_the_clock_steps_back():
    clock = ManualClock()
    identifiers = Identifiers(clock, None)
    before = identifiers.next(clock.now_ms())
    clock.pass_ms(-3_600_000)
    after = identifiers.next(clock.now_ms())
    assert after > before
    assert int(ULID.from_str(after)) == int(ULID.from_str(before)) + 1


def test_identifiers_rise_across_restarts_with_the_clock_still_behind():
    clock = ManualClock()
    before = Identifiers(clock, None).next(clock.now_ms())
    clock.pass_ms(-3_600_000)
    assert Identifiers(clock, before).next(clock.now_ms()) > before


def test_an_identifier_holds_its_time_once_the_clock_is_ahead_again():
    clock = ManualClock()
    identifiers = Identifiers(clock, None)
    identifiers.next(clock.now_ms())
    clock.pass_ms(5)
    assert ULID.from_str(identifiers.next(clock.now_ms())).milliseconds == clock.now_ms()


def test_the_dice_at_their_highest_carry_into_the_time_and_still_rise():
    clock = ManualClock(bits=2**RANDOM_BITS - 1)
    identifiers = Identifiers(clock, None)
    first, second = identifiers.next(clock.now_ms()), identifiers.next(clock.now_ms())
    assert second > first
    assert len(second) == 26


def test_the_machine_s_own_clock_and_dice_keep_their_units():
    clock = SystemClock()
    assert 1_700_000_000_000 < clock.now_ms() < 10_000_000_000_000
    earlier, later = clock.monotonic_ms(), clock.monotonic_ms()
    assert later >= earlier
    drawn = {clock.random_bits() for _ in range(100)}
    assert len(drawn) == 100
    assert all(0 <= bits < 2**RANDOM_BITS for bits in drawn)
