"""The scrub: while the daemon serves, the log is verified from its first byte, a slice at a time.

A start verifies only what its index has not seen; old damage would else be found on the day it is needed. Damage makes
the store degraded and marks it, so that the next start looks at the whole log before it serves.
"""

import asyncio
import logging
from collections.abc import Iterator
from functools import partial

from convmem.files import RealFiles
from convmem.store import check, log
from convmem.store.log import Position
from convmem.store.store import Store
from convmem.store.writer import Writer

JOURNAL = logging.getLogger("convmem")
SLICE_BYTES = 4 * 1024 * 1024
PAUSE_S = 0.02


class Scrub:
    """Verifies one store's log, again for each generation. `damage` is a sentence once there is some."""

    def __init__(self, files: RealFiles) -> None:
        self._files = files
        self._again = asyncio.Event()
        self.verified_bytes = 0
        self.damage: str | None = None

    def renew(self) -> None:
        """Another generation has taken over: begin anew."""
        self.verified_bytes = 0
        self._again.set()

    async def run(self, writer: Writer) -> None:
        """Walk until cancelled; ends at damage, which a log that is not there any more is too."""
        while self.damage is None:
            self._again.clear()
            try:
                await self._walk(writer)
            except OSError as error:
                self.damage = f"the log cannot be read ({error.strerror}): what is written now may be lost"
                JOURNAL.error("%s", self.damage)
            if self.damage is None:
                await self._again.wait()

    async def _walk(self, writer: Writer) -> None:
        facts = writer.facts
        file = self._files.open_to_read(log.NAME)
        try:
            walk = check.scrub(file, generation=facts.generation, end=facts.log_bytes)
            while not self._again.is_set() and (found := await asyncio.to_thread(_slice, walk)) is not None:
                (verified_bytes, _), damage = found
                if self._again.is_set() or writer.facts.generation != facts.generation:
                    return
                self.verified_bytes = verified_bytes
                if damage is not None:
                    # Between two batches nobody else can take over: now it shows whether this file is still the log.
                    if await writer.alone(partial(_mark, generation=facts.generation, offset=verified_bytes)):
                        self.damage = f"the log is damaged at byte {verified_bytes}: {damage}"
                        JOURNAL.error("%s", self.damage)
                    return
                await asyncio.sleep(PAUSE_S)
        finally:
            file.close()


def _mark(store: Store, generation: int, offset: int) -> bool:
    """Mark the damage, unless another generation has taken over meanwhile; True if it was marked."""
    if store.log.generation != generation:
        return False
    store.mark_damage(offset)
    return True


def _slice(walk: Iterator[tuple[Position, str | None]]) -> tuple[Position, str | None] | None:
    """Advance by one slice; where the walk stands and what is wrong there, None at the end."""
    start: int | None = None
    found: tuple[Position, str | None] | None = None
    for found in walk:
        position, damage = found
        start = position.offset if start is None else start
        if damage is not None or position.offset - start >= SLICE_BYTES:
            break
    return found
