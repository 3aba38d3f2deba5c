"""Time and dice that a test can predict, stop and turn back."""

from dataclasses import dataclass

START_MS = 1_700_000_000_000


@dataclass
class ManualClock:
    """A clock that stands still until a test moves it; its dice always fall alike."""

    at_ms: int = START_MS
    bits: int = 7

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> float:
        return float(self.at_ms)

    def random_bits(self) -> int:
        return self.bits

    def pass_ms(self, elapsed_ms: int) -> None:
        """Move the clock; a negative number turns it back."""
        self.at_ms += elapsed_ms
