"""One line is one record for every reader, and the pages of an export are the whole."""

import json
from typing import Any

import pytest

from convmem import cursors
from convmem.errors import InvalidCursor
from convmem.limits import REPLY_BYTES_DEFAULT, REPLY_BYTES_MAX
from convmem.reply_bytes import reply_bytes
from tests.support.folded import Folded
from tests.support.manual_clock import START_MS

BREAKS = "a\u2028b\u2029c\u0085d\u001ce\u000bf\r\ng\0h\x7fi\x9fj"


async def export(folded: Folded, **arguments: Any) -> Any:
    return await folded.call("read_messages", view="export", **arguments)


async def all_lines(folded: Folded, **arguments: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = await export(folded, cursor=cursor, **arguments)
        found += page["lines"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


async def test_a_line_holds_what_the_message_is_and_not_where_it_stands(folded: Folded):
    message_id = await folded.say("old", tags=["a"], project="p")
    folded.clock.pass_ms(5)
    await folded.call("update_message", message_id=message_id, content="new")
    assert json.loads((await export(folded))["lines"][0]) == {
        "type": "message",
        "message_id": message_id,
        "session_id": "s",
        "timestamp": START_MS,
        "updated_at": START_MS + 5,
        "revision": 2,
        "role": "user",
        "content": "new",
        "metadata": {
            "tags": ["a"],
            "memory_tier": "mid",
            "memory_kind": "conversation",
            "importance": 0,
            "relations": [],
            "source_message_ids": [],
            "project": "p",
        },
        "origin": {"device": "local", "transport": "test"},
    }


async def test_a_line_is_one_line_however_lines_are_split(folded: Folded):
    await folded.say(BREAKS, BREAKS.replace("\0", ""), tags=[BREAKS.replace("\0", "")], summary=BREAKS)
    (line,) = (await export(folded))["lines"]
    assert line.splitlines() == [line]
    assert not [sign for sign in line if ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0]
    assert json.loads(line)["content"] == BREAKS


async def test_what_points_at_nothing_is_left_out(folded: Folded):
    gone, stays = await folded.say("gone"), await folded.say("stays")
    links = [{"type": "r", "message_id": gone}, {"type": "r", "message_id": stays}]
    await folded.say("x", relations=links, source_message_ids=[gone, stays])
    await folded.call("delete_message", message_id=gone)
    metadata = json.loads((await export(folded))["lines"][1])["metadata"]
    assert metadata["relations"] == links[1:]
    assert metadata["source_message_ids"] == [stays]


async def test_pages_are_the_whole_in_order_of_creation(folded: Folded):
    for number in range(120):
        await folded.say(str(number), session_id=f"s{number % 7}")
    assert [json.loads(line)["content"] for line in await all_lines(folded)] == [str(number) for number in range(120)]
    assert await all_lines(folded, limit=7) == await all_lines(folded, limit=500, max_bytes=2**20)


async def test_an_export_can_be_one_project_s(folded: Folded):
    for project in ("p", "q", None):
        await folded.say(str(project), project=project)
    assert [json.loads(line)["content"] for line in await all_lines(folded, project="p")] == ["p"]
    cursor = None
    with pytest.raises(InvalidCursor):
        await export(folded, cursor=cursors.cursor(("export", "q"), 1), project="p")
    assert cursor is None


@pytest.mark.slow
async def test_a_record_over_the_ceiling_is_named_and_hides_no_other(folded: Folded):
    first = await folded.say("\x01" * 2**20)
    await folded.say("small")
    for max_bytes in (None, REPLY_BYTES_MAX):
        page = await export(folded, max_bytes=max_bytes)
        assert json.loads(page["lines"][0]) == {"type": "oversize", "message_id": first}
        assert json.loads(page["lines"][1])["content"] == "small"


async def test_a_large_record_comes_when_the_reply_may_be_large(folded: Folded):
    await folded.say("é" * 2**19)
    assert json.loads((await export(folded))["lines"][0])["type"] == "oversize"
    page = await export(folded, max_bytes=REPLY_BYTES_MAX)
    assert json.loads(page["lines"][0])["content"] == "é" * 2**19
    assert reply_bytes(page) <= REPLY_BYTES_MAX


async def test_default_pages_stay_small(folded: Folded):
    for _ in range(40):
        await folded.say('"\\\x01' * 700)
    assert reply_bytes(await export(folded)) <= REPLY_BYTES_DEFAULT
    assert len(await all_lines(folded)) == 40
