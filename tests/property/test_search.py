"""Search against brute force: every substring of what is stored is found, and nothing else is."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.text import fold
from tests.support.folded import Folded
from tests.support.texts import names, some_texts, texts

pytestmark = pytest.mark.slow

messages = st.lists(st.tuples(texts, st.none() | texts, st.lists(names, max_size=2)), min_size=1, max_size=6)


def holds(query: str, text: str | None) -> bool:
    return text is not None and (fold(query) in fold(text) or query in text)


async def exact(folded: Folded, query: str, match: str = "exact") -> set[str]:
    facts = await folded.call("search_messages", query=query, match=match, limit=100)
    return {result["message_id"] for result in facts["results"] if result["exact"]}


def changed(stored: dict[str, Any], data: st.DataObject) -> tuple[str, Any]:
    message_id = data.draw(st.sampled_from(sorted(stored)))
    return message_id, data.draw(st.none() | st.tuples(texts, st.none() | texts, st.lists(names, max_size=2)))


@given(messages, st.data())
@settings(derandomize=True, max_examples=150, deadline=None)
def test_every_substring_is_found_and_nothing_else(said: list[Any], data: st.DataObject):
    async def steps() -> None:
        folded = Folded()
        stored: dict[str, Any] = {}
        for content, summary, tags in said:
            stored[await folded.say(content, summary=summary, tags=tags)] = (content, summary, tags)
        message_id, value = changed(stored, data)
        if value is None:
            await folded.call("delete_message", message_id=message_id)
            old = stored.pop(message_id)
        else:
            metadata = {"summary": value[1], "tags": value[2]}
            await folded.call("update_message", message_id=message_id, content=value[0], metadata=metadata)
            old, stored[message_id] = stored[message_id], value
        for query in queries(old, [text for one in stored.values() for text in (one[0], one[1] or "", *one[2])], data):
            expected = {
                message_id
                for message_id, (content, summary, tags) in stored.items()
                if holds(query, content) or holds(query, summary) or any(holds(query, tag) for tag in tags)
            }
            assert await exact(folded, query) == expected
            assert await exact(folded, query, "auto") == expected
        folded.prove()

    asyncio.run(steps())


def queries(old: Any, stored: list[str], data: st.DataObject) -> list[str]:
    """Some text, a part of what was there before, and a part of what is there."""
    found = [data.draw(some_texts)[:40]]
    for text in (old[0], data.draw(st.sampled_from(stored or [""]))):
        if text:
            start = data.draw(st.integers(0, len(text) - 1))
            found.append(text[start : start + data.draw(st.integers(1, 8))])
    return found


@given(some_texts, st.integers(0, 700), st.integers(0, 700), st.data())
@settings(derandomize=True, max_examples=100, deadline=None)
def test_ranges_show_the_query_in_the_original(middle: str, before: int, after: int, data: st.DataObject):
    async def steps() -> None:
        folded = Folded()
        content = "ﬁ" * before + middle + "ﬁ" * after
        start = data.draw(st.integers(0, len(middle) - 1))
        query = middle[start : start + 8]
        await folded.say(content)
        facts = await folded.call("search_messages", query=query, match="exact")
        (result,) = facts["results"]
        first = result["snippet_start"]
        assert len(result["snippet"]) <= 300
        assert content[first : first + len(result["snippet"])] == result["snippet"]
        assert result["match_ranges"]
        for low, high in result["match_ranges"]:
            assert holds(query, content[low:high])
            assert first <= low < first + 300

    asyncio.run(steps())


@given(texts, some_texts, st.sampled_from(["auto", "any", "exact"]))
@settings(derandomize=True, max_examples=200, deadline=None)
def test_no_query_raises_and_scores_add_up(content: str, query: str, match: str):
    async def steps() -> None:
        folded = Folded()
        await folded.say(content, summary=content[:50], tags=["key a"])
        facts = await folded.call("search_messages", query=query[:100], match=match)
        for result in facts["results"]:
            assert result["score"] == sum(result["scores"].values()) > 0
            assert all(result["scores"][name] >= 0 for name in result["scores"])

    asyncio.run(steps())
