"""Claude.ai's export: the words are in the blocks, thinking and tools stand apart, edited turns are branches."""

from pathlib import Path
from typing import Any

import pytest

from convmem.importers.claude_ai import CLAUDE_AI
from tests.support.imported import Found, read, written

TIME = "2025-01-05T20:55:32.499880+00:00"
AT_MS = 1_736_110_532_499


def message(name: str, sender: str, content: Any, **more: Any) -> dict[str, Any]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return {"uuid": name, "sender": sender, "text": "", "content": content, "created_at": TIME, **more}


def conversation(*messages: Any, **more: Any) -> dict[str, Any]:
    facts = {"uuid": "c", "name": "Title", "created_at": TIME, "updated_at": TIME, "account": {"uuid": "me"}}
    return {**facts, "chat_messages": list(messages), **more}


def of(tmp_path: Path, *conversations: Any) -> Found:
    return read(CLAUDE_AI, written(tmp_path / "conversations.json", list(conversations)))


def test_a_flat_conversation_comes_in_its_order_with_what_it_is_known_by(tmp_path: Path):
    found = of(tmp_path, conversation(message("1", "human", "hello"), message("2", "assistant", "hi")))
    assert found.said == [("user", "hello", ()), ("assistant", "hi", ())]
    first = found.messages[0]
    assert (first.conversation, first.id, first.account, first.title, first.at) == ("c", "1", "me", "Title", AT_MS)
    assert found.entries[0].at == AT_MS


BLOCKS = [
    {"type": "thinking", "thinking": "hm", "summaries": [], "signature": "x"},
    {"type": "text", "text": "one", "citations": []},
    {"type": "text", "text": "two"},
    {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "x"}},
    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "found"}, {"type": "image"}]},
    {"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": True},
    {"type": "token_budget"},
    {"type": "voice_note", "text": "spoken"},
    {"type": "brand_new", "x": [1]},
]


def test_each_kind_of_block_has_its_place(tmp_path: Path):
    found = of(tmp_path, conversation(message("m", "assistant", BLOCKS)))
    assert [(one.id, one.role, one.content, one.tags, one.tool_call_id) for one in found.messages] == [
        ("m", "assistant", "hm", ("thinking",), None),
        ("m/1", "assistant", "one\n\ntwo", (), None),
        ("m/2", "assistant", 'search\n{"q":"x"}', ("tool_call",), "t1"),
        ("m/3", "system", "found\n[image: unnamed]", ("tool_result",), "t1"),
        ("m/4", "system", "error: no", ("tool_result",), "t2"),
        ("m/5", "assistant", "spoken", (), None),
        ("m/6", "assistant", '{"type":"brand_new","x":[1]}', ("unknown",), None),
    ]
    assert found.notes.passed_over == {"token_budget": 1}
    assert found.notes.unknown == {"brand_new": 1}


@pytest.mark.parametrize(
    ("content", "text", "expected"),
    [
        ([{"type": "text", "text": "in the block"}], "", "in the block"),
        ([{"type": "text", "text": "in the block"}], "This block is not supported", "in the block"),
        ([], "in the text", "in the text"),
        (None, "in the text", "in the text"),
        ("content as a text", "", "content as a text"),
        ([{"type": "text", "text": None}], "fallback", "fallback"),
        (None, 42, "42"),
        ([None, "plain"], "", "plain"),
    ],
)
def test_the_words_are_found_wherever_they_are(tmp_path: Path, content: Any, text: Any, expected: str):
    value = message("m", "human", [])
    assert of(tmp_path, conversation({**value, "content": content, "text": text})).said == [("user", expected, ())]


def test_what_was_pasted_is_part_of_the_message(tmp_path: Path):
    attachments = [{"file_name": "", "extracted_content": "pasted"}, {"file_name": "a.txt", "extracted_content": ""}, 5]
    files = [{"file_name": "b.png"}, {"file_uuid": "u1"}]
    found = of(tmp_path, conversation(message("m", "human", "see", attachments=attachments, files=files)))
    assert found.said == [
        ("user", "see\n\n[file: pasted text]\npasted\n\n[file: a.txt]\n\n[file: b.png]\n\n[file: u1]", ())
    ]


def test_an_edited_turn_is_a_branch_where_the_export_says_so(tmp_path: Path):
    messages = [
        message("q1", "human", "first try", parent_message_uuid="00000000"),
        message("a1", "assistant", "old answer", parent_message_uuid="q1"),
        message("a2", "assistant", "new answer", parent_message_uuid="q1"),
        message("q2", "human", "thanks", parent_message_uuid="a2"),
    ]
    expected = [
        ("user", "first try", ()),
        ("assistant", "new answer", ()),
        ("user", "thanks", ()),
        ("assistant", "old answer", ("branch",)),
    ]
    assert of(tmp_path, conversation(*messages)).said == expected
    other = of(tmp_path, conversation(*messages, current_leaf_message_uuid="a1")).said
    assert [text for _, text, tags in other if not tags] == ["first try", "old answer"]


def test_the_rare_shape_of_projects_is_read(tmp_path: Path):
    blocks = {"contentBlocks": [{"type": "text", "text": "inside"}]}
    value = {"uuid": "c", "name": "n", "messages": [{"uuid": "m", "sender": "human", "content": blocks}]}
    assert of(tmp_path, value).said == [("user", "inside", ())]


def test_one_bad_conversation_loses_no_other_and_is_named(tmp_path: Path):
    found = of(
        tmp_path,
        {"uuid": "x", "name": "No messages", "summary": "", "created_at": TIME},
        conversation(message("1", "human", "a"), uuid=None),
        conversation(5, None, message("1", "human", "kept"), {"sender": ["x"], "content": {"a": 1}}, uuid="odd"),
        {"email_address": "users.json"},
    )
    assert ("user", "kept", ()) in found.said
    assert {skip.why for skip in found.notes.skipped} >= {
        "the conversation has no messages",
        "the conversation has no id",
        "message 1 is no object",
    }


def test_projects_and_users_are_none_of_it(tmp_path: Path):
    for value in (
        [{"uuid": "p", "name": "project", "docs": []}],
        [{"uuid": "u", "full_name": "x"}],
        {"messages": [{"role": "user"}]},
    ):
        assert not read(CLAUDE_AI, written(tmp_path / "x.json", value)).entries


def test_messages_without_ids_or_with_one_twice_stay_apart(tmp_path: Path):
    nameless = {name: one for name, one in message("x", "human", "1").items() if name != "uuid"}
    found = of(tmp_path, conversation(nameless, message("m", "human", "2"), message("m", "human", "3")))
    assert [one.id for one in found.messages] == ["message 0", "m", "m@2"]
