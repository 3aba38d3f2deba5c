"""A check of the tables of search notices every token that is missing, left over or in the wrong place."""

from collections.abc import Callable

import pytest

from convmem.messages import search_check, search_tables
from tests.support.indexed import Indexed

WORDS = "the tables of search: the words of messages are not those of the index"
GRAMS = "the tables of search: the grams of messages are not those of the index"


async def stored() -> Indexed:
    indexed = Indexed()
    for number in range(40):
        await indexed.say(f"message {number} 東京都 straße", summary=f"sum {number}", tags=["a", "ό τι"], project="p")
    message_id = await indexed.say("ΣΊΣΥΦΟΣ e\u0301\0x", "other")
    await indexed.call("update_message", message_id=message_id, content="changed İ")
    await indexed.call("delete_message", message_id=await indexed.say("gone"))
    indexed.feed()
    await indexed.say("not known yet")
    return indexed


def checked(indexed: Indexed) -> list[str]:
    return search_check.check(indexed.tables, indexed.connection)


async def test_tables_that_follow_are_right_however_far_they_are():
    indexed = Indexed()
    assert checked(indexed) == []
    indexed = await stored()
    known = await indexed.say("known")
    gone = await indexed.say("known, then gone")
    indexed.feed()
    await indexed.say("not known yet")
    await indexed.call("update_message", message_id=known, content="known otherwise")
    await indexed.call("delete_message", message_id=gone)
    assert checked(indexed) == []


DAMAGES: dict[str, tuple[Callable[[Indexed], object], list[str]]] = {
    "a message is missing": (lambda one: one.tables.execute("DELETE FROM messages_word WHERE rowid = 7"), [WORDS]),
    "its grams are missing": (lambda one: one.tables.execute("DELETE FROM messages_gram WHERE rowid = 7"), [GRAMS]),
    "a token more": (
        lambda one: one.tables.execute("INSERT INTO messages_word (rowid, content) VALUES (99, 'x')"),
        [WORDS],
    ),
    "a message that is gone": (
        lambda one: one.tables.execute("INSERT INTO messages_gram (rowid, body) VALUES (42, 'gone')"),
        [GRAMS],
    ),
    "two that changed places": (lambda one: exchanged(one, 3, 4), [WORDS, GRAMS]),
    "a field in the place of another": (
        lambda one: one.tables.execute(
            "DELETE FROM messages_word WHERE rowid = 41;"
            "INSERT INTO messages_word (rowid, content, other) SELECT 41, other, content FROM (SELECT 'a' AS other,"
            " 'b' AS content)"
        ),
        [WORDS],
    ),
    "less is known than is said": (
        lambda one: one.tables.execute("UPDATE messages_state SET watermark = 1000"),
        [WORDS, GRAMS],
    ),
}


def exchanged(indexed: Indexed, first: int, second: int) -> None:
    """Let the tables know each of two messages as the other."""
    known = {row.sequence: row for row in search_tables.rows(indexed.connection, indexed.watermark)}
    for sequence, as_other in ((first, second), (second, first)):
        search_tables.replace(indexed.tables, sequence, known[as_other], is_new=False)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_what_the_tables_say_otherwise_is_named(damage: str):
    indexed = await stored()
    spoil, expected = DAMAGES[damage]
    spoil(indexed)
    assert checked(indexed) == expected


async def test_it_looks_through_many_messages_piece_by_piece(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(search_check, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(search_check, "BUCKETS", 2)
    indexed = await stored()
    assert checked(indexed) == []
    exchanged(indexed, 3, 4)
    assert checked(await stored()) == []
