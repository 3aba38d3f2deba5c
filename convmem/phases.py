"""How far an engine is, from its start to its end.

opening -> folding -> ready -> stopping
                        \\-> failed        (poisoned: whoever runs the engine exits, a restart recovers)
"""

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """How far the engine is."""

    OPENING = "opening"
    FOLDING = "folding"
    READY = "ready"
    STOPPING = "stopping"
    FAILED = "failed"


@dataclass(frozen=True)
class Folded:
    """Bytes of the log that the index shows, of how many."""

    done: int = 0
    total: int = 0
