"""Which captured messages have had their time, and the command that takes them away.

What goes is only what a hook captured and nobody has marked since: a message whose tier was raised stays, and so does
one of a conversation, whatever its tier. Who finds them looks without the writer, so the decider looks once more.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apsw

from convmem.domain import Decided, Decider, Stamp
from convmem.limits import PRUNE_MESSAGES_MAX
from convmem.messages import queries
from convmem.messages.events import MessageDeleted
from convmem.messages.model import Message

PRUNED_TIER = "short"
# About what a number takes in a command.
_SEQUENCE_BYTES = 32


@dataclass(frozen=True)
class PruneInteractions:
    """Take these messages away, named by their sequences, as far as they may go: said before a time in ms."""

    sequences: tuple[int, ...]
    before_ms: int

    def __post_init__(self) -> None:
        assert len(self.sequences) <= PRUNE_MESSAGES_MAX

    @property
    def size_bytes(self) -> int:
        """About how many bytes the command holds."""
        return _SEQUENCE_BYTES * (1 + len(self.sequences))


def is_past(message: Message, before_ms: int) -> bool:
    """True if this message may be taken away."""
    is_short = message.metadata.memory_tier == PRUNED_TIER
    return message.capture is not None and is_short and message.timestamp < before_ms


def prune_interactions(connection: apsw.Connection, command: PruneInteractions, stamp: Stamp) -> Decided:
    """{pruned: how many of each kind}; those that are gone or may not go are passed over."""
    events, pruned = [], Counter[str]()
    for sequence in command.sequences:
        message = next(queries.read_messages(connection, "WHERE sequence = ?", (sequence,)), None)
        if message is not None and is_past(message, command.before_ms):
            assert message.capture is not None
            pruned[message.capture.kind] += 1
            events.append(MessageDeleted(message_id=message.message_id))
    return Decided({"pruned": dict(pruned)}, tuple(events))


DECIDERS: Mapping[type[Any], Decider] = {PruneInteractions: prune_interactions}
