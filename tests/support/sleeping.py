"""A sleep that ends when the test says so, for what follows a schedule by a clock that a test moves."""

import asyncio

from tests.support.manual_clock import ManualClock
from tests.support.waiting import until


class Sleeper:
    """Stands in for asyncio.sleep; `asked` are the seconds of each sleep."""

    def __init__(self, clock: ManualClock) -> None:
        self.asked: list[float] = []
        self._clock = clock
        self._wakes: list[asyncio.Event] = []

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        self._wakes.append(asyncio.Event())
        await self._wakes[-1].wait()

    async def asleep(self, count: int) -> None:
        """Wait until it has been asked to sleep so many times."""
        await until(lambda: len(self.asked) >= count)

    def pass_ms(self, elapsed_ms: int) -> None:
        """Let time pass, and everybody look at the clock."""
        self._clock.pass_ms(elapsed_ms)
        for wake in self._wakes:
            wake.set()
