"""prune.py: what was captured goes when its time has passed, and nothing else does, whoever asks for it."""

import pytest

from convmem.limits import PRUNE_MESSAGES_MAX
from convmem.memory.prune import PruneInteractions, is_past
from convmem.messages import queries
from convmem.messages.inputs import MetadataGiven, UpdateMessage
from convmem.messages.model import Message
from tests.support.manual_clock import START_MS
from tests.support.remembered import Remembered

OLD_MS, BEFORE_MS = START_MS - 10_000, START_MS - 5_000


def stored(remembered: Remembered) -> dict[str, Message]:
    found = queries.read_messages(remembered.connection, "ORDER BY sequence", ())
    return {message.content: message for message in found}


def pruned(remembered: Remembered, *sequences: int, before_ms: int = BEFORE_MS) -> dict[str, int]:
    answer: dict[str, dict[str, int]] = remembered.commit(PruneInteractions(sequences, before_ms))
    return answer["pruned"]


def test_old_captured_messages_go_by_one_entry_and_are_counted_by_kind(remembered: Remembered):
    for number, kind in enumerate(("prompt", "prompt", "tool_call", "error")):
        remembered.capture(f"old {number}", kind=kind, at=OLD_MS + number * 3_001 - 9_000)
    assert pruned(remembered, 1, 2, 3, 4) == {"prompt": 2, "tool_call": 1, "error": 1}
    assert stored(remembered) == {}
    assert remembered.sequence == 5


@pytest.mark.parametrize("tier", ["mid", "long"])
def test_what_somebody_marked_as_worth_keeping_stays(remembered: Remembered, tier: str):
    kept = remembered.capture("kept", at=OLD_MS)
    remembered.commit(UpdateMessage(message_id=kept["message_id"], metadata=MetadataGiven(memory_tier=tier)))
    before = remembered.sequence
    assert pruned(remembered, 1) == {}
    assert list(stored(remembered)) == ["kept"]
    assert remembered.sequence == before, "nothing is written where nothing goes"


def test_a_message_of_a_conversation_stays_whatever_its_tier(remembered: Remembered):
    remembered.write_message("said", metadata={"memory_tier": "short"})
    assert pruned(remembered, 1, before_ms=START_MS + 1) == {}
    assert list(stored(remembered)) == ["said"]


def test_what_is_as_old_as_the_bound_stays_and_one_ms_older_goes(remembered: Remembered):
    remembered.capture("at the bound", at=BEFORE_MS)
    remembered.capture("older", at=BEFORE_MS - 1)
    assert pruned(remembered, 1, 2) == {"prompt": 1}
    assert list(stored(remembered)) == ["at the bound"]


def test_what_is_gone_already_is_passed_over(remembered: Remembered):
    first = remembered.capture("first", at=OLD_MS)
    remembered.capture("second", at=OLD_MS)
    remembered.delete_message(first["message_id"])
    assert pruned(remembered, 1, 2, 99) == {"prompt": 1}
    assert pruned(remembered, 1, 2, 99) == {}


def test_who_looks_first_and_who_decides_go_by_one_rule(remembered: Remembered):
    remembered.capture("old", at=OLD_MS)
    remembered.capture("new", at=BEFORE_MS)
    remembered.write_message("said", metadata={"memory_tier": "short"})
    assert [name for name, message in stored(remembered).items() if is_past(message, BEFORE_MS)] == ["old"]
    assert not is_past(stored(remembered)["said"], START_MS + 1)


def test_a_command_is_small_and_says_how_small(remembered: Remembered):
    assert PruneInteractions((), 0).size_bytes < PruneInteractions((1,) * PRUNE_MESSAGES_MAX, 0).size_bytes < 16_384
    with pytest.raises(AssertionError):
        PruneInteractions((1,) * (PRUNE_MESSAGES_MAX + 1), 0)
