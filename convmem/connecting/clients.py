"""Agent programs: how each is called, where its configuration stands, and what an entry in it looks like.

The idea: a program is a row of CLIENTS. All that one of them wants otherwise than another is in its row, and everything
else (reading, changing, keeping) knows no program. A token is in no entry: each says how its program takes it from the
environment, and one that does not see a person's environment is given the name of a file.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from convmem.connecting.documents import Form

NAME = "convmem"
TOKEN_VARIABLE = "CONVMEM_TOKEN"  # noqa: S105 — the name of a variable
Keys = tuple[str, ...]
Entry = dict[str, Any]


class NoHome(Exception):
    """Where the configuration stands depends on a variable that is not set; the message names it."""


class Surroundings(NamedTuple):
    """What tells where configurations stand: the environment, where relative paths start, and sys.platform."""

    environment: Mapping[str, str]
    here: Path
    platform: str

    def directory(self, variable: str, *, absolute_only: bool = False) -> Path | None:
        """The directory that a variable names; None if it is not set (or, as for XDG, not absolute)."""
        given = self.environment.get(variable, "")
        if not given or (absolute_only and not os.path.isabs(given)):
            return None
        return self.here / given

    def home(self) -> Path:
        """The home directory. NoHome if the environment does not say."""
        given = self.directory("HOME", absolute_only=True)
        if given is None:
            raise NoHome("HOME is not set")
        return given

    def config_home(self) -> Path:
        """XDG_CONFIG_HOME or its default. NoHome."""
        return self.directory("XDG_CONFIG_HOME", absolute_only=True) or self.home() / ".config"


class Server(NamedTuple):
    """What an entry says: the URL to call, or the command to start; and whether a token is needed for it."""

    url: str | None
    command: tuple[str, ...] = ()
    needs_token: bool = False


class Client(NamedTuple):
    """One agent program.

    `files`: where its configuration may stand, the one for a new one first. `paths`: where in it our entry may be; the
    first is that of the program's newest shape, `path_in` chooses for a file. `entry` makes what stands there, `ours`
    are the keys of an entry that this command decides on; others that a person adds stay.
    """

    title: str
    spellings: frozenset[str]
    form: Form
    files: Callable[[Surroundings], list[Path]]
    paths: tuple[Keys, ...]
    path_in: Callable[[Any], Keys]
    entry: Callable[[Server, Keys], Entry]
    ours: frozenset[str]
    speaks_http: bool
    sees_environment: bool
    then: str


MCP_SERVERS: Keys = ("mcpServers", NAME)
CODEX: Keys = ("mcp_servers", NAME)
OPENCODE_2: Keys = ("mcp", "servers", NAME)
OPENCODE_1: Keys = ("mcp", NAME)


def _claude_code_files(around: Surroundings) -> list[Path]:
    return [(around.directory("CLAUDE_CONFIG_DIR") or around.home()) / ".claude.json"]


def _claude_desktop_files(around: Surroundings) -> list[Path]:
    if around.platform == "darwin":
        above = around.home() / "Library" / "Application Support"
    elif around.platform == "win32":
        roaming = around.directory("APPDATA")
        if roaming is None:
            raise NoHome("APPDATA is not set")
        above = roaming
    else:
        above = around.config_home()
    return [above / "Claude" / "claude_desktop_config.json"]


def _opencode_files(around: Surroundings) -> list[Path]:
    return [around.config_home() / "opencode" / name for name in ("opencode.json", "opencode.jsonc")]


def _codex_files(around: Surroundings) -> list[Path]:
    return [(around.directory("CODEX_HOME") or around.home() / ".codex") / "config.toml"]


def _cursor_files(around: Surroundings) -> list[Path]:
    return [around.home() / ".cursor" / "mcp.json"]


def _only(path: Keys) -> Callable[[Any], Keys]:
    return lambda configuration: path


def _opencode_path(configuration: Any) -> Keys:
    """Where OpenCode looks for servers in this file: version 2 has them in mcp.servers, version 1 in mcp itself."""
    servers = configuration.get("mcp") if isinstance(configuration, dict) else None
    if not isinstance(servers, dict) or not servers:
        return OPENCODE_2
    within = servers.get("servers")
    is_server = isinstance(within, dict) and isinstance(within.get("type"), str)
    return OPENCODE_2 if "servers" in servers and not is_server and NAME not in servers else OPENCODE_1


def _headers(server: Server, reference: str) -> Entry:
    return {"headers": {"Authorization": f"Bearer {reference}"}} if server.needs_token else {}


def _mcp_server(server: Server, reference: str, named_type: bool) -> Entry:
    if server.url is not None:
        kind = {"type": "http"} if named_type else {}
        return {**kind, "url": server.url, **_headers(server, reference)}
    command, *arguments = server.command
    environment = {"env": {TOKEN_VARIABLE: reference}} if server.needs_token else {}
    return {"command": command, "args": arguments, **environment}


def _opencode_entry(server: Server, path: Keys) -> Entry:
    reference = f"{{env:{TOKEN_VARIABLE}}}"
    enabled = {"enabled": True} if path == OPENCODE_1 else {}
    if server.url is not None:
        # Without this a 401 would begin a login in a browser that leads nowhere.
        return {"type": "remote", "url": server.url, **enabled, "oauth": False, **_headers(server, reference)}
    environment = {"environment": {TOKEN_VARIABLE: reference}} if server.needs_token else {}
    return {"type": "local", "command": list(server.command), **enabled, **environment}


def _codex_entry(server: Server, path: Keys) -> Entry:
    if server.url is not None:
        return {"url": server.url, **({"bearer_token_env_var": TOKEN_VARIABLE} if server.needs_token else {})}
    command, *arguments = server.command
    return {"command": command, "args": arguments, **({"env_vars": [TOKEN_VARIABLE]} if server.needs_token else {})}


_MCP_SERVER_KEYS = frozenset({"type", "url", "headers", "command", "args", "env", "disabled"})

CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        title="Claude Code",
        spellings=frozenset({"claude", "claudecode"}),
        form="json",
        files=_claude_code_files,
        paths=(MCP_SERVERS,),
        path_in=_only(MCP_SERVERS),
        entry=lambda server, path: _mcp_server(server, f"${{{TOKEN_VARIABLE}}}", named_type=True),
        ours=_MCP_SERVER_KEYS,
        speaks_http=True,
        sees_environment=True,
        then="Start Claude Code anew; /mcp shows it.",
    ),
    "claude-desktop": Client(
        title="Claude Desktop",
        spellings=frozenset({"claudedesktop"}),
        form="json",
        files=_claude_desktop_files,
        paths=(MCP_SERVERS,),
        path_in=_only(MCP_SERVERS),
        entry=lambda server, path: _mcp_server(server, "", named_type=False),
        ours=_MCP_SERVER_KEYS,
        speaks_http=False,
        sees_environment=False,
        then="Quit Claude Desktop and start it anew.",
    ),
    "opencode": Client(
        title="OpenCode",
        spellings=frozenset({"open-code"}),
        form="json",
        files=_opencode_files,
        paths=(OPENCODE_2, OPENCODE_1),
        path_in=_opencode_path,
        entry=_opencode_entry,
        ours=frozenset({"type", "url", "headers", "oauth", "command", "environment", "enabled", "disabled"}),
        speaks_http=True,
        sees_environment=True,
        then="Start OpenCode anew; `opencode mcp list` shows it.",
    ),
    "codex": Client(
        title="Codex",
        spellings=frozenset({"codex-cli", "openai-codex"}),
        form="toml",
        files=_codex_files,
        paths=(CODEX,),
        path_in=_only(CODEX),
        entry=_codex_entry,
        ours=frozenset(
            {"url", "bearer_token_env_var", "http_headers", "env_http_headers", "command", "args", "env", "env_vars"}
            | {"enabled"}
        ),
        speaks_http=True,
        sees_environment=True,
        then="Start Codex anew; `codex mcp list` shows it.",
    ),
    "cursor": Client(
        title="Cursor",
        spellings=frozenset({"cursor-editor"}),
        form="json",
        files=_cursor_files,
        paths=(MCP_SERVERS,),
        path_in=_only(MCP_SERVERS),
        entry=lambda server, path: _mcp_server(server, f"${{env:{TOKEN_VARIABLE}}}", named_type=False),
        ours=_MCP_SERVER_KEYS,
        speaks_http=True,
        sees_environment=True,
        then="Start Cursor anew; its MCP settings show it.",
    ),
}


# What a person may have added to of an entry by command, or by URL: names and values, or names alone.
_BESIDE_A_COMMAND = ("env", "environment", "env_vars")
_BESIDE_A_URL = ("headers", "http_headers", "env_http_headers")
_OWN_NAMES = frozenset({"authorization", TOKEN_VARIABLE.lower()})


def with_additions(client: Client, before: Any, wanted: Entry) -> tuple[Entry, frozenset[str]]:
    """What an entry is to say where one stands already, and which of its keys are decided on: variables and headers of
    the person's own stay, as far as they are for the same kind of entry.
    """
    decided, ours = dict(wanted), set(client.ours)
    for key in _BESIDE_A_URL if "url" in wanted else _BESIDE_A_COMMAND:
        added = before.get(key) if isinstance(before, dict) else None
        if client.form == "toml" and key not in wanted and key != "env_vars":
            ours.discard(key)
        elif isinstance(added, dict):
            theirs = {name: value for name, value in added.items() if name.lower() not in _OWN_NAMES}
            decided[key] = {**theirs, **wanted.get(key, {})}
        elif isinstance(added, list):
            decided[key] = [*(one for one in added if one != TOKEN_VARIABLE), *wanted.get(key, [])]
        if not decided.get(key, True):
            del decided[key]
    return decided, frozenset(ours)


def named(text: str) -> Client | None:
    """The client that a person means by a name, in whatever case and with blanks or underscores for hyphens."""
    plain = "-".join(text.lower().replace("_", " ").split())
    return next((one for name, one in CLIENTS.items() if plain == name or plain in one.spellings), None)
