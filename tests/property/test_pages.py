"""Pages side by side are the whole, whatever is written and deleted meanwhile, and no page is too large."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.limits import REPLY_ENVELOPE_BYTES
from convmem.messages.replies import reply_bytes
from tests.support.folded import Folded
from tests.support.texts import texts

pytestmark = pytest.mark.slow

sizes = st.sampled_from([1, 1, 1, 30, 1_200])
said = st.tuples(st.sampled_from("ab"), texts, sizes).map(lambda found: (found[0], found[1] * found[2]))


async def walk(folded: Folded, of: str, meanwhile: Any = None, **arguments: Any) -> list[Any]:
    """All entries of a view, page by page; `meanwhile` is called between two pages."""
    entries: list[Any] = []
    cursor = None
    while True:
        page = await folded.call("read_messages", cursor=cursor, **arguments)
        if len(page[of]) > 1:
            assert reply_bytes(page) <= arguments["max_bytes"] + REPLY_ENVELOPE_BYTES
        entries += page[of]
        cursor = page["next_cursor"]
        if cursor is None:
            return entries
        assert page[of]
        if meanwhile is not None:
            await meanwhile(entries)


def run(steps: Any) -> None:
    asyncio.run(steps)


@given(
    st.lists(said, max_size=12),
    st.integers(1, 5),
    st.sampled_from([1, 9_000, 64_000]),
    st.sampled_from(["asc", "desc"]),
)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_pages_of_a_history_are_the_history(messages: list[Any], limit: int, max_bytes: int, order: str):
    async def steps() -> None:
        folded = Folded()
        ids = [(session, await folded.say(text, session)) for session, text in messages]
        expected = [message_id for session, message_id in ids if session == "a"]
        found = await walk(
            folded, "messages", view="history", session_id="a", limit=limit, max_bytes=max_bytes, order=order
        )
        shown = [message["message_id"] for message in found]
        assert shown == (expected if order == "asc" else expected[::-1])
        contents = dict(zip([message_id for _, message_id in ids], [text for _, text in messages], strict=True))
        for message in found:
            content = contents[message["message_id"]]
            if "content" in message:
                assert message["content"] == content
            else:
                assert content.startswith(message["content_preview"])
                assert message["total_bytes"] == len(content.encode())
        folded.prove()

    run(steps())


@given(st.integers(2, 14), st.integers(1, 4), st.sampled_from(["asc", "desc"]), st.data())
@settings(derandomize=True, max_examples=60, deadline=None)
def test_writes_and_deletions_between_pages_neither_repeat_nor_hide(
    count: int, limit: int, order: str, data: st.DataObject
):
    async def steps() -> None:
        folded = Folded()
        old = [await folded.say(str(number)) for number in range(count)]
        deleted: set[str] = set()

        async def meanwhile(_: list[Any]) -> None:
            await folded.say("new")
            live = [message_id for message_id in old if message_id not in deleted]
            if live:
                gone = data.draw(st.sampled_from(live))
                deleted.add(gone)
                await folded.call("delete_message", message_id=gone)

        found = await walk(
            folded,
            "messages",
            meanwhile if order == "desc" or limit > 1 else None,
            view="history",
            session_id="s",
            limit=limit,
            max_bytes=64_000,
            order=order,
        )
        shown = [message["message_id"] for message in found]
        assert len(shown) == len(set(shown))
        assert shown == sorted(shown, reverse=order == "desc")
        assert {message_id for message_id in old if message_id not in deleted} <= set(shown)
        folded.prove()

    run(steps())


@given(texts, sizes, st.integers(1, 3_000), st.sampled_from([1, 5_000, 64_000]))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_slices_of_a_content_are_the_content(text: str, repeated: int, limit: int, max_bytes: int):
    async def steps() -> None:
        folded = Folded()
        content = (text * repeated)[:2_000]
        message_id = await folded.say(content)
        found, offset = "", 0
        while True:
            ask = {"view": "content", "message_id": message_id, "offset": offset, "limit": max(limit, 50)}
            piece = await folded.call("read_messages", max_bytes=max_bytes if max_bytes > 1 else 4_000, **ask)
            found += piece["content"]
            assert piece["offset"] == offset
            offset = piece["next_offset"]
            if piece["eof"]:
                break
            assert piece["content"]
        assert found == content

    run(steps())


@given(st.lists(said, max_size=10), st.integers(1, 4))
@settings(derandomize=True, max_examples=40, deadline=None)
def test_pages_of_an_export_are_all_messages_in_order(messages: list[Any], limit: int):
    async def steps() -> None:
        folded = Folded()
        ids = [await folded.say(text, session) for session, text in messages]
        lines = await walk(folded, "lines", view="export", limit=limit, max_bytes=2**20)
        records = [json.loads(line) for line in lines]
        assert [record["message_id"] for record in records] == ids
        assert [record.get("content") for record in records] == [text for _, text in messages]
        assert all(line.splitlines() in ([line], []) for line in lines)

    run(steps())


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(-3, 3), st.sampled_from(["p", None]))), st.integers(1, 3)
)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_pages_of_sessions_are_all_sessions_newest_first(messages: list[Any], limit: int):
    async def steps() -> None:
        folded = Folded()
        last: dict[str, int] = {}
        for session, moved, project in messages:
            folded.clock.pass_ms(moved)
            await folded.say("x", session, project=project)
            last[session] = max(last.get(session, 0), folded.clock.at_ms)
        found = await walk(folded, "sessions", view="sessions", limit=limit, max_bytes=64_000)
        assert [one["session_id"] for one in found] == sorted(last, key=lambda session: (-last[session], session))
        assert sum(one["count"] for one in found) == len(messages)
        folded.prove()

    run(steps())
