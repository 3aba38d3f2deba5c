"""ChatGPT's export: the active way first, branches behind it, and nothing that no person typed as a person's words."""

from pathlib import Path
from typing import Any

import pytest

from convmem.importers.chatgpt import CHATGPT
from tests.support.imported import Found, read, written

AT = 1_700_000_000


def message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    return {"author": {"role": role, "name": None, "metadata": {}}, "create_time": AT, "content": content, **more}


def conversation(*nodes: tuple[str, str | None, Any], **more: Any) -> dict[str, Any]:
    """A conversation of nodes (name, parent, message), the last one the current one."""
    mapping = {
        name: {
            "id": name,
            "parent": parent,
            "children": [child for child, above, _ in nodes if above == name],
            "message": None if said is None else {"id": f"m-{name}", **said},
        }
        for name, parent, said in nodes
    }
    facts = {"conversation_id": "c", "id": "c", "title": "Title", "create_time": AT, "update_time": AT + 9}
    return {**facts, "mapping": mapping, "current_node": nodes[-1][0] if nodes else None, **more}


def of(tmp_path: Path, *conversations: Any) -> Found:
    return read(CHATGPT, written(tmp_path / "conversations.json", list(conversations)))


PLAIN = conversation(("client-created-root", None, None), ("a", "client-created-root", message("user", "hello")))


def test_the_active_way_comes_first_and_what_was_replaced_is_a_branch(tmp_path: Path):
    found = of(
        tmp_path,
        conversation(
            ("r", None, None),
            ("q", "r", message("user", "question")),
            ("old", "q", message("assistant", "superseded")),
            ("more", "old", message("user", "and then?")),
            ("new", "q", message("assistant", "answer")),
        ),
    )
    assert found.said == [
        ("user", "question", ()),
        ("assistant", "answer", ()),
        ("assistant", "superseded", ("branch",)),
        ("user", "and then?", ("branch",)),
    ]
    (entry,) = found.entries
    assert (entry.at, entry.title) == (AT * 1000, "Title")
    assert {(one.conversation, one.title, one.at) for one in found.messages} == {("c", "Title", AT * 1000)}
    assert [one.id for one in found.messages] == ["m-q", "m-new", "m-old", "m-more"]


def test_without_a_current_node_it_is_the_newest_leaf_and_children_come_from_parents(tmp_path: Path):
    value = conversation(
        ("q", None, message("user", "q")),
        ("a", "q", message("assistant", "late", create_time=AT + 5)),
        ("b", "q", message("assistant", "early", create_time=AT + 1)),
    )
    for wrong in (None, "nowhere", 5):
        value["current_node"] = wrong
        for node in value["mapping"].values():
            node.pop("children", None)
            node.pop("id", None)
        assert [text for _, text, _ in of(tmp_path, value).said] == ["q", "late", "early"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (message("system", "be kind"), ("system", "be kind", ("hidden",))),
        (message("user", "x", metadata={"is_visually_hidden_from_conversation": True}), ("system", "x", ("hidden",))),
        (
            message("user", {"content_type": "user_editable_context", "user_profile": "P", "user_instructions": "I"}),
            ("system", "P\nI", ("hidden",)),
        ),
        (message("assistant", "print(1)", recipient="python"), ("assistant", "python\nprint(1)", ("tool_call",))),
        (
            message("assistant", {"content_type": "code", "language": "x", "text": "q()"}, recipient="web.run"),
            ("assistant", "web.run\nq()", ("tool_call",)),
        ),
        (message("assistant", {"content_type": "code", "language": "x", "text": "q()"}), ("assistant", "q()", ())),
        (message("tool", {"content_type": "execution_output", "text": "1"}), ("system", "1", ("tool_result",))),
        (
            message("tool", {"content_type": "system_error", "name": "E", "text": "no"}),
            ("system", "error: E: no", ("tool_result",)),
        ),
        (
            message("tool", {"content_type": "tether_quote", "title": "T", "url": "U", "text": "W"}),
            ("system", "T\nU\nW", ("tool_result",)),
        ),
        (
            message("tool", {"content_type": "tether_browsing_display", "result": "R", "summary": ""}),
            ("system", "R", ("tool_result",)),
        ),
        (
            message("tool", {"content_type": "computer_output", "screenshot": {"asset_pointer": "sediment://s1"}}),
            ("system", "[image: s1]", ("tool_result",)),
        ),
        (
            message("tool", {"content_type": "citable_code_output", "output_str": "O"}),
            ("system", "O", ("tool_result",)),
        ),
        (
            message("assistant", {"content_type": "thoughts", "thoughts": [{"summary": "S", "content": "C"}, 5]}),
            ("assistant", "S\nC", ("thinking",)),
        ),
        (
            message("assistant", {"content_type": "reasoning_recap", "content": "12 s"}),
            ("assistant", "12 s", ("thinking",)),
        ),
        (message("assistant", "so\ue200cite\ue202t1\ue201 it is【1†src】."), ("assistant", "so it is.", ())),
        (
            message("user", {"content_type": "new_kind", "x": 1}),
            ("user", '{"content_type":"new_kind","x":1}', ("unknown",)),
        ),
        ({**message("user", "no facts"), "metadata": None, "author": None}, ("system", "no facts", ("hidden",))),
        (message("user", "content as a text") | {"content": "a text"}, ("user", "a text", ())),
        (
            message(
                "user",
                {
                    "content_type": "multimodal_text",
                    "parts": [
                        "look",
                        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f1"},
                        {"content_type": "audio_transcription", "text": "spoken"},
                        {
                            "content_type": "real_time_user_audio_video_asset_pointer",
                            "audio_asset_pointer": {"asset_pointer": "sediment://a1"},
                        },
                        None,
                        "",
                    ],
                },
                metadata={"attachments": [{"name": "in.txt"}, {"name": 5}, "x"]},
            ),
            ("user", "look\n\n[image: f1]\n\nspoken\n\n[audio: a1]\n\n[file: in.txt]", ()),
        ),
    ],
)
def test_each_kind_of_content_has_its_place(tmp_path: Path, said: Any, expected: Any):
    assert of(tmp_path, conversation(("r", None, None), ("a", "r", said))).said == [expected]


def test_a_result_answers_the_call_before_it(tmp_path: Path):
    found = of(
        tmp_path,
        conversation(
            ("call", None, message("assistant", "{}", recipient="browser")),
            ("result", "call", message("tool", "found")),
        ),
    )
    assert [one.tool_call_id for one in found.messages] == ["m-call", "m-call"]


def test_what_stands_between_texts_and_is_not_known_is_a_record_of_its_own(tmp_path: Path):
    parts = ["before", {"content_type": "hologram", "x": 1}, "behind"]
    found = of(
        tmp_path, conversation(("a", None, message("user", {"content_type": "multimodal_text", "parts": parts})))
    )
    assert [(one.id, one.content, one.tags) for one in found.messages] == [
        ("m-a", "before", ()),
        ("m-a/1", '{"content_type":"hologram","x":1}', ("unknown",)),
        ("m-a/2", "behind", ()),
    ]


@pytest.mark.parametrize("parts", [[], [""], [None], "alone", None, [" \n"]])
def test_what_says_nothing_makes_no_record(tmp_path: Path, parts: Any):
    found = of(tmp_path, conversation(("a", None, message("user", {"content_type": "text", "parts": parts}))))
    assert [text for _, text, _ in found.said] == (["alone"] if parts == "alone" else [])
    assert found.notes.passed_over == ({} if parts == "alone" else {"empty conversation": 1})


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"create_time": "1699543575.6"}, 1_699_543_575_600),
        ({"create_time": None}, AT * 1000),
        ({}, AT * 1000),
        ({"create_time": "soon"}, AT * 1000),
    ],
)
def test_a_time_may_be_a_text_null_or_missing(tmp_path: Path, times: dict[str, Any], expected: int):
    value = {name: one for name, one in PLAIN.items() if name != "create_time"} | times
    (entry,) = of(tmp_path, value).entries
    assert entry.at == expected


def test_one_bad_conversation_loses_no_other_and_is_named(tmp_path: Path):
    without = {"title": "No messages", "conversation_id": "n", "create_time": 1}
    forgotten = {**PLAIN, "title": "Secret", "conversation_id": "f", "is_do_not_remember": True}
    nameless = {**PLAIN, "title": "Nameless", "conversation_id": None, "id": ""}
    odd = conversation(("a", None, message("user", "kept")), conversation_id="odd")
    odd["mapping"]["b"] = 5
    odd["mapping"]["c"] = {"parent": "a", "message": "text"}
    odd["mapping"]["d"] = {"parent": ["a"], "children": "x", "message": {"content": 7, "author": "x"}}
    found = of(tmp_path, without, forgotten, nameless, odd, PLAIN, {"setting": 1})
    assert [text for _, text, _ in found.said] == ["kept", "hello"]
    assert {skip.where.rpartition(": ")[2]: skip.why for skip in found.notes.skipped}.keys() >= {
        "No messages",
        "Secret",
        "Nameless",
    }
    assert found.notes.passed_over["object that is no conversation"] == 1


def test_circles_and_chains_of_any_depth_end(tmp_path: Path):
    said = [str(number) for number in range(20_000)]
    value = conversation(("n0", None, message("user", "0")), current_node="n19999")
    # Made by hand: looking for the children of each takes as long as there are pairs.
    for one in said[1:]:
        value["mapping"][f"n{one}"] = {"parent": f"n{int(one) - 1}", "message": message("user", one)}
    assert [text for _, text, _ in of(tmp_path, value).said] == said
    circle = conversation(("a", "b", message("user", "a")), ("b", "a", message("user", "b")))
    assert sorted(text for _, text, _ in of(tmp_path, circle).said) == ["a", "b"]


def test_split_files_are_one_export_and_the_newer_of_two_counts(tmp_path: Path):
    first = written(tmp_path / "conversations-000.json", [PLAIN, {**PLAIN, "conversation_id": "d"}])
    newer = conversation(("a", None, message("user", "edited")), update_time=AT + 99)
    second = written(tmp_path / "conversations-001.json", [newer])
    found = read(CHATGPT, first, second)
    assert sorted(text for _, text, _ in found.said) == ["edited", "hello"]


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: [one], lambda one: {"conversations": [one]}])
def test_one_object_an_array_and_a_wrapped_one_are_known(tmp_path: Path, wrap: Any):
    found = read(CHATGPT, written(tmp_path / "x", wrap(PLAIN)))
    assert [text for _, text, _ in found.said] == ["hello"]


def test_ids_stay_when_a_message_comes_twice_or_has_none(tmp_path: Path):
    value = conversation(
        ("a", None, message("user", "1")), ("b", "a", message("user", "2")), ("c", "b", message("user", "3"))
    )
    value["mapping"]["b"]["message"]["id"] = "m-a"
    value["mapping"]["c"]["message"]["id"] = None
    assert [one.id for one in of(tmp_path, value).messages] == ["m-a", "m-a@b", "c"]
