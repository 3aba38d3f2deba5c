"""The tables of search follow the index by whole transactions, and know of each message what it holds now."""

import apsw
import pytest

from convmem.limits import INDEXER_DOCUMENTS
from convmem.messages import search_tables
from convmem.messages.search_tables import document, feed, lag, read_watermark, rows
from tests.support.indexed import Indexed


@pytest.fixture
def indexed() -> Indexed:
    return Indexed()


def named(indexed: Indexed, table: str, term: str) -> list[int]:
    """The messages that a table names for a term."""
    query = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid"
    return [sequence for (sequence,) in indexed.tables.execute(query, (f'"{term}"',))]


def state(indexed: Indexed) -> tuple[int, ...]:
    (found,) = indexed.tables.execute("SELECT * FROM messages_state").fetchall()
    return tuple(found)


async def test_fed_tables_name_every_message_by_its_words_pairs_and_grams(indexed: Indexed):
    await indexed.say("hello world", summary="greeting", tags=["sea"])
    await indexed.say("東京都。雨", session_id="t", project="p")
    assert named(indexed, "messages_gram", "llo") == []
    indexed.feed()
    for term in ("llo", "o w", "gre", "sea"):
        assert named(indexed, "messages_gram", term) == [1]
    for term in ("hello", "world", "sea"):
        assert named(indexed, "messages_word", term) == [1]
    for term in ("東京", "京都", "都", "東", "雨"):
        assert named(indexed, "messages_word", term) == [2]
    assert named(indexed, "messages_gram", "\x03。\x03") == [2]


async def test_a_message_is_named_by_what_it_holds_now_and_not_at_all_when_it_is_gone(indexed: Indexed):
    changed, gone = await indexed.say("old words"), await indexed.say("gone words")
    indexed.feed()
    await indexed.call("update_message", message_id=changed, content="new words", metadata={"tags": ["kraken"]})
    await indexed.call("delete_message", message_id=gone)
    assert named(indexed, "messages_word", "old") == [1]
    indexed.feed()
    assert [named(indexed, "messages_word", term) for term in ("old", "gone", "new", "kraken")] == [[], [], [1], [1]]
    assert [named(indexed, "messages_gram", term) for term in ("old", "gon", "new", "kra")] == [[], [], [1], [1]]


async def test_what_came_and_went_between_two_feeds_leaves_nothing(indexed: Indexed):
    await indexed.call("delete_message", message_id=await indexed.say("never seen"))
    indexed.feed()
    assert indexed.watermark == 2
    assert indexed.tables.execute("SELECT count(*) FROM messages_gram_row").fetchone() == (0,)


async def test_a_feed_is_one_transaction_of_so_many_messages(indexed: Indexed):
    for number in range(INDEXER_DOCUMENTS + 5):
        await indexed.say(f"text {number}")
    assert lag(indexed.connection, indexed.watermark) == INDEXER_DOCUMENTS + 5
    assert feed(indexed.tables, indexed.connection, lambda: None) == INDEXER_DOCUMENTS
    assert (indexed.watermark, lag(indexed.connection, indexed.watermark)) == (INDEXER_DOCUMENTS, 5)
    assert feed(indexed.tables, indexed.connection, lambda: None) == 5
    assert feed(indexed.tables, indexed.connection, lambda: None) == 0
    assert len(named(indexed, "messages_word", "text")) == INDEXER_DOCUMENTS + 5


async def test_between_two_messages_it_pauses_and_a_pause_that_raises_undoes_the_feed(indexed: Indexed):
    pauses = 0

    def pause() -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 3:
            raise KeyError("stopped")

    for number in range(5):
        await indexed.say(f"text {number}")
    with pytest.raises(KeyError, match="stopped"):
        feed(indexed.tables, indexed.connection, pause)
    assert (indexed.watermark, named(indexed, "messages_word", "text")) == (0, [])
    indexed.feed()
    assert named(indexed, "messages_word", "text") == [1, 2, 3, 4, 5]


async def test_feeding_twice_changes_nothing(indexed: Indexed):
    await indexed.say("a red fox", tags=["t"])
    indexed.feed()
    before = state(indexed)
    indexed.feed()
    assert state(indexed) == before
    assert before[1:3] == (1, 1)


async def test_a_reader_sees_the_watermark_of_the_attached_tables(indexed: Indexed):
    await indexed.say("text")
    indexed.feed()
    assert read_watermark(indexed.connection, "search") == read_watermark(indexed.tables) == 1


async def test_rows_are_those_that_the_tables_know_as_they_stand(indexed: Indexed):
    first, _ = await indexed.say("first"), await indexed.say("second")
    indexed.feed()
    await indexed.call("update_message", message_id=first, content="later")
    await indexed.say("third")
    assert [row.content for row in rows(indexed.connection, indexed.watermark)] == ["second"]


async def test_a_document_says_of_each_field_what_stands_in_it(indexed: Indexed):
    await indexed.say("Running e\u0301", role="system", summary="か\u3099き 本", tags=["x y", "雨"], project="p")
    (row,) = rows(indexed.connection, 1)
    made = document(row)
    assert made.content.split() == ["run", "é"]
    assert made.summary.split() == ["がき", "き", "本"]
    assert made.tags.split() == ["x", "y", "雨"]
    assert made.words == (2, 3, 3)
    other = made.other.split()
    assert {"system", "か", "が", "き", "本", "雨"} <= set(other)
    assert len(search_tables.tokens_of(row._asdict())) == 5
    assert set(search_tables.tokens_of(row._asdict())) <= set(other)
    assert "running é\x1erunning e\u0301\x1e" in made.grams


@pytest.mark.parametrize("content", ["\0", "\ufffe\uffff", "\U0010ffff" * 3, "\x03\x1e", "", "日" * 1000, '"' * 50])
async def test_any_text_can_be_fed(indexed: Indexed, content: str):
    await indexed.say(content, summary=content or None)
    indexed.feed()
    assert indexed.watermark == 1


async def test_the_largest_message_is_known_to_its_end(indexed: Indexed):
    await indexed.say("日本 abcdefgh " * 50_000 + "終端 xyzzy")
    indexed.feed()
    assert named(indexed, "messages_word", "終端") == named(indexed, "messages_gram", "yzz") == [1]


def test_lost_tables_know_nothing(indexed: Indexed):
    indexed.lose_tables()
    assert indexed.watermark == 0
    with pytest.raises(apsw.SQLError):
        indexed.connection.execute("SELECT * FROM search.messages_message")
