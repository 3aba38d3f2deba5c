"""What agent programs are given is what they document: schemas of our own, and the types that OpenCode publishes.

None of the others publishes a schema in a package; what is held here is what their documentation says of an entry.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from convmem.connecting import documents
from convmem.connecting.clients import CLIENTS, OPENCODE_1, OPENCODE_2, Keys, Server
from tests.support import node

SERVERS = {
    "url": Server("http://127.0.0.1:8484/mcp"),
    "url and token": Server("https://central/mcp/all", needs_token=True),
    "command": Server(None, ("/usr/local/bin/convmem", "stdio", "--profile", "all")),
    "command and token": Server(None, ("/usr/local/bin/convmem", "stdio", "--url", "https://c"), needs_token=True),
}
CASES = [
    (name, keys, kind)
    for name, client in CLIENTS.items()
    for keys in client.paths
    for kind, server in SERVERS.items()
    if (client.speaks_http or server.url is None) and (client.sees_environment or not server.needs_token)
]


def strict(required: Mapping[str, Any], optional: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with these properties and no others."""
    properties = {**required, **optional}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": {"type": "string"}}
PATH = {"type": "string", "pattern": "^/"}
URL = {"type": "string", "pattern": "^https?://"}


def map_of(value: str) -> dict[str, Any]:
    """An object of texts, each of which ends with a reference and is nothing else beside the scheme."""
    return {"type": "object", "additionalProperties": {"type": "string", "pattern": rf"^(Bearer )?{value}$"}}


def mcp_servers(url: Mapping[str, Any] | None, reference: str) -> dict[str, Any]:
    """The file of a program that calls them mcpServers."""
    command = strict({"command": PATH, "args": TEXTS}, {"type": {"const": "stdio"}, "env": map_of(reference)})
    shapes = [command, strict({"url": URL, **url}, {"headers": map_of(reference)})] if url is not None else [command]
    return strict({"mcpServers": strict({"convmem": {"oneOf": shapes}}, {})}, {})


IN_BRACES = r"\{env:[A-Z_]+\}"
REMOTE = {"type": {"const": "remote"}, "url": URL, "oauth": {"const": False}}
LOCAL = {"type": {"const": "local"}, "command": {**TEXTS, "minItems": 1}}
REMOTE_OR_NOT = {"headers": map_of(IN_BRACES)}
ENABLED = {"enabled": {"type": "boolean"}}
DISABLED = {"disabled": {"type": "boolean"}}
OPENCODE = {
    keys: {"oneOf": [strict(REMOTE, {**REMOTE_OR_NOT, **on}), strict(LOCAL, {"environment": map_of(IN_BRACES), **on})]}
    for keys, on in ((OPENCODE_1, ENABLED), (OPENCODE_2, DISABLED))
}
CODEX = [
    strict({"url": URL}, {"bearer_token_env_var": TEXT}),
    strict({"command": PATH, "args": TEXTS}, {"env_vars": TEXTS}),
]
SCHEMAS: dict[tuple[str, Keys], dict[str, Any]] = {
    ("claude-code", CLIENTS["claude-code"].paths[0]): mcp_servers({"type": {"const": "http"}}, r"\$\{[A-Z_]+\}"),
    ("claude-desktop", CLIENTS["claude-desktop"].paths[0]): mcp_servers(None, "nothing"),
    ("cursor", CLIENTS["cursor"].paths[0]): mcp_servers({}, r"\$\{env:[A-Z_]+\}"),
    ("codex", CLIENTS["codex"].paths[0]): strict({"mcp_servers": strict({"convmem": {"oneOf": CODEX}}, {})}, {}),
    ("opencode", OPENCODE_1): strict({"mcp": strict({"convmem": OPENCODE[OPENCODE_1]}, {})}, {}),
    ("opencode", OPENCODE_2): strict(
        {"mcp": strict({"servers": strict({"convmem": OPENCODE[OPENCODE_2]}, {})}, {})}, {}
    ),
}


def written(name: str, keys: Keys, kind: str) -> str:
    client = CLIENTS[name]
    return documents.snippet(client.form, keys, client.entry(SERVERS[kind], keys))


def test_there_is_a_schema_for_every_program_and_shape():
    assert set(SCHEMAS) == {(name, keys) for name, client in CLIENTS.items() for keys in client.paths}


@pytest.mark.parametrize(("name", "keys", "kind"), CASES)
def test_an_entry_is_what_the_program_documents(name: str, keys: Keys, kind: str):
    text = written(name, keys, kind)
    value = tomllib.loads(text) if CLIENTS[name].form == "toml" else json.loads(text)
    jsonschema.validate(value, SCHEMAS[name, keys])
    assert ("CONVMEM_TOKEN" in text) is SERVERS[kind].needs_token


@pytest.mark.slow
def test_opencode_s_published_types_take_every_entry(tmp_path: Path):
    lines = ['import type { Config, McpLocalConfig, McpRemoteConfig } from "@opencode-ai/sdk"']
    for number, (name, keys, kind) in enumerate(CASES):
        if name == "opencode" and keys == OPENCODE_1:
            lines.append(f"export const whole{number}: Config = {written(name, keys, kind)}")
        if name == "opencode":
            entry = CLIENTS[name].entry(SERVERS[kind], keys)
            lines.append(f"export const entry{number}: McpLocalConfig | McpRemoteConfig = {json.dumps(entry)}")
    (tmp_path / "entries.ts").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert len(lines) == 1 + 4 + 8
    assert (node.compiled([tmp_path / "entries.ts"], tmp_path / "built") / "entries.js").is_file()


@pytest.mark.slow
def test_opencode_s_published_types_refuse_what_is_no_entry(tmp_path: Path):
    line = 'export const entry: McpRemoteConfig = {"type": "remote", "link": "http://127.0.0.1:8484/mcp"}'
    text = f'import type {{ McpRemoteConfig }} from "@opencode-ai/sdk"\n{line}\n'
    (tmp_path / "entry.ts").write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match="link"):
        node.compiled([tmp_path / "entry.ts"], tmp_path / "built")
