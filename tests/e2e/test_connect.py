"""What `convmem connect` writes leads to the daemon: read as a program reads it, called by the official client."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from convmem.connecting.clients import CLIENTS
from tests.support.commands import Daemon, daemon, ran
from tests.support.source import REPOSITORY

pytestmark = pytest.mark.slow
BY_URL = [name for name, client in CLIENTS.items() if client.speaks_http]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Daemon, dict[str, str]]]:
    """A daemon that asks for a token, and the environment of the person who has it."""
    environment = {"HOME": str(tmp_path)}
    token = ran("token", "create", "laptop", environment=environment).stdout.strip()
    with daemon(environment=environment) as running:
        yield running, {**environment, "CONVMEM_BIND": running.address, "CONVMEM_TOKEN": token}


def entry(home: Path, name: str) -> Any:
    (path,) = [path for path in home.rglob("*") if path.name in NAMES[name]]
    text = path.read_text("utf-8")
    value = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    for key in CLIENTS[name].paths[0]:
        value = value[key]
    return value


NAMES = {
    "claude-code": {".claude.json"},
    "claude-desktop": {"claude_desktop_config.json"},
    "opencode": {"opencode.json"},
    "codex": {"config.toml"},
    "cursor": {"mcp.json"},
}


def headers(found: Any, environment: dict[str, str]) -> dict[str, str]:
    """The headers that a program would send: references filled from its environment."""
    if "bearer_token_env_var" in found:
        return {"Authorization": f"Bearer {environment[found['bearer_token_env_var']]}"}
    reference = re.compile(r"\$?\{(?:env:)?([A-Z_]+)\}")
    return {
        name: reference.sub(lambda seen: environment[seen[1]], value)
        for name, value in found.get("headers", {}).items()
    }


@pytest.mark.parametrize("name", BY_URL)
async def test_the_entry_leads_to_the_tools_of_its_profile(
    tmp_path: Path, guarded: tuple[Daemon, dict[str, str]], name: str
):
    _, environment = guarded
    connected = ran("connect", name, "--profile", "memory", environment=environment)
    assert connected.returncode == 0, connected.stderr
    found = entry(tmp_path, name)
    assert environment["CONVMEM_TOKEN"] not in json.dumps(found)
    async with (
        httpx2.AsyncClient(headers=headers(found, environment)) as http,
        Client(streamable_http_client(found["url"], http_client=http)) as client,
    ):
        tools = {tool.name for tool in (await client.list_tools()).tools}
    assert "recall" in tools
    assert "write_message" not in tools


@pytest.mark.parametrize("name", CLIENTS)
async def test_the_command_speaks_mcp_from_anywhere(tmp_path: Path, name: str):
    environment = {"HOME": str(tmp_path)}
    connected = ran("connect", name, "--stdio", "--data-dir", str(tmp_path / "d a"), environment=environment)
    assert connected.returncode == 0, connected.stderr
    found = entry(tmp_path, name)
    command = found["command"] if name == "opencode" else [found["command"], *found["args"]]
    assert Path(command[0]).is_absolute()
    # Where the program is not installed its package is found beside the tests.
    anywhere = {"PYTHONPATH": str(REPOSITORY)}
    server = StdioServerParameters(command=command[0], args=command[1:], env=anywhere, cwd="/")
    async with Client(stdio_client(server)) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} >= {"remember", "write_message"}
    assert (tmp_path / "d a" / "convmem.log").is_file()
    assert command[0] == sys.executable or Path(command[0]).name == "convmem"
