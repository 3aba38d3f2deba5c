"""What a spool knows of itself beside what waits in it: a small file that is replaced as a whole.

One that is damaged says nothing. What was dropped is forgotten after as long as an event may wait.
"""

from __future__ import annotations

from convmem import file_descriptors as disk
from convmem import strict_json
from convmem.hooks.json_text import encoded
from convmem.limits import SPOOL_AGE_MS_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:
    from convmem.hooks.named_tuple import NamedTuple

STATE_BYTES_MAX = 1024


class State(NamedTuple):
    """Where the head is in which file, and what was dropped since when in ms since 1970 (0: nothing was)."""

    file: int = 0
    offset: int = 0
    dropped: int = 0
    dropped_since: int = 0

    def counted(self, number: int, now_ms: int) -> State:
        """The same with so many more dropped."""
        if number == 0:
            return self
        return self._replace(dropped=self.dropped + number, dropped_since=self.dropped_since or now_ms)

    def facts(self, depth: int, oldest_at: int | None) -> dict[str, Any]:
        """What is said of a spool in which so much waits."""
        since = self.dropped_since or None
        return {"depth": depth, "oldest_at": oldest_at, "dropped": self.dropped, "dropped_since": since}

    def text(self) -> bytes:
        """What the file says."""
        return encoded(self._asdict())


def state_in(path: str, now_ms: int) -> State:
    """What a file says; nothing if there is none that can be read."""
    try:
        found = strict_json.parse(disk.read_small(path, STATE_BYTES_MAX) or b"{}")
        numbers = [found[name] for name in State._fields]
    except (OSError, ValueError, TypeError, KeyError):
        return State()
    if not all(type(number) is int and number >= 0 for number in numbers):
        return State()
    state = State(*numbers)
    return state._replace(dropped=0, dropped_since=0) if now_ms - state.dropped_since > SPOOL_AGE_MS_MAX else state
