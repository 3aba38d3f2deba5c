"""OpenCode as its plugins see it: a node process that loads the compiled plugin, and events in the shapes it sends."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.node import node
from tests.support.source import TESTS

HOST = TESTS / "support" / "opencode_host.mjs"
END_S = 20


class Host:
    """A running host. What it leaves in its state directory is `state`; hooks are called one by one."""

    def __init__(self, plugin: Path, state: Path, url: str, environment: Mapping[str, str], project: Path) -> None:
        self.state = state
        self.took_ms: list[float] = []
        self._process = subprocess.Popen(
            [node(), str(HOST), str(plugin), str(project), str(project)],
            env={"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(state), "CONVMEM_URL": url, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, hook: str, given: Any = None, output: Any = None, times: int = 1) -> Any:
        """Call a hook; return what it left in `output`. AssertionError if it threw, now or behind its back."""
        answer = self._ask({"hook": hook, "input": given, "output": output, "times": times})
        self.took_ms += answer["took_ms"]
        assert answer["failures"] == []
        return answer["output"]

    def say(self, *events: Mapping[str, Any]) -> None:
        """Tell the plugin of events on OpenCode's bus."""
        for event in events:
            self.call("event", {"event": event})

    def settle(self) -> None:
        """Give the plugin what OpenCode gives it when an instance is closed: a last moment."""
        self.call("dispose")

    def end(self) -> None:
        """End the process as OpenCode ends: process.exit, whatever is under way."""
        assert self._process.stdin is not None
        if self._process.poll() is None:
            self._process.stdin.write('{"exit": true}\n')
            self._process.stdin.close()
        assert self._process.wait(END_S) == 0

    def close(self) -> None:
        """Let go of a process that may have ended already."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(END_S)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _ask(self, question: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the host ended with {self._process.wait(END_S)}"
        return json.loads(line)


@contextmanager
def host(
    plugin: Path, state: Path, url: str, *, project: Path = Path("/src/shop"), **environment: str
) -> Iterator[Host]:
    """A host that runs inside the block."""
    running = Host(plugin, state, url, environment, project)
    try:
        yield running
    finally:
        running.close()


def spooled(state: Path) -> list[dict[str, Any]]:
    """The events that wait in the plugin's spool, oldest first."""
    found = []
    for path in sorted((state / "convmem" / "spool").glob("*-opencode.jsonl")):
        beside = path.with_suffix(".state")
        offset = json.loads(beside.read_bytes())["offset"] if beside.exists() else 0
        found += [json.loads(line) for line in path.read_bytes()[offset:].splitlines()]
    return found


def message(message_id: str, session: str, at: int, role: str = "user", parent: str = "") -> dict[str, Any]:
    """message.updated: a message without its words."""
    info = {
        "id": message_id,
        "sessionID": session,
        "role": role,
        "time": {"created": at},
        "agent": "build",
        "model": {"providerID": "anthropic", "modelID": "claude-sonnet-4-5"},
    }
    return {"type": "message.updated", "properties": {"info": info | ({"parentID": parent} if parent else {})}}


def part(message_id: str, session: str, text: str, number: int = 1, **more: Any) -> dict[str, Any]:
    """message.part.updated: some of its words."""
    part_id = f"prt_{message_id}_{number}"
    facts = {"id": part_id, "sessionID": session, "messageID": message_id, "type": "text", "text": text, **more}
    return {"type": "message.part.updated", "properties": {"part": facts}}


def prompt(message_id: str, session: str, at: int, *texts: str) -> list[dict[str, Any]]:
    """Everything that is said of a prompt: the message, its parts, the message again, and the answer's beginning."""
    parts = [part(message_id, session, text, number) for number, text in enumerate(texts)]
    asked = message(message_id, session, at)
    answer = message(message_id.replace("msg_", "msg_answer_"), session, at + 20, "assistant", message_id)
    return [asked, *parts, asked, answer]


def tool(session: str, call_id: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What tool.execute.after is given first."""
    return {"tool": name, "sessionID": session, "callID": call_id, "args": arguments}


def tool_failed(session: str, call_id: str, name: str, error: str) -> dict[str, Any]:
    """message.part.updated of a call that failed; tool.execute.after is not called then."""
    state = {"status": "error", "input": {"filePath": "/src/shop/none"}, "error": error, "time": {"start": 1, "end": 2}}
    facts = {"id": f"prt_{call_id}", "sessionID": session, "messageID": "msg_a", "type": "tool", "callID": call_id}
    return {"type": "message.part.updated", "properties": {"part": {**facts, "tool": name, "state": state}}}


def session_error(session: str, name: str, text: str) -> dict[str, Any]:
    """session.error, as providers' failures come."""
    data = {"message": text, "statusCode": 401, "isRetryable": False}
    return {"type": "session.error", "properties": {"sessionID": session, "error": {"name": name, "data": data}}}


def session_created(session: str, parent: str) -> dict[str, Any]:
    """session.created of a session that an agent opens for another."""
    info = {"id": session, "parentID": parent, "projectID": "p", "directory": "/src/shop", "title": "New session"}
    return {"type": "session.created", "properties": {"info": info}}


def percentile(values: Sequence[float], per_cent: int) -> float:
    """The value that so many per cent do not exceed."""
    return sorted(values)[min(len(values) - 1, len(values) * per_cent // 100)]
