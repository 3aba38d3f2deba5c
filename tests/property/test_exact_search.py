"""The tables of search against brute force: whatever was written, changed, deleted, fed or lost, a search for any part
of any text finds exactly the messages that hold it.
"""

import asyncio
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.limits import CONTENT_BYTES_MAX, QUERY_BYTES_MAX
from convmem.messages import exact
from convmem.messages.inputs import SearchMessages
from convmem.messages.matching import Question
from convmem.text import cut_to_bytes, fold
from tests.support.indexed import Indexed
from tests.support.texts import NASTY

pytestmark = pytest.mark.slow

# What is written in parts, joined or turned round by folding, kept by no tokenizer, or syntax of FTS5.
PARTS = (
    *NASTY,
    *("👨\u200d👩\u200d👧", "❤\ufe0f", "🇯🇵", "\u0301\u0323", "o\u0323\u0301", "a\u0315\u0300\u05ae", "\u0344"),
    *(
        "한",
        "\u1112\u1161\u11ab",
        "\u1112\u1161",
        "\uac00\u11a8",
        "한글",
        "か\u3099",
        "のか\u3099",
        "本は\u309a日",
        "\u309b",
        "ﾊﾟ",
        "㌀",
    ),
    *(
        "日",
        "本",
        "の",
        "日本",
        "語。",
        "、",
        "本a",
        "\U00020000",
        "\U0002f800",
        "\U0002ebf0",
        "\U00030000",
        "々",
        "〆",
    ),
    *("العربية", "لا", "ﷺ", "בְּ", "שׁ", "हिन्दी", "क़", "ภาษา", "ำ", "ន្ត", "ΟΔΟΣ", "ος ", "İi", "ẞ", "ﬃ", "Å", "ŉ"),
    *("\ue000", "\U000f0000", "\U000f1234", "\U000fffff", "\U00100000", "\U0010fffe", "\x03", "\x03\x03", "\x1e"),
    *('"', '""', "NEAR(", "OR", "NOT", "content:", "+", "{", "}", "text", "the ", " a"),
)
part = st.sampled_from(PARTS) | st.characters(exclude_categories=["Cs"])
# Few different parts, so that texts share some.
texts = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4, unique=True).flatmap(
    lambda few: st.lists(st.sampled_from(few) | part, max_size=14).map("".join)
)
tags = texts.map(lambda text: cut_to_bytes(text.replace("\0", "0"), 64)).filter(bool)


class Said(NamedTuple):
    """A message, as far as it is searched."""

    content: str
    summary: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        return [text for text in (self.content, self.summary, *self.tags) if text]

    def holds(self, query: str) -> bool:
        return any(fold(query) in fold(text) or query in text for text in self.texts)


said = st.builds(
    Said, texts, st.none() | st.none() | texts, st.just(()) | st.lists(tags, unique=True, max_size=2).map(tuple)
)
# What happens between two searches: a message is written, changed or deleted; the tables follow, or are lost.
steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "change", "delete", "feed", "lose"]), said, st.integers(0, 99)
    ),
    min_size=1,
    max_size=12,
)


class Bounds(NamedTuple):
    """Bounds so low that few messages pass them."""

    newest_rows: int
    rows_a_hit: int
    few_rows: int
    slice_rows: int
    terms_max: int
    begun_grams_max: int


bounds = st.builds(
    Bounds,
    st.sampled_from([1, 1, 3, 1_500]),
    st.sampled_from([1, 2, 100]),
    st.sampled_from([0, 0, 2, 3_000]),
    st.sampled_from([1, 3, 4_096]),
    st.sampled_from([1, 2, 16]),
    st.sampled_from([4, 256, 256]),
)


class Store:
    """A store with its tables, and what it holds."""

    def __init__(self) -> None:
        self.indexed = Indexed()
        self.stored: dict[str, Said] = {}

    async def step(self, kind: str, message: Said, place: int) -> None:
        if kind == "feed":
            self.indexed.feed(place if place < 50 else None)
        elif kind == "lose":
            self.indexed.lose_tables()
        elif kind == "write" or not self.stored:
            message_id = await self.indexed.say(
                message.content, "st"[place % 2], summary=message.summary, tags=list(message.tags)
            )
            self.stored[message_id] = message
        else:
            message_id = sorted(self.stored)[place % len(self.stored)]
            if kind == "delete":
                await self.indexed.call("delete_message", message_id=message_id)
                del self.stored[message_id]
            else:
                metadata = {"summary": message.summary, "tags": list(message.tags)}
                await self.indexed.call(
                    "update_message", message_id=message_id, content=message.content, metadata=metadata
                )
                self.stored[message_id] = message

    def find(self, query: str, **filters: Any) -> set[str]:
        """The messages that the tables find, and those after their watermark that hold the query."""
        connection, watermark = self.indexed.connection, self.indexed.watermark
        ask, question = SearchMessages(query=query, **filters), Question(query)
        hits: list[int] = []
        before, rest = exact.NEWEST, "tables"
        while rest == "tables":
            found = exact.find(connection, ask, question, watermark, len(self.stored) + 1, before)
            assert found.before <= before
            hits += [hit.sequence for hit in found.hits]
            before, rest = found.before, found.rest
        assert hits == sorted(set(hits), reverse=True)
        rows = connection.execute("SELECT message_id, sequence, changed_sequence, session_id FROM messages_message")
        found_ids = set()
        for message_id, sequence, changed, session_id in rows.fetchall():
            is_left = changed > watermark or (rest == "rows" and sequence < before)
            if sequence in hits:
                assert changed <= watermark
                found_ids.add(message_id)
            elif is_left and ask.session_id in (None, session_id) and self.stored[message_id].holds(query):
                found_ids.add(message_id)
        assert len(hits) <= len(found_ids)
        return found_ids

    def holding(self, query: str) -> set[str]:
        return {message_id for message_id, message in self.stored.items() if message.holds(query)}


def query_of(data: st.DataObject, known: list[str]) -> str:
    """A part of a text, mostly short, as it stands or changed; or any other text."""
    text = data.draw(st.sampled_from(known)) if known else ""
    if not text or data.draw(st.integers(0, 7)) == 0:
        return data.draw(texts.filter(bool))
    start = data.draw(st.integers(0, len(text) - 1))
    query = text[start : start + data.draw(st.integers(1, 8) | st.integers(1, 60))]
    return data.draw(st.sampled_from([query, query, query, fold(query), query.upper(), query + data.draw(part)]))


def bound(monkeypatch: pytest.MonkeyPatch, at: Bounds) -> None:
    for name, value in at._asdict().items():
        key = {"rows_a_hit": "NEWEST_ROWS_A_HIT"}.get(name, name.upper())
        monkeypatch.setattr(exact, f"SEARCH_{key}", value)


@given(steps, bounds, st.data())
@settings(derandomize=True, max_examples=250, deadline=None)
def test_tables_and_what_they_do_not_know_yet_find_what_brute_force_finds(
    happened: list[Any], at: Bounds, data: st.DataObject
):
    async def run() -> None:
        store = Store()
        for number, (kind, message, place) in enumerate(happened):
            await store.step(kind, message, place)
            if kind == "write" or number == len(happened) - 1:
                prove(store)
        store.indexed.feed()
        prove(store)
        store.indexed.prove()

    def prove(store: Store) -> None:
        known = [text for message in store.stored.values() for text in message.texts]
        for _ in range(4):
            query = cut_to_bytes(query_of(data, known), QUERY_BYTES_MAX)
            assert store.find(query) == store.holding(query), query

    with pytest.MonkeyPatch.context() as monkeypatch:
        bound(monkeypatch, at)
        asyncio.run(run())


@given(
    steps,
    st.sampled_from(["whole", "whole", "whole", "damaged", "missing"]),
    st.sampled_from(["exact", "auto"]),
    st.data(),
)
@settings(derandomize=True, max_examples=80, deadline=None)
def test_search_messages_answers_with_what_brute_force_finds_whatever_the_tables_are_like(
    happened: list[Any], tables: str, match: str, data: st.DataObject
):
    async def run() -> None:
        store = Store()
        for kind, message, place in happened:
            await store.step(kind, message, place)
        if tables == "damaged":
            store.indexed.damage()
        if tables == "missing":
            store.indexed.connection.execute("DETACH search")
        for _ in range(6):
            known = [text for message in store.stored.values() for text in message.texts]
            query = cut_to_bytes(query_of(data, known), QUERY_BYTES_MAX)
            facts = await store.indexed.call("search_messages", query=query, match=match, limit=100)
            exact_ids = {result["message_id"] for result in facts["results"] if result["exact"]}
            assert (exact_ids, facts["complete"]) == (store.holding(query), True), query
        store.indexed.prove()

    asyncio.run(run())


@given(st.lists(said, min_size=1, max_size=4), bounds, st.data())
@settings(derandomize=True, max_examples=100, deadline=None)
def test_a_session_is_searched_like_a_store_of_its_own(messages: list[Said], at: Bounds, data: st.DataObject):
    async def run() -> None:
        store = Store()
        for place, message in enumerate(messages * 2):
            await store.step("write", message, place // len(messages))
        store.indexed.feed(data.draw(st.none() | st.integers(1, 4)))
        of_session = set(sorted(store.stored)[: len(messages)])
        for _ in range(6):
            query = cut_to_bytes(
                query_of(data, [text for message in messages for text in message.texts]), QUERY_BYTES_MAX
            )
            assert store.find(query, session_id="s") == store.holding(query) & of_session, query

    with pytest.MonkeyPatch.context() as monkeypatch:
        bound(monkeypatch, at)
        asyncio.run(run())


@given(st.lists(part, min_size=60, max_size=120).map("".join), bounds, st.data())
@settings(derandomize=True, max_examples=15, deadline=None)
def test_a_long_message_is_found_by_every_part_of_it(text: str, at: Bounds, data: st.DataObject):
    async def run() -> None:
        store = Store()
        # No two repetitions alike, and the text at both ends.
        filler = (f"{text[number % len(text) :]}{number}" for number in range(100_000 // len(text.encode())))
        await store.step("write", Said(cut_to_bytes("".join(filler), 100_000) + text), 0)
        await store.step("write", Said(text[: len(text) // 2]), 0)
        store.indexed.feed()
        (first, *_) = [message.content for message in store.stored.values()]
        for _ in range(12):
            start = data.draw(st.integers(0, len(first) - 1))
            query = cut_to_bytes(first[start : start + data.draw(st.integers(1, 200))], QUERY_BYTES_MAX)
            assert store.find(query) == store.holding(query), query

    with pytest.MonkeyPatch.context() as monkeypatch:
        bound(monkeypatch, at)
        asyncio.run(run())


async def test_the_largest_message_is_found_by_what_stands_at_its_end(monkeypatch: pytest.MonkeyPatch):
    bound(monkeypatch, Bounds(1, 1, 0, 4_096, 16, 256))
    store = Store()
    end = "終わりのe\u0301nd 👨\u200d👩 \u1112\u1161\u11ab"
    text = "".join(f"{number}日本 word\u0301 " for number in range(80_000))
    await store.step("write", Said(cut_to_bytes(text, CONTENT_BYTES_MAX - len(end.encode())) + end), 0)
    await store.step("write", Said("another"), 0)
    store.indexed.feed()
    (largest, *_) = sorted(store.stored)
    for start in range(len(end)):
        for length in (1, 2, 3, 8, 40):
            assert largest in store.find(end[start : start + length])
    assert store.find("終わりは") == set()
