"""The official client against real processes: one journey, made through every door in both eras."""

import itertools
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.support.daemons import Daemon, daemon
from tests.support.journey import TOOLS, Answer, Door, Journey, Report
from tests.support.source import REPOSITORY

pytestmark = pytest.mark.slow
TOKEN = "geheim-und-lang"
# What the client opens with, and the version that both sides then speak.
MODES = {"auto": "2026-07-28", "legacy": "2025-11-25"}
NAMES = itertools.count(1)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with daemon(tmp_path_factory.mktemp("open"), "--profile", "messages") as started:
        yield started
        status, journal = started.stop()
        assert status == 0
        assert "Traceback" not in journal


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that wants a token of whoever comes over TCP."""
    with daemon(tmp_path_factory.mktemp("guarded"), environment={"CONVMEM_HTTP_TOKEN": TOKEN}) as started:
        yield started
        status, journal = started.stop()
        assert status == 0
        assert TOKEN not in journal


@asynccontextmanager
async def over_tcp(mode: str, running: Daemon, **_: Any) -> AsyncIterator[Client]:
    async with Client(running.url, mode=mode) as client:
        yield client


@asynccontextmanager
async def over_the_local_socket(mode: str, guarded: Daemon, **_: Any) -> AsyncIterator[Client]:
    """No token is asked for here."""
    transport = httpx2.AsyncHTTPTransport(uds=str(guarded.data_dir / "convmem.sock"))
    async with httpx2.AsyncClient(transport=transport) as http:
        url = "http://any.name.at.all/mcp/messages"
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            yield client


@asynccontextmanager
async def with_the_token(mode: str, guarded: Daemon, **_: Any) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}) as http:
        url = f"{guarded.url}/messages"
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            yield client


@asynccontextmanager
async def over_stdio(mode: str, tmp_path: Path, **_: Any) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "convmem", "stdio", "--data-dir", str(tmp_path / "data"), "--profile", "messages"],
        env={"PATH": os.environ["PATH"]},
        cwd=REPOSITORY,
    )
    async with Client(server, mode=mode) as client:
        yield client


def bridge(*arguments: str) -> StdioServerParameters:
    """A process that speaks stdio on this side and HTTP on the other."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "convmem", "stdio", "--profile", "messages", *arguments],
        env={"PATH": os.environ["PATH"]},
        cwd=REPOSITORY,
    )


@asynccontextmanager
async def through_a_bridge(mode: str, guarded: Daemon, **_: Any) -> AsyncIterator[Client]:
    """Beside the daemon: no token is asked for there."""
    async with Client(bridge("--data-dir", str(guarded.data_dir)), mode=mode) as client:
        yield client


@asynccontextmanager
async def through_a_bridge_to_a_url(mode: str, guarded: Daemon, tmp_path: Path, **_: Any) -> AsyncIterator[Client]:
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN + "\n")
    async with Client(bridge("--url", guarded.url, "--token-file", str(token_file)), mode=mode) as client:
        yield client


DOORS = (
    *(over_tcp, over_the_local_socket, with_the_token, over_stdio),
    *(through_a_bridge, through_a_bridge_to_a_url),
)
ORIGINS = {
    over_tcp: ("local", "http"),
    over_the_local_socket: ("local", "socket"),
    with_the_token: ("env", "http"),
    over_stdio: ("local", "stdio"),
    through_a_bridge: ("local", "socket"),
    through_a_bridge_to_a_url: ("env", "http"),
}


def door(client: Client) -> Door:
    async def call(tool: str, arguments: Mapping[str, Any], report: Report | None = None) -> Answer:
        result = await client.call_tool(tool, dict(arguments), progress_callback=report)
        (block,) = result.content
        return Answer(result.structured_content, block.text, bool(result.is_error))

    return call


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opened", DOORS, ids=lambda opened: opened.__name__)
async def test_the_official_client_makes_the_whole_journey(
    opened: Any, mode: str, running: Daemon, guarded: Daemon, tmp_path: Path
):
    async with opened(mode, running=running, guarded=guarded, tmp_path=tmp_path) as client:
        assert client.protocol_version == MODES[mode]
        assert {tool.name for tool in (await client.list_tools()).tools} >= set(TOOLS)
        journey = Journey(door(client), f"journey {next(NAMES)}")
        await journey.make()
        history = await journey.ask("read_messages", view="history", session_id=journey.name)
        origins = [message["origin"] for message in history["messages"]]
        assert {(origin["device"], origin["transport"]) for origin in origins} == {ORIGINS[opened]}


async def test_a_program_that_only_posts_json_makes_the_same_journey(running: Daemon):
    client = running.client()

    async def call(tool: str, arguments: Mapping[str, Any], report: Report | None = None) -> Answer:
        reported, result = client.stream("tools/call", {"name": tool, "arguments": arguments}, token="t")
        for params in reported:
            assert report is not None
            await report(params["progress"], params.get("total"), params.get("message"))
        return Answer(result["structuredContent"], result["content"][0]["text"], result["isError"])

    await Journey(call, f"journey {next(NAMES)}").make()


@pytest.mark.parametrize("mode", MODES)
async def test_without_the_token_the_official_client_is_turned_away(guarded: Daemon, mode: str):
    seen: list[tuple[int, str | None]] = []

    async def note(response: httpx2.Response) -> None:
        seen.append((response.status_code, response.headers.get("www-authenticate")))

    with pytest.raises(Exception):  # noqa: B017 - what the client makes of it is its own affair
        async with (
            httpx2.AsyncClient(event_hooks={"response": [note]}) as http,
            Client(streamable_http_client(guarded.url, http_client=http), mode=mode) as client,
        ):
            await client.list_tools()
    assert seen
    assert set(seen) == {(401, 'Bearer realm="convmem"')}


async def test_clients_go_on_where_the_daemon_was_killed_and_started_again(tmp_path: Path):
    with daemon(tmp_path) as mortal:
        async with Client(mortal.url, mode="auto") as modern, Client(mortal.url, mode="legacy") as legacy:
            written = [await Journey(door(client), "s").write() for client in (modern, legacy)]
            mortal.kill()
            mortal.start()
            for client in (modern, legacy):
                found = await Journey(door(client), "s").ask("read_messages", view="history", session_id="s")
                assert {message["message_id"] for message in found["messages"]} == {*written[0], *written[1]}


def test_a_call_without_the_token_does_nothing(guarded: Daemon):
    stranger, owner = guarded.client("messages"), guarded.client("messages", authorization=f"Bearer {TOKEN}")
    for _ in range(2):
        with pytest.raises(httpx.HTTPStatusError, match="401"):
            stranger.write("let me in", session_id="stranger")
    assert owner.history("stranger") == []
    assert owner.write("I live here", session_id="stranger")["revision"] == 1
    assert [message["origin"]["device"] for message in owner.history("stranger")] == ["env"]
