"""Claude Code's transcripts: each line once, replies put together, and only what a person typed is a person's."""

import json
from pathlib import Path
from typing import Any

import pytest

from convmem.importers.claude_code import CLAUDE_CODE
from tests.support.imported import Found, lines, read

TIME = "2025-12-16T01:00:00.000Z"
AT_MS = 1_765_846_800_000


def line(name: str, kind: str, content: Any, parent: str | None = None, **more: Any) -> dict[str, Any]:
    facts = {
        "uuid": name,
        "type": kind,
        "parentUuid": parent,
        "sessionId": "s",
        "timestamp": TIME,
        "cwd": "/srv/things",
    }
    return {**facts, "message": {"role": kind, "content": content, **more.pop("message", {})}, **more}


def of(tmp_path: Path, *values: Any) -> Found:
    return read(CLAUDE_CODE, lines(tmp_path / "s.jsonl", *values))


def test_a_session_is_a_conversation_with_its_time_and_its_project(tmp_path: Path):
    found = of(tmp_path, line("1", "user", "hello"), line("2", "assistant", [{"type": "text", "text": "hi"}], "1"))
    assert found.said == [("user", "hello", ()), ("assistant", "hi", ())]
    first = found.messages[0]
    assert (first.conversation, first.id, first.at, first.project) == ("s", "1", AT_MS, "things")
    (windows,) = of(tmp_path, line("1", "user", "x", cwd="C:\\Users\\me\\things")).messages
    assert windows.project == "things"


def test_lines_of_one_reply_are_one_message_and_what_was_not_finished_is_superseded(tmp_path: Path):
    reply = {"message": {"id": "r1"}}
    found = of(
        tmp_path,
        line("1", "user", "go"),
        line("2", "assistant", [{"type": "thinking", "thinking": "h"}], "1", **reply),
        line("3", "assistant", [{"type": "thinking", "thinking": "hm"}], "2", **reply),
        line("4", "assistant", [{"type": "text", "text": "par"}], "3", **reply),
        line("5", "assistant", [{"type": "text", "text": "partial no more"}], "4", **reply),
        line("6", "assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}], "5", **reply),
        line("7", "user", [{"type": "tool_result", "tool_use_id": "t", "content": "done"}], "6"),
        line(
            "8",
            "assistant",
            [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}],
            "5",
            **reply,
        ),
    )
    assert [(one.id, one.content, one.tags, one.tool_call_id) for one in found.messages] == [
        ("1", "go", (), None),
        ("r1", "hm", ("thinking",), None),
        ("r1/1", "partial no more", (), None),
        ("r1/2", 'Bash\n{"command":"ls"}', ("tool_call",), "t"),
        ("7", "done", ("tool_result",), "t"),
    ]


@pytest.mark.parametrize(
    ("content", "more", "expected"),
    [
        (
            "<system-reminder>be kind</system-reminder>",
            {},
            [("system", "<system-reminder>be kind</system-reminder>", ("hidden",))],
        ),
        (
            "fix it <system-reminder>x</system-reminder>",
            {},
            [("user", "fix it", ()), ("system", "<system-reminder>x</system-reminder>", ("hidden",))],
        ),
        ("<command-name>/clear</command-name>", {}, [("system", "<command-name>/clear</command-name>", ("hidden",))]),
        ("said by the program", {"isMeta": True}, [("system", "said by the program", ("hidden",))]),
        ("a task ended", {"origin": {"kind": "task-notification"}}, [("system", "a task ended", ("hidden",))]),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], {}, [("user", "a\n\nb", ())]),
        (
            [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}], "is_error": True}],
            {},
            [("system", "error: x", ("tool_result",))],
        ),
        (
            [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}],
            {},
            [("user", "[image: image/png]", ())],
        ),
        ([{"type": "hologram", "x": 1}], {}, [("system", '{"type":"hologram","x":1}', ("unknown",))]),
        (
            [5, "plain", None],
            {},
            [("system", "5", ("unknown",)), ("user", "plain", ()), ("system", "null", ("unknown",))],
        ),
        ("what was before", {"isCompactSummary": True}, [("assistant", "what was before", ())]),
        (None, {}, []),
        ([], {}, []),
    ],
)
def test_what_no_person_typed_is_no_persons_text(tmp_path: Path, content: Any, more: dict[str, Any], expected: Any):
    found = of(tmp_path, line("1", "user", content, **more))
    assert found.said == expected
    if "isCompactSummary" in more:
        assert found.messages[0].kind == "summary"


def test_a_prompt_that_was_rewound_is_a_branch_with_all_that_followed(tmp_path: Path):
    found = of(
        tmp_path,
        line("0", "assistant", [{"type": "text", "text": "ready"}]),
        line("1", "user", "first try", "0"),
        line("2", "assistant", [{"type": "text", "text": "old answer"}], "1"),
        line("3", "user", "second try", "0"),
        line("4", "assistant", [{"type": "text", "text": "new answer"}], "3"),
    )
    assert [(text, tags) for _, text, tags in found.said] == [
        ("ready", ()),
        ("second try", ()),
        ("new answer", ()),
        ("first try", ("branch",)),
        ("old answer", ("branch",)),
    ]


def test_results_of_parallel_calls_are_no_branches(tmp_path: Path):
    found = of(
        tmp_path,
        line("1", "user", "go"),
        line("2", "assistant", [{"type": "tool_use", "id": "a", "name": "x", "input": 1}], "1"),
        line("3", "assistant", [{"type": "tool_use", "id": "b", "name": "x", "input": 2}], "2"),
        line("4", "user", [{"type": "tool_result", "tool_use_id": "a", "content": "1"}], "2"),
        line("5", "user", [{"type": "tool_result", "tool_use_id": "b", "content": "2"}], "3"),
        line("6", "assistant", "done", "5"),
    )
    assert not any("branch" in tags for _, _, tags in found.said)
    assert len(found.said) == 6


def test_lines_that_were_copied_count_once(tmp_path: Path):
    history = [line("1", "user", "hello"), line("2", "assistant", "hi", "1")]
    first = lines(tmp_path / "a.jsonl", *history)
    resumed = lines(tmp_path / "b.jsonl", *history, line("3", "user", "again", "2"))
    fork = lines(
        tmp_path / "c.jsonl",
        *[{**one, "sessionId": "fork"} for one in history],
        line("4", "user", "fork", "2", sessionId="fork"),
    )
    found = read(CLAUDE_CODE, first, resumed, fork)
    assert [(one.conversation, one.content) for one in found.messages] == [
        ("s", "hello"),
        ("s", "hi"),
        ("s", "again"),
        ("fork", "fork"),
    ]


def test_sub_agents_are_conversations_of_their_own_behind_their_session(tmp_path: Path):
    session = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
    place = tmp_path / session / "subagents"
    place.mkdir(parents=True)
    agent = lines(place / "agent-a1.jsonl", line("c1", "user", "search", sessionId="x", agentId="a1", isSidechain=True))
    main = lines(tmp_path / f"{session}.jsonl", line("1", "user", "delegate", sessionId=session))
    old = lines(tmp_path / "old.jsonl", line("o1", "user", "inside", sessionId="old", isSidechain=True))
    found = read(CLAUDE_CODE, agent, main, old)
    assert [(one.conversation, one.role, one.tags) for one in found.messages] == [
        (session, "user", ()),
        (f"{session}/a1", "system", ("subagent",)),
        ("old/sidechain", "system", ("subagent",)),
    ]


def test_titles_come_from_the_file_or_from_another_one(tmp_path: Path):
    first = lines(tmp_path / "a.jsonl", line("1", "user", "hello"))
    second = lines(tmp_path / "b.jsonl", {"type": "summary", "summary": "About greetings", "leafUuid": "1"})
    assert read(CLAUDE_CODE, first, second).messages[0].title == "About greetings"
    custom = lines(tmp_path / "c.jsonl", {"type": "custom-title", "customTitle": "Mine", "sessionId": "s"})
    assert read(CLAUDE_CODE, first, second, custom).messages[0].title == "Mine"


def test_old_lines_of_tools_are_calls_and_results(tmp_path: Path):
    found = of(
        tmp_path,
        {
            "type": "tool_use",
            "sessionId": "s",
            "name": "bash",
            "input": {"command": "ls"},
            "uuid": "t",
            "timestamp": TIME,
        },
        {"type": "tool_result", "sessionId": "s", "name": "bash", "output": "a.txt", "uuid": "r", "timestamp": TIME},
    )
    assert found.said == [
        ("assistant", 'bash\n{"command":"ls"}', ("tool_call",)),
        ("system", "a.txt", ("tool_result",)),
    ]


def test_damage_takes_only_what_it_hit_and_unknown_lines_are_counted(tmp_path: Path):
    whole = json.dumps(line("1", "user", "hello"))
    found = of(
        tmp_path,
        "\0" * 300,
        whole + "\0" * 9_000,
        '"string"',
        "42",
        "[1]",
        {"type": "progress", "sessionId": "s"},
        {"type": "user", "sessionId": "s", "uuid": "9", "message": "no object"},
        json.dumps(line("2", "user", "cut"))[:-20],
    )
    assert found.said == [("user", "hello", ())]
    assert found.notes.passed_over["line of type progress"] == 1
    assert found.notes.skipped_count >= 4


def test_lines_without_a_uuid_have_the_same_names_in_a_longer_copy(tmp_path: Path):
    nameless = [{name: one for name, one in line("x", "user", "twice").items() if name != "uuid"}] * 2
    (first, second) = of(tmp_path, *nameless).messages
    longer = of(tmp_path, line("0", "user", "before"), *nameless, line("3", "user", "behind")).messages
    assert [one.id for one in longer[1:3]] == [first.id, second.id]
    assert first.id != second.id
