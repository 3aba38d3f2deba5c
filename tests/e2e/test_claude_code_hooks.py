"""The hooks of Claude Code exactly as the example has them: run by a shell, fed what Claude Code feeds them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import PROGRAM
from tests.support.daemons import Daemon, daemon
from tests.support.source import REPOSITORY

pytestmark = pytest.mark.slow

EXAMPLE = REPOSITORY / "contrib" / "claude-code" / "settings.example.json"
SETTINGS = json.loads(EXAMPLE.read_text(encoding="utf-8"))["hooks"]
SECRET = "ghp_" + "FAKE" * 9
WAIT_S = 20


class ClaudeCode:
    """What runs hooks: a session in a project, in an environment that has `convmem` or has not."""

    def __init__(self, folder: Path, data_dir: Path, *, program: str | None = None) -> None:
        self.project = folder / "shop"
        (self.project / ".git").mkdir(parents=True)
        commands = folder / "bin"
        commands.mkdir()
        for name in ("sh", "nohup"):
            (commands / name).symlink_to(
                Path("/usr/bin") / name if (Path("/usr/bin") / name).exists() else f"/bin/{name}"
            )
        if program is not None:
            (commands / "convmem").write_text(program, encoding="utf-8")
            (commands / "convmem").chmod(0o755)
        self.state = folder / "state"
        self.environment = {
            "PATH": str(commands),
            "HOME": str(folder),
            "XDG_STATE_HOME": str(self.state),
            "CONVMEM_DATA_DIR": str(data_dir),
            "CLAUDE_PROJECT_DIR": str(self.project),
        }

    def fire(self, event: str, matching: str = "", **more: Any) -> str:
        """Run all hooks of an event that match, as Claude Code does; return what they printed for the model."""
        said = {
            "session_id": "3f0c9a52-7d0e-4c39-9f8e-1f6f0b2b9c11",
            "transcript_path": str(self.project / "transcript.jsonl"),
            "cwd": str(self.project),
            "permission_mode": "default",
            "hook_event_name": event,
            **more,
        }
        printed = ""
        for matcher in SETTINGS[event]:
            if matcher.get("matcher", "").isidentifier() and matching not in matcher["matcher"].split("|"):
                continue
            for hook in matcher["hooks"]:
                printed += self._run(hook["command"], json.dumps(said, ensure_ascii=False), hook["timeout"])
        return printed

    def _run(self, command: str, said: str, timeout_s: int) -> str:
        ran = subprocess.run(
            ["/bin/sh", "-c", command],
            input=said,
            env=self.environment,
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr == ""
        return ran.stdout


def installed() -> str:
    """A `convmem` as an installation puts it on the path."""
    return f"#!{sys.executable}\n{PROGRAM}\n"


@pytest.fixture
def claude(tmp_path: Path) -> ClaudeCode:
    return ClaudeCode(tmp_path, tmp_path / "data", program=installed())


def until(is_so: Callable[[], object]) -> None:
    """Look until it is so."""
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def a_session(claude: ClaudeCode) -> None:
    """A prompt, a call that succeeds, one that fails, and the failure of a turn: none of it prints anything."""
    bash = {"command": "git status --short", "description": "Shows what changed"}
    response = {"stdout": " M cart.py", "stderr": "", "interrupted": False, "isImage": False}
    missing = {"file_path": str(claude.project / "none.py")}
    printed = [
        claude.fire("UserPromptSubmit", prompt="カートの合計を直して、ขอบคุณ"),
        claude.fire(
            "PostToolUse", "Bash", tool_name="Bash", tool_input=bash, tool_response=response, tool_use_id="t_1"
        ),
        claude.fire(
            "PostToolUseFailure",
            "Read",
            tool_name="Read",
            tool_input=missing,
            tool_use_id="t_2",
            error="File does not exist.",
            is_interrupt=False,
        ),
        claude.fire("StopFailure", error="rate_limit", error_details="429 Too Many Requests"),
    ]
    assert printed == [""] * 4


def kept(running: Daemon) -> list[dict[str, Any]]:
    """What the daemon holds of the session, oldest first."""
    return running.client("messages").history("3f0c9a52-7d0e-4c39-9f8e-1f6f0b2b9c11")


def told(running: Daemon, tool: str, **arguments: Any) -> None:
    answer = running.client("memory").request("tools/call", {"name": tool, "arguments": arguments})
    assert not answer["result"].get("isError"), answer


def test_prompts_tool_calls_and_errors_are_stored(tmp_path, claude):
    with daemon(tmp_path / "data") as running:
        a_session(claude)
        until(lambda: len(kept(running)) == 4)
        prompt, call, failure, turn = sorted(kept(running), key=lambda each: each["timestamp"])
        assert [each["capture"]["kind"] for each in (prompt, call, failure, turn)] == [
            *("prompt", "tool_call", "error", "error"),
        ]
        assert prompt["content"] == "カートの合計を直して、ขอบคุณ"
        assert [prompt["role"], call["role"], failure["role"]] == ["user", "assistant", "system"]
        assert prompt["metadata"]["project"] == "shop"
        assert prompt["capture"]["directory"] == str(claude.project)
        assert "git status --short" in call["content"]
        assert [call["capture"]["tool"], call["capture"]["event_id"]] == ["Bash", "t_1"]
        assert "File does not exist." in failure["content"]
        assert "429 Too Many Requests" in turn["content"]


def test_a_session_begins_with_what_is_known_and_with_nothing_where_nothing_is(tmp_path, claude):
    with daemon(tmp_path / "data") as running:
        assert claude.fire("SessionStart", "startup", source="startup", model="claude-sonnet-4-5") == ""
        told(running, "remember", category="coding_pref", key="indentation", value="two spaces", project="shop")
        told(running, "remember", category="coding_pref", key="secret", value="of another project", project="other")
        told(running, "save_lesson", situation="releasing", mistake="no tag", correction="tag first")
        begun = claude.fire("SessionStart", "startup", source="startup", model="claude-sonnet-4-5")
        assert "two spaces" in begun
        assert "tag first" in begun
        assert "of another project" not in begun
        assert len(begun) <= 3_000
        assert claude.fire("PreCompact", trigger="auto", custom_instructions="") == begun
        assert claude.fire("SessionStart", "compact", source="compact") == begun


def test_a_project_whose_name_a_shell_would_take_apart_is_one_argument(tmp_path):
    folder = tmp_path / "a $(exit 3) 'b\" *"
    claude = ClaudeCode(folder, tmp_path / "data", program=installed())
    with daemon(tmp_path / "data") as running:
        told(running, "remember", category="other", key="greeting", value="a bow")
        assert "a bow" in claude.fire("SessionStart", "startup", source="startup")
        del claude.environment["CLAUDE_PROJECT_DIR"]
        assert "a bow" in claude.fire("SessionStart", "startup", source="startup")


def test_a_daemon_on_another_machine_is_found_by_its_address_and_token(tmp_path, claude):
    with daemon(tmp_path / "there", environment={"CONVMEM_HTTP_TOKEN": "t-1"}) as running:
        address = running.url.removesuffix("/mcp")
        claude.environment |= {"CONVMEM_URL": address, "CONVMEM_TOKEN": "t-1"}
        client = running.client("memory", authorization="Bearer t-1")
        stated = {"category": "other", "key": "greeting", "value": "a bow"}
        assert "error" not in client.request("tools/call", {"name": "remember", "arguments": stated})
        assert "a bow" in claude.fire("SessionStart", "startup", source="startup")
        claude.fire("UserPromptSubmit", prompt="hello from afar")
        recent = {"name": "get_recent_interactions", "arguments": {}}
        until(lambda: "hello from afar" in json.dumps(client.request("tools/call", recent)))
        claude.environment["CONVMEM_TOKEN"] = "wrong"
        assert claude.fire("SessionStart", "startup", source="startup") == ""


def test_while_the_daemon_is_away_hooks_are_silent_and_the_end_of_a_session_delivers(tmp_path, claude):
    a_session(claude)
    assert claude.fire("SessionStart", "startup", source="startup") == ""
    waiting = list((claude.state / "convmem" / "spool").glob("*.jsonl"))
    assert waiting
    assert sum(path.read_bytes().count(b"\n") for path in waiting) == 4
    with daemon(tmp_path / "data") as running:
        assert claude.fire("SessionEnd", reason="other") == ""
        until(lambda: len(kept(running)) == 4)
        contents = [each["content"] for each in kept(running)]
        assert contents[0] == "カートの合計を直して、ขอบคุณ", "what came first was delivered first"


def test_no_secret_of_a_session_reaches_a_file(tmp_path, claude):
    claude.fire("UserPromptSubmit", prompt=f"push with {SECRET} please")
    with daemon(tmp_path / "data") as running:
        claude.fire("UserPromptSubmit", prompt=f"once more with {SECRET} please")
        claude.fire("SessionEnd", reason="other")
        until(lambda: len(kept(running)) == 2)
        assert all("please" in each["content"] for each in kept(running))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "convmem"]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


PROGRAMS = {
    "is not installed": None,
    "is broken": "#!/bin/sh\necho broken; echo broken >&2; exit 3\n",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_convmem_that_is_missing_or_broken_does_not_disturb(tmp_path, what):
    claude = ClaudeCode(tmp_path, tmp_path / "data", program=PROGRAMS[what])
    a_session(claude)
    assert claude.fire("SessionEnd", reason="logout") == ""
    for event in ("SessionStart", "PreCompact"):
        printed = claude.fire(event, "startup")
        assert printed == ("" if PROGRAMS[what] is None else "broken\n")


def test_hooks_do_not_keep_their_host_waiting_for_what_they_leave_behind(tmp_path, claude):
    """A host reads until the pipe closes, so nobody may inherit it."""
    begun = time.monotonic()
    claude.fire("SessionEnd", reason="other")
    claude.fire("UserPromptSubmit", prompt="hello")
    assert time.monotonic() - begun < WAIT_S
    assert os.listdir(claude.state / "convmem" / "spool")
