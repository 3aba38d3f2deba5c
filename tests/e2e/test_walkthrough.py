"""The README and the first steps, executed: every command and every snippet, in order, against a real daemon."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mcp import Client

from tests.support.commands import Daemon, command, daemon, ran
from tests.support.pages import blocks, page, section

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory: the daemon runs on its real defaults but for the port."""
    return tmp_path


@pytest.fixture
def running(home: Path) -> Iterator[Daemon]:
    with daemon(environment={"HOME": str(home)}) as started:
        yield started


def curl(line: str) -> str:
    """Run a curl command line; where there is no curl, send what it says."""
    words = shlex.split(line)
    assert words[:2] == ["curl", "-sS"]
    if shutil.which("curl"):
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout
    url, _, header, _, body = words[2:]
    return httpx.post(url, headers=[tuple(header.split(": "))], content=body, trust_env=False).text


def snippet(text: str) -> str:
    """Run a Python snippet in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_daemon_says_in_one_line_where_it_is_and_who_gets_in(running: Daemon, home: Path):
    assert running.line.count("\n") == 1
    for word in (running.url, "no token", str(home), "tools"):
        assert word in running.line


def test_the_readme_connects(running: Daemon, home: Path):
    text = section(page("README.md"), "Connect").replace("127.0.0.1:8484", running.address)
    written = json.loads(curl(blocks(text, "sh")[0].strip()))
    message_id = written["result"]["structuredContent"]["message_id"]
    assert snippet(blocks(text, "python")[0]).strip() == message_id
    found, sessions, shown, wrote = (ran_line(line, home) for line in blocks(text, "sh")[1].splitlines())
    assert message_id in found
    assert "The cat is called Miso." in found
    assert "first" in sessions
    assert shown.endswith("The cat is called Miso.\n")
    assert "style" in wrote
    assert "Short answers, metric units." in ran_line(".venv/bin/convmem profile", home)


def ran_line(line: str, home: Path) -> str:
    """Run one `.venv/bin/convmem …` line; return what it printed."""
    program, *arguments = shlex.split(line)
    assert program == ".venv/bin/convmem"
    done = ran(*arguments, environment={"HOME": str(home)})
    assert (done.returncode, done.stderr) == (0, ""), line
    return done.stdout


async def test_the_entry_for_agent_programs_is_where_mcp_is_spoken(running: Daemon):
    (entry,) = (json.loads(block) for block in blocks(page("README.md"), "json"))
    url = entry["mcpServers"]["convmem"]["url"].replace("127.0.0.1:8484", running.address)
    async with Client(url) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} >= {"write_message", "search_messages"}


def test_the_first_steps_work_in_their_order(running: Daemon, home: Path):
    text = page("quickstart.md").replace("127.0.0.1:8484", running.address)
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language == "python":
            snippet(block)
        elif block.startswith("curl"):
            assert json.loads(curl(block.strip()))["result"]["isError"] is False
        else:
            printed = [ran_line(line, home) for line in block.splitlines()]
            assert all("tomatoes" in text for text in printed)


def test_what_was_written_is_there_after_a_kill_and_a_start(home: Path):
    environment = {"HOME": str(home)}
    line = blocks(section(page("README.md"), "Connect"), "sh")[0].strip()
    with daemon(environment=environment) as first:
        curl(line.replace("127.0.0.1:8484", first.address))
        first.kill()
    with daemon(environment=environment) as second:
        assert "Miso" in ran_line(".venv/bin/convmem search Miso", home)
        assert second.stop() == 0
    assert "Miso" in ran_line(".venv/bin/convmem search Miso", home), "without a daemon the verb opens the store itself"


def test_the_installed_command_is_this_program():
    script = Path(sys.executable).parent / "convmem"
    line = [str(script), "--version"] if script.exists() else command("--version")
    assert subprocess.run(line, capture_output=True, text=True, timeout=30).stdout == ran("--version").stdout
