"""Codex's rollouts: one stream of two, calls joined to their results, and only what a person typed is a person's."""

import json
from pathlib import Path
from typing import Any

import pytest

from convmem.importers.codex import CODEX
from tests.support.imported import Found, lines, read

TIME = "2025-10-01T08:00:00.000Z"
AT_MS = 1_759_305_600_000


def meta(session: str = "s", **more: Any) -> dict[str, Any]:
    payload = {"id": session, "timestamp": TIME, "cwd": "/srv/things", "originator": "codex_cli_rs", **more}
    return {"timestamp": TIME, "type": "session_meta", "payload": payload}


def item(kind: str, at: str = TIME, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at, "type": "response_item", "payload": {"type": kind, **payload}}


def said(role: str, text: str, at: str = TIME) -> dict[str, Any]:
    block = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
    return item("message", at, role=role, content=[block])


def event(kind: str, message: str) -> dict[str, Any]:
    return {"timestamp": TIME, "type": "event_msg", "payload": {"type": kind, "message": message}}


def of(tmp_path: Path, *values: Any) -> Found:
    return read(CODEX, lines(tmp_path / "rollout.jsonl", *values))


def test_what_stands_twice_counts_once_and_events_tell_what_was_typed(tmp_path: Path):
    found = of(
        tmp_path,
        meta(),
        said("user", "<environment_context>\n<cwd>/srv</cwd></environment_context>"),
        said("user", "put in by a hook"),
        said("user", "fix it"),
        event("user_message", "fix it"),
        said("assistant", "done"),
        event("agent_message", "done"),
        said("developer", "be brief"),
    )
    assert found.said == [
        ("system", "<environment_context>\n<cwd>/srv</cwd></environment_context>", ("hidden",)),
        ("system", "put in by a hook", ("hidden",)),
        ("user", "fix it", ()),
        ("assistant", "done", ()),
        ("system", "be brief", ("hidden",)),
    ]
    first = found.messages[0]
    assert (first.conversation, first.at, first.project) == ("s", AT_MS, "things")
    assert found.entries[0].at == AT_MS


@pytest.mark.parametrize("begins", ["<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>"])
def test_without_events_it_is_told_by_how_it_begins(tmp_path: Path, begins: str):
    found = of(tmp_path, meta(), said("user", f"{begins} x"), said("user", "typed"))
    assert [(role, tags) for role, _, tags in found.said] == [("system", ("hidden",)), ("user", ())]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="c"),
            ("assistant", 'shell\n{"command":["ls"]}', ("tool_call",), "c"),
        ),
        (
            item("custom_tool_call", name="apply", input="*** x", call_id="c"),
            ("assistant", "apply\n*** x", ("tool_call",), "c"),
        ),
        (
            item("local_shell_call", action={"command": ["ls"]}, call_id="c"),
            ("assistant", 'local_shell\n{"command":["ls"]}', ("tool_call",), "c"),
        ),
        (item("function_call_output", call_id="c", output="a.txt"), ("system", "a.txt", ("tool_result",), "c")),
        (
            item("function_call_output", call_id="c", output={"content": "ok", "success": True}),
            ("system", "ok", ("tool_result",), "c"),
        ),
        (
            item("function_call_output", call_id="c", output=[{"type": "input_text", "text": "x"}, {"y": 1}]),
            ("system", 'x\n{"y":1}', ("tool_result",), "c"),
        ),
        (
            item("reasoning", summary=[{"type": "summary_text", "text": "hm"}], content=None, encrypted_content="AAAA"),
            ("assistant", "hm", ("thinking",), None),
        ),
        (item("brand_new", x=1), ("system", '{"type":"brand_new","x":1}', ("unknown",), None)),
        (
            item("message", role="user", content=[{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]),
            ("user", "[image: unnamed]", (), None),
        ),
    ],
)
def test_each_kind_of_item_has_its_place(tmp_path: Path, given: Any, expected: Any):
    (one,) = of(tmp_path, meta(), given).messages
    assert (one.role, one.content, one.tags, one.tool_call_id) == expected
    assert "AAAA" not in one.content


def test_a_compaction_is_a_summary_and_what_is_for_the_model_alone_is_none(tmp_path: Path):
    found = of(
        tmp_path,
        meta(),
        {"timestamp": TIME, "type": "compacted", "payload": {"message": "so far", "replacement_history": []}},
        item("ghost_snapshot"),
        {"timestamp": TIME, "type": "turn_context", "payload": {"cwd": "/elsewhere"}},
    )
    (one,) = found.messages
    assert (one.content, one.kind) == ("so far", "summary")
    assert found.notes.passed_over == {"line of type session_meta": 1, "line of type turn_context": 1}


def test_a_fork_brings_its_history_once_and_is_known_by_its_own_id(tmp_path: Path):
    history = [said("user", "hello"), said("assistant", "hi")]
    parent = lines(tmp_path / "a.jsonl", meta("parent"), *history)
    own = meta("fork", forked_from_id="parent", timestamp="2025-10-02T08:00:00Z")
    fork = lines(
        tmp_path / "b.jsonl", own, meta("parent"), *history, said("user", "another way", "2025-10-02T08:00:01Z")
    )
    for paths in ((parent, fork), (fork, parent)):
        found = read(CODEX, *paths)
        assert [(one.conversation, one.content) for one in found.messages] == [
            ("parent", "hello"),
            ("parent", "hi"),
            ("fork", "another way"),
        ]


def test_a_sub_agent_is_tagged_and_its_task_is_no_person_s(tmp_path: Path):
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "s"}}}
    found = of(tmp_path, meta("agent", source=source), said("user", "search"), said("assistant", "found"))
    assert [(role, tags) for role, _, tags in found.said] == [("system", ("subagent",)), ("assistant", ("subagent",))]


def test_older_layouts_are_read(tmp_path: Path):
    bare = of(
        tmp_path,
        {"id": "old", "timestamp": TIME, "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
    )
    assert [(one.conversation, one.role, one.content) for one in bare.messages] == [
        ("old", "user", "hello"),
        ("old", "assistant", "shell\n{}"),
    ]
    flat = of(
        tmp_path,
        {"created_at": "2025-09-10T12:00:00Z", "role": "user", "message": "translate", "model": "m"},
        {
            "created_at": "2025-09-10T12:00:01Z",
            "type": "function_call",
            "function": {"name": "t"},
            "arguments": {"a": 1},
        },
        {"created_at": "2025-09-10T12:00:01Z", "type": "function_result", "name": "t", "result": "hola"},
        {"created_at": "2025-09-10T12:00:02Z", "role": "assistant", "content": "hola"},
    )
    assert flat.said == [
        ("user", "translate", ()),
        ("assistant", 't\n{"a":1}', ("tool_call",)),
        ("system", "hola", ("tool_result",)),
        ("assistant", "hola", ()),
    ]


def test_a_torn_record_behind_which_it_stands_whole_counts_once(tmp_path: Path):
    whole = json.dumps(said("user", "hello"))
    found = of(tmp_path, meta(), whole[:40] + whole, "", whole[:30], said("assistant", "hi"))
    assert [text for _, text, _ in found.said] == ["hello", "hi"]
    assert found.notes.skipped


def test_a_longer_copy_of_a_file_gives_the_same_ids(tmp_path: Path):
    twice = [said("user", "again")] * 2
    short = [one.id for one in of(tmp_path, meta(), *twice).messages]
    longer = [one.id for one in of(tmp_path, meta(), *twice, said("user", "again"), said("assistant", "x")).messages]
    assert longer[:2] == short
    assert len(set(longer)) == 4


def test_two_sessions_that_say_the_same_without_a_time_are_two(tmp_path: Path):
    bare = {"type": "message", "role": "user", "content": "hello"}
    paths = [
        lines(tmp_path / name, {"id": name, "timestamp": TIME, "instructions": None}, bare) for name in ("one", "two")
    ]
    assert [one.conversation for one in read(CODEX, *paths).messages] == ["one", "two"]
