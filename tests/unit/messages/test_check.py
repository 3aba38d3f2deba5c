"""Each invariant is violated on purpose, and said."""

import pytest

from convmem.messages.check import INVARIANTS, VIOLATIONS_MAX, check
from convmem.messages.inputs import CaptureEvent
from tests.support.folded import Folded

SEEN = {"session_id": "s", "event_id": "e", "kind": "prompt", "content": "seen by a hook"}
KEYED = {"session_id": "s", "role": "user", "content": "x", "idempotency_key": "k"}


async def sound() -> Folded:
    folded = Folded()
    first = await folded.call("write_message", **KEYED)
    links = {"relations": [{"type": "after", "message_id": first["message_id"]}], "tags": ["t"]}
    second = await folded.say("y", **links, source_message_ids=[first["message_id"]])
    await folded.call("update_message", message_id=second, content="z", metadata={"importance": 1})
    folded.commit(CaptureEvent(**SEEN))
    folded.prove()
    return folded


# How the index is damaged, and what is then said of it.
DAMAGE = [
    ("UPDATE messages_message SET changed_sequence = 1 WHERE sequence = 2", "message 2 was changed before"),
    ("UPDATE messages_message SET revision = 1 WHERE sequence = 2", "message 2 was changed before"),
    ("UPDATE messages_message SET updated_at = timestamp - 1 WHERE sequence = 1", "message 1 was updated before"),
    ("UPDATE messages_message SET content = 'xyz' WHERE sequence = 1", "message 1 gives a size"),
    ("UPDATE messages_message SET links = 1 WHERE sequence = 2", "message 2 counts other relations"),
    ("INSERT INTO messages_relation VALUES (9, 0, 't', 'x')", "a relation belongs to message 9"),
    ("INSERT INTO messages_source VALUES (9, 0, 'x')", "a source belongs to message 9"),
    ("INSERT INTO messages_tag VALUES ('t', 1)", "a tag belongs to message 1"),
    ("DELETE FROM messages_tag", "message 2 has tags that cannot be found"),
    ("UPDATE messages_group SET count = count + 1", "the counts or times of 2 groups"),
    ("DELETE FROM messages_group", "the counts or times of 1 groups"),
    ("UPDATE messages_message SET number = 7 WHERE sequence = 1", "message 1 was captured and has no number"),
    ("UPDATE messages_message SET number = NULL", "message 4 was captured and has no number"),
    ("UPDATE messages_message SET capture = NULL", "message 4 was captured and has no number"),
    ("DELETE FROM messages_captured_session", "the session of the fingerprint of entry 4"),
    ("UPDATE messages_captured_session SET last_at = 1", "the session of the fingerprint of entry 4"),
    ("DELETE FROM messages_fingerprint", "session "),
    ("UPDATE messages_receipt SET message_id = 't'", "the receipt of message 1"),
]


@pytest.mark.parametrize(("statement", "sentence"), DAMAGE)
async def test_damage_is_named(statement: str, sentence: str):
    folded = await sound()
    folded.connection.execute(statement)
    found = check(folded.connection)
    assert any(violation.startswith(sentence) for violation in found), found


def test_no_invariant_is_left_untried():
    tried = {sentence.split(" {}")[0] for sentence, _ in INVARIANTS}
    for sentence, _ in INVARIANTS:
        start = sentence.format("§").split("§")[0]
        assert any(damage.startswith(start) for _, damage in DAMAGE), sentence
    assert tried


async def test_a_ruin_is_described_in_a_bounded_number_of_sentences():
    folded = Folded()
    for number in range(VIOLATIONS_MAX + 5):
        await folded.say(str(number))
    folded.connection.execute("UPDATE messages_message SET content_bytes = 77")
    assert len(check(folded.connection)) == VIOLATIONS_MAX
