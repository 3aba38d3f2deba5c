"""cli/stdio: MCP on stdin and stdout, started as agent programs start it."""

import json
from pathlib import Path

import pytest

from tests.support.commands import ran

pytestmark = pytest.mark.slow


def request(number: int, method: str, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def test_a_write_is_finished_although_stdin_ends_behind_it(tmp_path: Path):
    message = {"session_id": "s", "role": "user", "content": "kept"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        request(1, "initialize", **hello),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n",
        request(2, "tools/call", name="write_message", arguments=message),
    ]
    done = ran("stdio", "--data-dir", str(tmp_path), stdin="".join(lines))
    assert done.returncode == 0, done.stderr
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    message_id = answers[2]["result"]["structuredContent"]["message_id"]
    assert message_id in ran("search", "kept", "--data-dir", str(tmp_path)).stdout


def test_what_is_wrong_goes_to_stderr_and_stdout_stays_empty(tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = ran("stdio", "--data-dir", str(tmp_path / "file"))
    assert (done.returncode, done.stdout) == (15, "")
    assert done.stderr.count("\n") == 1
