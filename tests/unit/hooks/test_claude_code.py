"""hooks/claude_code: what Claude Code gives its hooks becomes an event, or nothing."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from convmem.hooks import events
from convmem.hooks.claude_code import CAPTURED, event_of, project_of
from convmem.hooks.events import NotAnEvent

# Every event that Claude Code is known to call hooks for.
EVERY_HOOK = {
    *("SessionStart", "SessionEnd", "Setup", "UserPromptSubmit", "UserPromptExpansion", "PreToolUse", "PostToolUse"),
    *("PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionDenied", "Notification", "Stop"),
    *("StopFailure", "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "TeammateIdle", "TaskCreated"),
    *("TaskCompleted", "ConfigChange", "InstructionsLoaded", "CwdChanged", "FileChanged", "WorktreeCreate"),
    *("WorktreeRemove", "Elicitation", "ElicitationResult"),
}


def hook(name: str, **fields: Any) -> dict[str, Any]:
    common = {"session_id": "s-1", "transcript_path": "/t.jsonl", "cwd": "/", "permission_mode": "default"}
    return {**common, "hook_event_name": name, **fields}


def sent(said: dict[str, Any]) -> dict[str, Any]:
    """What leaves the process."""
    text = events.line(event_of(said), "minted", 7)
    assert text is not None
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_prompt_is_what_the_user_said(tmp_path: Path):
    (tmp_path / "convmem" / ".git").mkdir(parents=True)
    found = sent(hook("UserPromptSubmit", prompt="hello", cwd=str(tmp_path / "convmem")))
    assert found == {
        "event_id": "minted",
        "session_id": "s-1",
        "project": "convmem",
        "directory": str(tmp_path / "convmem"),
        "kind": "prompt",
        "at": 7,
        "content": "hello",
    }
    assert sent(hook("UserPromptSubmit", prompt="hello", prompt_id="p-1"))["event_id"] == "p-1"


def test_a_tool_call_is_its_tool_its_input_and_its_result():
    said = hook(
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "ls -la", "description": "List"},
        tool_response={"stdout": "a.py", "stderr": "", "interrupted": False},
        tool_use_id="toolu_1",
    )
    found = sent(said)
    assert (found["kind"], found["tool"], found["status"], found["event_id"]) == (
        *("tool_call", "Bash", "completed", "toolu_1"),
    )
    assert found["content"] == (
        'Bash {"command":"ls -la","description":"List"} -> {"stdout":"a.py","stderr":"","interrupted":false}'
    )
    said["tool_response"] = "done"
    assert sent(said)["content"].endswith(" -> done")
    del said["tool_response"]
    assert sent(said)["content"] == 'Bash {"command":"ls -la","description":"List"}'


def call(asked: Any, came: Any, **fields: Any) -> str:
    """What is kept of a call of a tool."""
    content: str = sent(hook("PostToolUse", tool_name="Bash", tool_input=asked, tool_response=came, **fields))[
        "content"
    ]
    return content


@pytest.mark.parametrize("length", [250, 300, 301, 480, 10_000])
@pytest.mark.parametrize("come", [lambda text: text, lambda text: {"stdout": text}, lambda text: [{"text": text}]])
def test_of_a_long_result_the_start_is_kept(length: int, come: Any):
    content = call({"command": "make"}, come("line of output\n" * (length // 15) + "y" * 15))
    assert content.startswith('Bash {"command":"make"} -> ')
    assert content.count("line of output") >= min(length // 15, 27)
    assert len(content) == 500 if length > 480 else len(content) <= 500
    assert content.endswith("…") is (len(content) == 500)


def test_a_long_input_does_not_hide_the_result_and_two_results_make_two_texts():
    asked = {"command": "x" * 5_000, "description": "List"}
    first, second = (call(asked, {"stdout": f"{number} failed" + "\n.." * 5_000}) for number in range(2))
    assert first != second
    assert (len(first), first[-1]) == (500, "…")
    assert 180 <= first.index(" -> ") <= 256
    assert '"description":"List"' in first
    assert call(asked, "done").endswith(" -> done")
    assert len(call(asked, "done")) > 400


def test_both_sides_of_an_edit_are_seen():
    content = call({"file_path": "/a/b.py", "old_string": "old " * 500, "new_string": "new " * 500}, "x" * 5_000)
    assert '"file_path":"/a/b.py"' in content
    assert '"old_string":"old old' in content
    assert '"new_string":"new new' in content
    assert content.endswith("xxx…")


def test_a_long_text_does_not_hide_what_stands_behind_it():
    said = hook("PostToolUse", tool_name="Write", tool_input={"content": "x" * 100_000, "file_path": "/a/b.py"})
    content = sent(said)["content"]
    assert '"file_path":"/a/b.py"' in content
    assert len(content) <= 500


@pytest.mark.parametrize(
    "said",
    [
        hook("PostToolUseFailure", tool_name="Bash", tool_input={"command": "false"}, error="exit code 1"),
        hook("PostToolUseFailure", tool_name="Bash", tool_input={"command": "false"}, error_message="exit code 1"),
        hook("PostToolUse", tool_name="Bash", tool_input={"command": "false"}, tool_response={"error": "exit code 1"}),
    ],
)
def test_a_failure_begins_with_what_went_wrong(said: dict[str, Any]):
    found = sent(said)
    assert (found["kind"], found["status"], found["tool"]) == ("error", "error", "Bash")
    assert found["content"] == 'exit code 1: Bash {"command":"false"}'


def test_of_a_long_failure_the_tool_and_what_went_wrong_are_kept():
    asked = {"command": "make " * 500}
    for fields in ({"error": "exit 2: " + "x" * 5_000}, {"error": {"message": "exit 2: " + "x" * 5_000}}):
        content = sent(hook("PostToolUseFailure", tool_name="Bash", tool_input=asked, **fields))["content"]
        assert "exit 2: xxx" in content
        assert ': Bash {"command":"make make' in content
        assert len(content) <= 500
        assert 230 <= content.index(": Bash ") <= 320


def test_a_failure_that_says_only_that_it_is_one_is_one():
    found = sent(hook("PostToolUse", tool_name="Bash", tool_response={"is_error": True, "content": "no such file"}))
    assert found["kind"] == "error"
    assert "no such file" in found["content"]
    assert sent(hook("PostToolUseFailure", tool_name="Bash"))["content"] == "failed: Bash {}"
    assert sent(hook("StopFailure", error="rate_limit", error_details="429"))["content"] == "rate_limit: 429"


def test_a_secret_in_a_long_text_is_gone_before_it_is_cut():
    secret = "ghp_" + "A1b2C3d4E5f6" * 3
    for room in range(1, 60):
        for reach in (110, 230, 485):
            text = "x" * (reach - room) + f" {secret} and more" * 40
            for asked, came in ((text, "y" * 900), ("y" * 900, text), (text, text), (text, None)):
                content = call({"command": asked, "password": "hunter2 and more"}, came)
                assert "A1b2" not in content
                assert "hunter2" not in content


def test_the_table_says_which_hooks_mean_something_and_all_others_mean_nothing():
    assert set(CAPTURED) <= EVERY_HOOK
    for name in (EVERY_HOOK | {"InventedTomorrow"}) - set(CAPTURED):
        assert event_of(hook(name, prompt="x", tool_name="Bash", error="x")) is None, name


@pytest.mark.parametrize("said", [None, 7, [], "text", {}, {"hook_event_name": 7}, {"prompt": "x"}])
def test_what_claude_code_would_not_give_is_refused(said: Any):
    with pytest.raises(NotAnEvent, match="not what Claude Code gives"):
        event_of(said)


@pytest.mark.parametrize("fields", [{"prompt": None}, {"prompt": 7}, {"prompt": "x", "session_id": None}])
def test_a_prompt_without_its_words_or_its_session_is_refused(fields: dict[str, Any]):
    with pytest.raises(NotAnEvent):
        events.line(event_of(hook("UserPromptSubmit", **fields)), "minted", 7)


def test_deep_and_wide_inputs_are_cut_before_they_cost_anything():
    deep: Any = "bottom"
    for _ in range(60):
        deep = {"level": [deep]}
    wide = {f"key{number}": number for number in range(10_000)}
    full: Any = 1
    for _ in range(5):
        full = [full] * 16
    for value in (deep, wide, [wide] * 100, full, "x" * 1_000_000, None, 7):
        begun = time.perf_counter()
        for content in (call(value, "y"), call("y", value), call(value, value)):
            assert content.startswith("Bash ")
            assert len(content) <= 500
        assert time.perf_counter() - begun < 1


def test_the_project_is_the_working_tree_that_the_directory_stands_in(tmp_path: Path):
    (tmp_path / "tree" / "a" / "b").mkdir(parents=True)
    (tmp_path / "tree" / ".git").write_text("gitdir: elsewhere")
    assert project_of(str(tmp_path / "tree" / "a" / "b")) == "tree"
    assert project_of(str(tmp_path / "tree")) == "tree"
    assert project_of(str(tmp_path / "gone" / "away")) == "away"


def test_what_has_no_name_is_no_project():
    assert project_of("/") is None
    assert project_of("/" + "é" * 129) is None


def test_a_directory_that_is_too_long_is_left_out():
    found = sent(hook("UserPromptSubmit", prompt="x", cwd="/" + "x" * 2000))
    assert not {"directory", "project"} & set(found)
    assert "directory" not in sent(hook("UserPromptSubmit", prompt="x", cwd=None))
