"""History, slices and context: whole records in pages, cuts by rule, and what is left out is named."""

from typing import Any

import pytest

from convmem.errors import Conflict, InvalidCursor, InvalidOffset, NotFound
from convmem.limits import LIST_ENTRIES_MAX, REPLY_BYTES_DEFAULT
from convmem.messages.replies import reply_bytes
from tests.support.folded import Folded

NOBODY = "01HF7YAT00000000000000ZZZZ"


async def history(folded: Folded, **arguments: Any) -> Any:
    return await folded.call("read_messages", **{"view": "history", "session_id": "s"} | arguments)


async def contents(folded: Folded, **arguments: Any) -> list[str]:
    """The contents of all pages, one behind the other."""
    found: list[str] = []
    cursor = None
    while True:
        page = await history(folded, cursor=cursor, **arguments)
        assert page["messages"]
        found += [message["content"] for message in page["messages"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


async def test_history_is_in_order_of_sequence_not_of_time(folded: Folded):
    for number in range(5):
        await folded.say(str(number))
        await folded.say("elsewhere", "t")
        folded.clock.pass_ms(-1_000)
    assert await contents(folded, limit=2) == ["0", "1", "2", "3", "4"]
    assert await contents(folded, limit=2, order="desc") == ["4", "3", "2", "1", "0"]


async def test_an_unknown_session_is_an_empty_page(folded: Folded):
    assert await history(folded) == {"messages": [], "next_cursor": None}


async def test_a_page_that_ends_with_the_last_message_says_so(folded: Folded):
    for number in range(4):
        await folded.say(str(number))
    assert (await history(folded, limit=4))["next_cursor"] is None
    assert (await history(folded, limit=3))["next_cursor"] is not None


@pytest.mark.parametrize(("order", "rest"), [("asc", ["3", "4", "new"]), ("desc", ["1", "0"])])
async def test_a_cursor_is_stable_under_writes_and_deletions(folded: Folded, order: str, rest: list[str]):
    ids = [await folded.say(str(number)) for number in range(5)]
    first = await history(folded, limit=2, order=order)
    await folded.say("new")
    shown = [message["message_id"] for message in first["messages"]]
    await folded.call("delete_message", message_id=shown[-1])
    await folded.call("delete_message", message_id=ids[2])
    second = await history(folded, cursor=first["next_cursor"], order=order)
    assert [message["content"] for message in second["messages"]] == rest


async def test_history_can_be_one_project_s(folded: Folded):
    for project in ("p", "q", None, "p"):
        await folded.say(str(project), project=project)
    assert await contents(folded, project="p", limit=1) == ["p", "p"]


async def test_a_cursor_belongs_to_its_session_project_and_order(folded: Folded):
    for _ in range(3):
        await folded.say("x", project="p")
    cursor = (await history(folded, limit=1))["next_cursor"]
    for other in ({"session_id": "t"}, {"project": "p"}, {"order": "desc"}):
        with pytest.raises(InvalidCursor):
            await history(folded, cursor=cursor, **other)


async def test_default_pages_stay_small_and_lose_nothing(folded: Folded):
    texts = ["日" * 700, "\x01" * 2_000, 'q"' * 1_000, "x" * 4_096] * 6
    for text in texts:
        await folded.say(text)
    cursor, found = None, []
    while True:
        page = await history(folded, cursor=cursor)
        assert reply_bytes(page) <= REPLY_BYTES_DEFAULT
        found += [message["content"] for message in page["messages"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == texts


async def test_a_very_large_message_is_a_preview_and_can_be_had_with_more_bytes(folded: Folded):
    await folded.say("small")
    await folded.say("é" * 2**19)
    await folded.say("small")
    page = await history(folded)
    assert reply_bytes(page) <= REPLY_BYTES_DEFAULT
    assert [("content" in message) for message in page["messages"]] == [True, False, True]
    assert page["messages"][1]["total_bytes"] == 2**20
    page = await history(folded, max_bytes=8 * 2**20)
    assert len(page["messages"][1]["content"]) == 2**19


async def test_a_page_holds_one_record_even_in_no_space(folded: Folded):
    await folded.say("x" * 5_000, summary="s" * 4_096)
    await folded.say("y")
    page = await history(folded, max_bytes=1)
    assert len(page["messages"]) == 1
    assert page["messages"][0]["content_preview"] == "x" * 1_024
    assert page["next_cursor"]


async def content(folded: Folded, message_id: str, **arguments: Any) -> Any:
    return await folded.call("read_messages", view="content", message_id=message_id, **arguments)


async def test_slices_side_by_side_are_the_text(folded: Folded):
    text = "aé日\U0001f600\0" * 7
    message_id = await folded.say(text)
    for limit in range(1, 12):
        offset, found = 0, ""
        while True:
            piece = await content(folded, message_id, offset=offset, limit=limit)
            assert piece["next_offset"] > offset
            assert piece["offset"] == offset
            assert len(piece["content"].encode()) <= max(limit, 4)
            found += piece["content"]
            offset = piece["next_offset"]
            if piece["eof"]:
                break
        assert found == text
        assert offset == piece["total_bytes"] == len(text.encode())


async def test_a_slice_is_answered_with_all_that_is_needed_to_go_on(folded: Folded):
    message_id = await folded.say("日本語")
    assert await content(folded, message_id, offset=3, limit=4) == {
        "message_id": message_id,
        "revision": 1,
        "offset": 3,
        "next_offset": 6,
        "total_bytes": 9,
        "content": "本",
        "eof": False,
    }


@pytest.mark.parametrize("offset", [1, 2, 4, 10, 2**63 - 1])
async def test_an_offset_inside_a_code_point_or_behind_the_end_is_refused(folded: Folded, offset: int):
    message_id = await folded.say("日本語")
    with pytest.raises(InvalidOffset) as refusal:
        await content(folded, message_id, offset=offset)
    assert refusal.value.details == {"offset": offset, "total_bytes": 9}


@pytest.mark.parametrize("text", ["", "日本語"])
async def test_the_end_is_an_offset(folded: Folded, text: str):
    message_id = await folded.say(text)
    end = len(text.encode())
    piece = await content(folded, message_id, offset=end)
    assert (piece["content"], piece["next_offset"], piece["eof"]) == ("", end, True)


async def test_a_slice_of_another_revision_than_expected_is_a_conflict(folded: Folded):
    message_id = await folded.say("1")
    await folded.call("update_message", message_id=message_id, content="2")
    assert (await content(folded, message_id, expected_revision=2))["content"] == "2"
    with pytest.raises(Conflict) as refusal:
        await content(folded, message_id, expected_revision=1)
    assert refusal.value.details == {"current_revision": 2}


async def test_slices_stay_within_the_reply(folded: Folded):
    message_id = await folded.say("\x01" * 200_000)
    assert reply_bytes(await content(folded, message_id)) <= REPLY_BYTES_DEFAULT
    piece = await content(folded, message_id, limit=65_536)
    assert reply_bytes(piece) <= REPLY_BYTES_DEFAULT
    assert 2_000 < piece["next_offset"] < 65_536
    assert (await content(folded, message_id, limit=65_536, max_bytes=2**20))["next_offset"] == 65_536
    assert len((await content(folded, message_id, max_bytes=1))["content"]) == 1


@pytest.mark.parametrize("view", ["content", "context"])
async def test_a_message_that_is_not_there_is_not_found(folded: Folded, view: str):
    with pytest.raises(NotFound) as refusal:
        await folded.call("read_messages", view=view, message_id=NOBODY)
    assert refusal.value.details == {"field": "message_id", "message_id": NOBODY}


async def context(folded: Folded, message_id: str, **arguments: Any) -> Any:
    return await folded.call("read_messages", view="context", message_id=message_id, **arguments)


async def test_context_shows_neighbours_in_the_session_s_order(folded: Folded):
    ids = [await folded.say(str(number)) for number in range(9)]
    found = await context(folded, ids[4])
    assert found["target"]["content"] == "4"
    assert [message["content"] for message in found["before"]] == ["1", "2", "3"]
    assert [message["content"] for message in found["after"]] == ["5", "6", "7"]
    assert found["truncated"] is False
    found = await context(folded, ids[0], before=50, after=1)
    assert (found["before"], [message["content"] for message in found["after"]]) == ([], ["1"])


async def family(folded: Folded) -> list[str]:
    """a <- b <- c <- d, each saying "answers"."""
    ids = [await folded.say("a")]
    for name in "bcd":
        ids.append(await folded.say(name, name, relations=[{"type": "answers", "message_id": ids[-1]}]))
    return ids


def edges(found: Any, direction: str) -> list[tuple[str, int, str]]:
    return [(edge["type"], edge["depth"], edge["message_id"]) for edge in found["relations"][direction]]


async def test_relations_are_followed_both_ways_to_their_depth(folded: Folded):
    a, b, c, d = await family(folded)
    found = await context(folded, b)
    assert (edges(found, "outgoing"), edges(found, "incoming")) == ([("answers", 1, a)], [("answers", 1, c)])
    found = await context(folded, b, relation_depth=2)
    assert edges(found, "incoming") == [("answers", 1, c), ("answers", 2, d)]
    assert found["relations"]["incoming"][1]["to"] == c
    assert (await context(folded, b, relation_depth=0))["relations"] == {"outgoing": [], "incoming": [], "missing": []}


async def test_a_deleted_target_is_listed_as_missing(folded: Folded):
    a, b, c, _ = await family(folded)
    await folded.call("delete_message", message_id=a)
    found = await context(folded, c, relation_depth=2)
    assert edges(found, "outgoing") == [("answers", 1, b)]
    assert edges(found, "missing") == [("answers", 2, a)]


async def test_a_circle_of_relations_ends(folded: Folded):
    a, b, _, _ = await family(folded)
    await folded.call("update_message", message_id=a, metadata={"relations": [{"type": "back", "message_id": b}] * 2})
    found = await context(folded, a, relation_depth=2)
    assert edges(found, "outgoing") == [("back", 1, b), ("back", 1, b), ("answers", 2, a)]


async def test_very_many_relations_are_cut_and_said_to_be(folded: Folded):
    target = await folded.say("target")
    for _ in range(8):
        await folded.say("x", "t", relations=[{"type": "r", "message_id": target}] * 32)
    found = await context(folded, target, max_bytes=2**20)
    assert len(found["relations"]["incoming"]) == LIST_ENTRIES_MAX
    assert found["truncated"] is True


async def test_context_stays_small_whatever_stands_around(folded: Folded):
    for _ in range(5):
        await folded.say("\x01" * 4_000, summary="\x01" * 4_000)
    ids = [row[0] for row in folded.connection.execute("SELECT message_id FROM messages_message")]
    links = [{"type": "\x01" * 64, "message_id": message_id} for message_id in ids] * 6
    target = await folded.say("\x01" * 2**20, relations=links, tags=["\x01" * 120 + str(n) for n in range(32)])
    found = await context(folded, target)
    assert reply_bytes(found) <= REPLY_BYTES_DEFAULT
    assert found["target"]["message_id"] == target
    assert found["truncated"] is True
