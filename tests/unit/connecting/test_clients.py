"""connecting/clients: every program has its place and its shape, and no entry holds a token."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from convmem.connecting import clients, documents
from convmem.connecting.clients import CLIENTS, Client, NoHome, Server, Surroundings

HOME = {"HOME": "/h"}
URL = Server("http://central:8484/mcp", needs_token=True)
COMMAND = Server(None, ("/opt/convmem", "stdio"), needs_token=True)
PLAIN = (Server("http://127.0.0.1:8484/mcp"), Server(None, ("/opt/convmem", "stdio")))
# What of the facts about each program is held here: where it reads, under which key, how it names a token.
FACTS = {
    "claude-code": ("/h/.claude.json", ("mcpServers", "convmem"), "${CONVMEM_TOKEN}"),
    "claude-desktop": ("/h/.config/Claude/claude_desktop_config.json", ("mcpServers", "convmem"), None),
    "opencode": ("/h/.config/opencode/opencode.json", ("mcp", "servers", "convmem"), "{env:CONVMEM_TOKEN}"),
    "codex": ("/h/.codex/config.toml", ("mcp_servers", "convmem"), "CONVMEM_TOKEN"),
    "cursor": ("/h/.cursor/mcp.json", ("mcpServers", "convmem"), "${env:CONVMEM_TOKEN}"),
}


def test_the_table_and_the_facts_are_about_the_same_programs():
    assert set(CLIENTS) == set(FACTS)


@pytest.mark.parametrize("name", CLIENTS)
def test_each_reads_where_and_what_the_facts_say(name: str):
    client, (path, keys, reference) = CLIENTS[name], FACTS[name]
    assert client.files(Surroundings(HOME, Path("/here"), "linux"))[0] == Path(path)
    assert client.paths[0] == client.path_in({}) == keys
    assert client.sees_environment is (reference is not None)
    for server in (URL, COMMAND) if client.sees_environment else ():
        assert reference in leaves(client.entry(server, keys)) or f"Bearer {reference}" in leaves(
            client.entry(server, keys)
        )


def leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(chain.from_iterable(map(leaves, value.values())))
    return list(chain.from_iterable(map(leaves, value))) if isinstance(value, list) else [value]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))
def test_the_keys_of_every_entry_are_decided_here_and_can_be_written(client: Client):
    for server in (URL, COMMAND, *PLAIN):
        for keys in client.paths:
            entry = client.entry(server, keys)
            assert set(entry) <= client.ours
            assert documents.entry_at(client.form, documents.snippet(client.form, keys, entry), keys) == entry
            if not server.needs_token:
                assert "TOKEN" not in str(entry)


def test_a_name_is_found_in_whatever_case_and_means_one_program():
    for given in ("claude", "Claude Code", "claude_code", "CLAUDE-CODE", "claudecode"):
        assert clients.named(given) is CLIENTS["claude-code"]
    assert clients.named("Claude Desktop") is CLIENTS["claude-desktop"]
    assert clients.named("vim") is clients.named("") is None
    spellings = [*CLIENTS, *chain.from_iterable(client.spellings for client in CLIENTS.values())]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize(
    ("name", "platform", "environment", "path"),
    [
        ("claude-code", "linux", {**HOME, "CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "c"}, "/here/c/.claude.json"),
        ("codex", "linux", {"CODEX_HOME": "/x"}, "/x/config.toml"),
        ("opencode", "darwin", {"XDG_CONFIG_HOME": "/x"}, "/x/opencode/opencode.json"),
        ("opencode", "linux", {**HOME, "XDG_CONFIG_HOME": "x"}, "/h/.config/opencode/opencode.json"),
        ("claude-desktop", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Claude/claude_desktop_config.json"),
        ("claude-desktop", "darwin", HOME, "/h/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", {"APPDATA": "/r"}, "/r/Claude/claude_desktop_config.json"),
    ],
)
def test_variables_and_platforms_move_the_file(name: str, platform: str, environment: dict[str, str], path: str):
    assert CLIENTS[name].files(Surroundings(environment, Path("/here"), platform))[0] == Path(path)


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize(
    ("platform", "environment"), [("linux", {}), ("darwin", {"HOME": ""}), ("win32", {}), ("linux", {"HOME": "h"})]
)
def test_without_a_home_nobody_knows_where(name: str, platform: str, environment: dict[str, str]):
    with pytest.raises(NoHome, match="is not set"):
        CLIENTS[name].files(Surroundings(environment, Path("/here"), platform))


@pytest.mark.parametrize(
    ("configuration", "keys"),
    [
        ({}, clients.OPENCODE_2),
        ({"mcp": {}}, clients.OPENCODE_2),
        ({"mcp": {"servers": {}}}, clients.OPENCODE_2),
        ({"mcp": {"servers": {"x": {"type": "local"}}, "timeout": {}}}, clients.OPENCODE_2),
        ({"mcp": {"x": {"type": "local"}}}, clients.OPENCODE_1),
        ({"mcp": {"servers": {"type": "local"}}}, clients.OPENCODE_1),
        ({"mcp": {"servers": {"x": {}}, "convmem": {"type": "remote"}}}, clients.OPENCODE_1),
    ],
)
def test_opencode_gets_the_shape_that_its_file_has(configuration: dict[str, object], keys: clients.Keys):
    assert CLIENTS["opencode"].path_in(configuration) == keys
    entry = CLIENTS["opencode"].entry(PLAIN[0], keys)
    assert ("enabled" in entry) is (keys == clients.OPENCODE_1)


REMOTE, LOCAL = PLAIN


@pytest.mark.parametrize(
    ("name", "before", "server", "expected"),
    [
        ("cursor", {"command": "x", "env": {"A": "b"}}, LOCAL, {"env": {"A": "b"}}),
        (
            "cursor",
            {"command": "x", "env": {"A": "b", "CONVMEM_TOKEN": "old"}},
            COMMAND,
            {"env": {"A": "b", "CONVMEM_TOKEN": "${env:CONVMEM_TOKEN}"}},
        ),
        ("cursor", {"command": "x", "env": {"CONVMEM_TOKEN": "old"}}, LOCAL, {}),
        ("cursor", {"command": "x", "env": {"A": "b"}}, REMOTE, {}),
        (
            "cursor",
            {"url": "u", "headers": {"X-Mine": "1", "authorization": "old"}},
            REMOTE,
            {"headers": {"X-Mine": "1"}},
        ),
        ("opencode", {"type": "local", "environment": {"A": "b"}}, LOCAL, {"environment": {"A": "b"}}),
        ("codex", {"command": "x", "env_vars": ["A", "CONVMEM_TOKEN"]}, LOCAL, {"env_vars": ["A"]}),
        ("codex", {"command": "x", "env": "what is no table", "env_vars": []}, LOCAL, {}),
        ("cursor", ["no entry"], LOCAL, {}),
        ("cursor", None, LOCAL, {}),
    ],
)
def test_variables_and_headers_that_a_person_added_stay(
    name: str, before: Any, server: clients.Server, expected: dict[str, Any]
):
    client = clients.CLIENTS[name]
    entry, _ = clients.with_additions(client, before, client.entry(server, client.paths[0]))
    kept = {key: entry[key] for key in ("env", "environment", "headers", "env_vars") if key in entry}
    assert kept == expected
    again, _ = clients.with_additions(client, entry, client.entry(server, client.paths[0]))
    assert again == entry


def test_codex_keeps_its_tables_of_variables_and_headers():
    client = clients.CLIENTS["codex"]
    for server, key in ((COMMAND, "env"), (REMOTE, "http_headers"), (REMOTE, "env_http_headers")):
        entry, ours = clients.with_additions(client, {key: {"A": "b"}}, client.entry(server, client.paths[0]))
        assert key not in ours
        assert key not in entry
        assert {"url", "command", "args", "env_vars"} <= ours
