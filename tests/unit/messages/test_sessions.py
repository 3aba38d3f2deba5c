"""The list of conversations: newest first, counted from groups, each with something that stands for it."""

from typing import Any

import pytest

from convmem.errors import InvalidCursor
from convmem.limits import REPLY_BYTES_DEFAULT
from convmem.messages import sessions
from convmem.reply_bytes import reply_bytes
from tests.support.folded import Folded
from tests.support.manual_clock import START_MS


async def listed(folded: Folded, **arguments: Any) -> Any:
    return await folded.call("read_messages", view="sessions", **arguments)


async def names(folded: Folded, **arguments: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = await listed(folded, cursor=cursor, **arguments)
        found += [session["session_id"] for session in page["sessions"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


async def test_nothing_said_is_an_empty_list(folded: Folded):
    assert await listed(folded) == {"sessions": [], "next_cursor": None}


async def test_a_session_says_what_is_in_it(folded: Folded):
    message_id = await folded.say("hello", project="p")
    folded.clock.pass_ms(10)
    await folded.say("note", role="assistant", memory_kind="semantic")
    folded.clock.pass_ms(-100)
    await folded.say("another", role="assistant")
    assert (await listed(folded))["sessions"] == [
        {
            "session_id": "s",
            "count": 3,
            "count_by_kind": {"conversation": 2, "semantic": 1},
            "first_at": START_MS - 90,
            "last_at": START_MS + 10,
            "summary": "hello",
            "summary_of": {"message_id": message_id, "field": "content"},
        }
    ]


async def test_sessions_go_by_their_last_time_then_by_name(folded: Folded):
    for session in "cab":
        await folded.say("x", session)
    folded.clock.pass_ms(5)
    await folded.say("x", "z", memory_kind="episode")
    await folded.say("x", "b", memory_kind="semantic", project="p")
    for limit in (1, 2, 50):
        assert await names(folded, limit=limit) == ["b", "z", "a", "c"]


async def test_a_session_of_several_equal_groups_is_listed_once(folded: Folded):
    for kind in ("episode", "semantic", "conversation"):
        for project in ("p", None, ""):
            await folded.say("x", "s", memory_kind=kind, project=project)
    await folded.say("x", "t")
    assert await names(folded, limit=1) == ["s", "t"]


async def test_with_a_project_only_its_messages_count(folded: Folded):
    await folded.say("of p", "one", project="p")
    folded.clock.pass_ms(5)
    await folded.say("of q", "two", project="q")
    await folded.say("of p too", "two", project="p", role="assistant")
    folded.clock.pass_ms(5)
    await folded.say("of nobody", "one")
    page = await listed(folded, project="p")
    assert [(one["session_id"], one["count"], one["last_at"]) for one in page["sessions"]] == [
        ("two", 1, START_MS + 5),
        ("one", 1, START_MS),
    ]
    assert "summary" not in page["sessions"][0]
    assert page["sessions"][1]["summary"] == "of p"


async def test_a_session_goes_with_its_last_message(folded: Folded):
    message_id = await folded.say("x")
    await folded.call("delete_message", message_id=message_id)
    assert await names(folded) == []


async def test_what_stands_for_a_session_is_looked_for_in_order(folded: Folded):
    async def summary() -> tuple[str, str]:
        session = (await listed(folded))["sessions"][0]
        return session["summary"], session["summary_of"]["field"]

    await folded.say("assistant first", role="assistant")
    assert "summary" not in (await listed(folded))["sessions"][0]
    await folded.say("user says")
    await folded.say("user says more")
    assert await summary() == ("user says", "content")
    await folded.say("x", summary="old label")
    await folded.say("x", summary="new label")
    assert await summary() == ("new label", "metadata.summary")
    await folded.say("old summary", memory_kind="summary")
    newest = await folded.say("new summary", memory_kind="summary")
    await folded.say("x", summary="later label")
    assert await summary() == ("new summary", "content")
    await folded.call("delete_message", message_id=newest)
    assert await summary() == ("old summary", "content")


async def test_a_long_summary_is_a_preview_of_200_code_points(folded: Folded):
    await folded.say("日" * 201)
    session = (await listed(folded))["sessions"][0]
    assert "summary" not in session
    assert session["summary_preview"] == "日" * 200


async def test_the_list_stays_small_and_loses_nothing(folded: Folded):
    expected = [f"{number:03}" + "\x01" * 253 for number in range(60)]
    for name in expected:
        await folded.say("\x01" * 300, name)
    assert reply_bytes(await listed(folded)) <= REPLY_BYTES_DEFAULT
    assert await names(folded) == expected
    assert len((await listed(folded, max_bytes=1))["sessions"]) == 1


async def test_a_cursor_belongs_to_its_project(folded: Folded):
    for session in "ab":
        await folded.say("x", session, project="p")
    cursor = (await listed(folded, limit=1, project="p"))["next_cursor"]
    with pytest.raises(InvalidCursor):
        await listed(folded, cursor=cursor)


def test_a_page_walks_the_index_of_times_and_counts_no_messages():
    connection = Folded().connection
    plan = connection.execute(f"EXPLAIN QUERY PLAN {sessions.NEWEST_GROUPS}", (None, 1, "", 50)).fetchall()
    steps = [str(step[3]) for step in plan]
    assert any("messages_group_by_time" in step for step in steps)
    assert not [step for step in steps if "SCAN" in step.split(" ", 1)[0] or "TEMP" in step]
    for _, column, which in sessions.SUMMARIES:
        query = f"EXPLAIN QUERY PLAN SELECT {column} FROM messages_message WHERE {which}"
        steps = [str(step[3]) for step in connection.execute(query, ("s", None)).fetchall()]
        assert not [step for step in steps if step.startswith("SCAN") or "TEMP" in step]
    assert any("messages_by_group" in step for step in _steps_of_newest_summary(connection))


def _steps_of_newest_summary(connection: Any) -> list[str]:
    query = f"EXPLAIN QUERY PLAN SELECT content FROM messages_message WHERE {sessions.SUMMARIES[0][2]}"
    return [str(step[3]) for step in connection.execute(query, ("s", None)).fetchall()]
