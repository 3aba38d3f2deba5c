"""The only door to time and chance: wall clock, monotonic clock, identifiers, random bytes.

A message id is a ULID (github.com/ulid/spec). The generator is ours because the store promises more than a library's
does: ids rise even when the clock steps back, also across restarts. It is seeded with the last id the store made and
never looks at ids that came from elsewhere (7ZZZ… is a legal ULID: it would end the series).
"""

import os
import time

# Importing it takes a quarter of the time that the client for hooks has.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

RANDOM_BITS = 80


class Clock(Protocol):
    """Time and dice, as the store sees them; tests bring their own."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, UTC; may step back."""

    def monotonic_ms(self) -> float:
        """Milliseconds since some fixed moment; never steps back."""

    def random_bits(self) -> int:
        """A fresh random number of RANDOM_BITS bits."""


class SystemClock:
    """The machine's own clock and dice."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1_000_000

    def random_bits(self) -> int:
        return int.from_bytes(os.urandom(RANDOM_BITS // 8), "big")


def secret_bytes(count: int) -> bytes:
    """So many bytes that nobody can guess."""
    return os.urandom(count)


def sleep_ms(duration_ms: float) -> None:
    """Let this thread rest; for processes that have no loop."""
    time.sleep(duration_ms / 1000)


class Identifiers:
    """Makes ULIDs that strictly rise, whatever the clock does."""

    def __init__(self, clock: Clock, last: str | None) -> None:
        # Imported here: the package asks for its own version first, which takes longer than all else that this module
        # does.
        from ulid import ULID

        self._clock = clock
        self._format = ULID.from_int
        self._last = int(ULID.from_str(last)) if last else 0

    def next(self, at_ms: int) -> str:
        """Return an id for `at_ms`, greater than every id made before."""
        fresh = at_ms << RANDOM_BITS | self._clock.random_bits()
        self._last = fresh if fresh > self._last else self._last + 1
        return str(self._format(self._last))
