"""cli/connect: one entry goes in, or out; the person is told which file, which copy, and what to do next."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from convmem.cli import run
from convmem.connecting import config_files
from convmem.connecting.clients import CLIENTS
from tests.support.commands import ran

URL = "http://127.0.0.1:8484/mcp"
REMOTE = "https://central.example"
SECRET = "cvm_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
FILES = {
    "claude-code": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "opencode": ".config/opencode/opencode.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
}
MINE = {
    "json": '{\r\n\t// mine\r\n\t"theme": "dark", /* x */\r\n\t"n": 1e999,\r\n}',
    "toml": "\ufeff# mine\r\nmodel = 'x'\r\n\r\n[tools] # t\r\nn = nan",
}


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/bin/convmem"])
    monkeypatch.setattr(sys, "platform", "linux")


def asked(home: Path, *words: str, **variables: str) -> int:
    return run(["connect", *words], {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), **variables}, home)


def entry(home: Path, name: str) -> Any:
    return entry_in((home / FILES[name]).read_text("utf-8"), name)


def entry_in(text: str, name: str) -> Any:
    value: Any = tomllib.loads(text) if name == "codex" else json.loads(text)
    for key in CLIENTS[name].paths[0]:
        value = value[key]
    return value


def beside(path: Path) -> list[Path]:
    return sorted(one for one in path.parent.iterdir() if one.name.startswith(path.name) and one != path)


@pytest.mark.parametrize("name", FILES)
def test_it_comes_once_and_goes_again(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]):
    path, form = tmp_path / FILES[name], CLIENTS[name].form
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(MINE[form].encode())
    path.chmod(0o640)
    assert asked(tmp_path, name) == 0
    (backup,) = beside(path)
    shown = capsys.readouterr()
    assert shown.out == f"{path}: changed; a copy of what was there: {backup.name}\n"
    assert shown.err == CLIENTS[name].then + "\n"
    assert backup.read_bytes() == MINE[form].encode()
    assert backup.stat().st_mode & 0o777 == path.stat().st_mode & 0o777 == 0o640
    first = path.read_bytes()
    assert asked(tmp_path, name) == 0
    assert capsys.readouterr().out == f"{path}: nothing to change\n"
    assert (path.read_bytes(), beside(path)) == (first, [backup])
    assert asked(tmp_path, name, "--remove") == 0
    assert capsys.readouterr().out.startswith(f"{path}: removed; a copy of what was there: {path.name}.convmem-backup")
    left = path.read_bytes()
    assert asked(tmp_path, name, "--remove") == 0
    assert "nothing to remove" in capsys.readouterr().out
    assert path.read_bytes() == left
    assert b"convmem" not in left
    assert b"mine\r\n" in left


@pytest.mark.parametrize("name", FILES)
def test_what_is_shown_is_what_is_written(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]):
    words = [name, "--profile", "all"]
    assert asked(tmp_path, *words, "--print") == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert list(tmp_path.iterdir()) == []
    assert asked(tmp_path, *words) == 0
    assert entry(tmp_path, name) == entry_in(shown.out, name)
    assert (tmp_path / FILES[name]).read_text("utf-8") == shown.out


@pytest.mark.parametrize("name", FILES)
def test_a_token_is_named_where_one_is_needed_and_never_written(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "token").write_text(SECRET)
    (tmp_path / "token").chmod(0o600)
    words = () if CLIENTS[name].sees_environment else ("--token-file", "token")
    assert asked(tmp_path, name, "--url", REMOTE, *words, CONVMEM_TOKEN=SECRET) == 0
    text = (tmp_path / FILES[name]).read_text("utf-8")
    assert SECRET not in text + "".join(capsys.readouterr())
    assert ("CONVMEM_TOKEN" in text) is CLIENTS[name].sees_environment
    if not words:
        assert asked(tmp_path, name, "--url", REMOTE, "--stdio", CONVMEM_TOKEN=SECRET) == 0
        text = (tmp_path / FILES[name]).read_text("utf-8")
        assert "CONVMEM_TOKEN" in text
        assert SECRET not in text
        assert entry(tmp_path, name).get("url") is None


def test_a_token_is_needed_elsewhere_or_where_there_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def names_it(*words: str, **variables: str) -> bool:
        assert asked(tmp_path, "cursor", "--print", *words, **variables) == 0
        return "${env:CONVMEM_TOKEN}" in capsys.readouterr().out

    assert not names_it()
    assert not names_it("--url", "http://localhost:9")
    assert names_it("--url", REMOTE)
    assert names_it(CONVMEM_URL=REMOTE)
    assert names_it(CONVMEM_BIND="10.0.0.5:8484")
    assert names_it("--url", "http://localhost:9", CONVMEM_TOKEN=SECRET)
    assert names_it(CONVMEM_HTTP_TOKEN=SECRET)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "tokens.json").write_text("damaged")
    assert names_it("--data-dir", "here")


def test_claude_desktop_gets_a_command_that_holds_from_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert asked(tmp_path, "claude-desktop", "--profile", "all", "--data-dir", "here") == 0
    here = str(tmp_path / "here")
    expected = {"command": "/opt/bin/convmem", "args": ["stdio", "--data-dir", here, "--profile", "all"]}
    assert entry(tmp_path, "claude-desktop") == expected
    token = tmp_path / "token"
    token.write_text(SECRET)
    token.chmod(0o644)
    words = ["claude-desktop", "--url", REMOTE]
    assert asked(tmp_path, *words) == 1
    assert "name it with --token-file" in capsys.readouterr().err
    assert asked(tmp_path, *words, "--token-file", "token") == 1
    assert "chmod 600" in capsys.readouterr().err
    assert asked(tmp_path, *words, "--token-file", "none") == 1
    token.chmod(0o600)
    assert entry(tmp_path, "claude-desktop") == expected
    assert asked(tmp_path, *words, "--token-file", "token") == 0
    expected["args"] = ["stdio", "--url", REMOTE, "--token-file", str(token)]
    assert entry(tmp_path, "claude-desktop") == expected


def test_the_daemon_of_the_settings_is_called(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "convmem.env").write_text("CONVMEM_BIND=0.0.0.0:9000\n")
    assert asked(tmp_path, "cursor", "--print", "--profile", "memory") == 0
    assert entry_in(capsys.readouterr().out, "cursor")["url"] == "http://127.0.0.1:9000/mcp/memory"
    assert asked(tmp_path, "cursor", "--print", CONVMEM_BIND="127.0.0.1:0") == 2
    assert "any free port" in capsys.readouterr().err


def test_http_over_a_network_is_remarked_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert asked(tmp_path, "codex", "--url", "http://central:8484") == 0
    err = capsys.readouterr().err
    assert "takes its token from CONVMEM_TOKEN" in err
    assert "shows that token to the network" in err
    assert asked(tmp_path, "codex", "--url", REMOTE) == 0
    assert "network" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("vim",), "claude-code, claude-desktop, opencode, codex, cursor"),
        (("codex", "--profile", "none"), "core, messages"),
        (("codex", "--print", "--remove"), "choose one"),
        (("codex", "--url", f"http://me:{SECRET}@central"), "a token does not belong in a URL"),
        (("codex", "--url", "http://me:hunter2@central"), "must not hold a user or a password"),
        (("codex", "--token-file", "token"), "goes with --stdio"),
        (("codex", "--stdio", "--token-file", "token"), "goes with --url"),
        ((), "Missing argument"),
    ],
)
def test_wrong_usage_is_told_and_no_secret_is(
    tmp_path: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
):
    assert asked(tmp_path, *words) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert said in err
    assert SECRET not in err
    assert "hunter2" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "data", "place"),
    [
        ("cursor", b'{\n  "a": 1,\n  "a": 2\n}', "3:3: the key 'a' stands here a second time"),
        ("cursor", b"{", "1:2: a key"),
        ("cursor", b"[]", "1:1: the outermost value is no object"),
        ("cursor", b'{"mcpServers": []}', "1:16: 'mcpServers' is no object"),
        ("cursor", b'{"a": "\xff"}', "1:8: not UTF-8"),
        ("cursor", "{}".encode("utf-16"), "1:1: not UTF-8"),
        ("opencode", b'{"mcp": 1}', "1:9: 'mcp' is no object"),
        ("codex", b"a = 1\na = 2\n", "2:6: Cannot overwrite a value"),
        ("codex", b"mcp_servers = 1\n", "1:1: mcp_servers is no table"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_place_and_left(
    tmp_path: Path, name: str, data: bytes, place: str, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / FILES[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for words in ((), ("--remove",)):
        assert asked(tmp_path, name, *words) == 1
        shown = capsys.readouterr()
        assert shown.err.startswith(f"convmem: {path}:{place}")
        assert "nothing was changed" in shown.err
        assert shown.out == ""
    assert (path.read_bytes(), beside(path)) == (data, [])


def test_what_is_no_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / ".cursor" / "mcp.json").mkdir(parents=True)
    assert asked(tmp_path, "cursor") == 1
    assert f"{tmp_path / '.cursor' / 'mcp.json'}: not a regular file; nothing was changed" in capsys.readouterr().err
    (tmp_path / ".codex").write_text("")
    assert asked(tmp_path, "codex") == 1
    assert ".codex" in capsys.readouterr().err


def test_without_a_home_it_is_shown_and_not_written(tmp_path: Path):
    for name in FILES:
        shown = ran("connect", name, "--print")
        assert (shown.returncode, shown.stderr) == (0, "")
        assert entry_in(shown.stdout, name)
        for words in ((), ("--remove",)):
            refused = ran("connect", name, *words, directory=tmp_path)
            assert refused.returncode == 1
            assert refused.stderr.startswith("convmem: HOME is not set, so nobody knows")
            assert "Traceback" not in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_user_without_any_home_is_shown_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr("convmem.data_dir.known_home", lambda: "")
    assert run(["connect", "codex", "--print"], {}, None) == 0
    assert tomllib.loads(capsys.readouterr().out)["mcp_servers"]["convmem"]["url"] == URL


def test_opencode_is_written_where_its_entry_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    directory = tmp_path / ".config" / "opencode"
    directory.mkdir(parents=True)
    old, new = directory / "opencode.json", directory / "opencode.jsonc"
    new.write_text('{"mcp": {"x": {"type": "local", "command": ["x"]}}}')
    assert asked(tmp_path, "opencode") == 0
    assert json.loads(new.read_text())["mcp"]["convmem"]["enabled"] is True
    assert not old.exists()
    old.write_text("{}")
    assert asked(tmp_path, "opencode", "--profile", "all") == 0
    assert json.loads(new.read_text())["mcp"]["convmem"]["url"] == f"{URL}/all"
    assert old.read_text() == "{}"
    old.write_text('{"mcp": {"servers": {"convmem": {}}}}')
    assert asked(tmp_path, "opencode") == 0
    assert json.loads(new.read_text())["mcp"]["convmem"]["url"] == URL, "of two files the later one counts"
    assert asked(tmp_path, "opencode", "--remove") == 0
    assert json.loads(old.read_text()) == {"mcp": {"servers": {}}}
    assert json.loads(new.read_text()) == {"mcp": {"x": {"type": "local", "command": ["x"]}}}
    assert capsys.readouterr().out.count(": removed;") == 2


def test_a_change_by_another_program_is_taken_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / ".claude.json"
    path.write_text('{"a": 1}')
    real, left = config_files.replace, [2]

    def late(*given: Any) -> Path | None:
        if left[0]:
            left[0] -= 1
            path.write_text(f'{{"a": {10 + left[0]}}}')
        return real(*given)

    monkeypatch.setattr(config_files, "replace", late)
    assert asked(tmp_path, "claude-code") == 0
    assert json.loads(path.read_text())["a"] == 10
    assert len(beside(path)) == 1
    path.write_text("{}")
    left[0] = 100
    assert asked(tmp_path, "claude-code") == 1
    assert json.loads(path.read_text()) == {"a": 10 + left[0]}
    assert len(beside(path)) == 1


def test_the_program_is_named_by_a_path_that_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    def command(*called: str, **variables: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", list(called))
        assert asked(tmp_path, "cursor", "--stdio", "--print", **variables) == 0
        shown = entry_in(capsys.readouterr().out, "cursor")
        return [shown["command"], *shown["args"]]

    assert command(".venv/bin/convmem") == [str(tmp_path / ".venv" / "bin" / "convmem"), "stdio"]
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert command("-c") == [str(tmp_path / "python"), "-m", "convmem", "stdio"]
    for directory in (tmp_path / "bin", tmp_path):
        directory.mkdir(exist_ok=True)
        (directory / "convmem").touch(mode=0o755)
        assert command("-c", PATH=str(tmp_path / "bin")) == [str(directory / "convmem"), "stdio"]
    monkeypatch.setattr(sys, "executable", str(tmp_path / "\u202e" / "python"))
    assert asked(tmp_path, "cursor", "--stdio", "--print", PATH="") == 1
    assert "cannot hold" in capsys.readouterr().err
