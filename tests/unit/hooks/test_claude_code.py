"""hooks/claude_code: what Claude Code gives its hooks becomes an event, or nothing."""

import json
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


def test_a_tool_call_is_its_tool_its_input_and_a_short_result():
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
    said["tool_response"] = {"stdout": "x" * 301}
    assert sent(said)["content"] == 'Bash {"command":"ls -la","description":"List"}'
    said["tool_response"] = "done"
    assert sent(said)["content"].endswith(" -> done")


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


def test_a_failure_that_says_only_that_it_is_one_is_one():
    found = sent(hook("PostToolUse", tool_name="Bash", tool_response={"is_error": True, "content": "no such file"}))
    assert found["kind"] == "error"
    assert "no such file" in found["content"]
    assert sent(hook("PostToolUseFailure", tool_name="Bash"))["content"] == "failed: Bash {}"
    assert sent(hook("StopFailure", error="rate_limit", error_details="429"))["content"] == "rate_limit: 429"


def test_a_secret_in_a_long_text_is_gone_before_it_is_cut():
    command = "x" * 385 + " ghp_" + "A1b2C3d4E5f6" * 3
    found = sent(hook("PostToolUse", tool_name="Bash", tool_input={"command": command, "password": "hunter2 and more"}))
    assert "A1b2" not in found["content"]
    assert "hunter2" not in found["content"]


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
    for value in (deep, wide, [wide] * 100, "x" * 1_000_000, None, 7):
        content = sent(hook("PostToolUse", tool_name="T", tool_input=value))["content"]
        assert content.startswith("T ")
        assert len(content) <= 500


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
