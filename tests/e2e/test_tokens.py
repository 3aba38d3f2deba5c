"""Device tokens with a real daemon: named in what they write, kept to their scope and profile, gone when revoked."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from convmem import tokens
from convmem.clock import SystemClock
from convmem.reach import Reach
from tests.support import commands
from tests.support.daemons import Daemon, RawClient, Refused, daemon

pytestmark = pytest.mark.slow


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Daemon]:
    with daemon(tmp_path / "data") as started:
        yield started


def made(running: Daemon, name: str, scope: Reach = "write", profile: str | None = None) -> str:
    return tokens.create(running.data_dir, name, scope, profile, SystemClock()).secret


def bearer(running: Daemon, secret: str, profile: str = "all") -> RawClient:
    return running.client(profile, authorization=f"Bearer {secret}")


def status(client: RawClient) -> int:
    try:
        client.request("tools/list", {})
    except httpx.HTTPStatusError as error:
        return error.response.status_code
    return 200


def test_a_token_made_or_revoked_beside_the_daemon_counts_with_the_next_request(running: Daemon):
    open_client = running.client("all")
    assert status(open_client) == 200
    laptop, server = bearer(running, made(running, "laptop")), bearer(running, made(running, "server"))
    assert [status(open_client), status(laptop), status(server)] == [401, 200, 200]
    tokens.revoke(running.data_dir, "laptop")
    assert [status(open_client), status(laptop), status(server)] == [401, 401, 200]
    tokens.revoke(running.data_dir, "server")
    assert [status(open_client), status(laptop), status(server)] == [401, 401, 401]


def test_who_wrote_what_is_the_name_of_the_token(running: Daemon):
    for name in ("laptop", "書斎"):
        bearer(running, made(running, name)).write(f"from {name}", session_id="s")
    reader = bearer(running, made(running, "reader", "read"))
    found = {message["content"]: message["origin"]["device"] for message in reader.history()}
    assert found == {"from laptop": "laptop", "from 書斎": "書斎"}


CREATE: dict[str, Any] = {"table": "t", "fields": [{"name": "title", "type": "string"}]}
REFUSED: list[tuple[Reach, str, dict[str, Any], str]] = [
    ("read", "write_message", {"session_id": "s", "role": "user", "content": "x"}, "write"),
    ("read", "remember", {"text": "x"}, "write"),
    ("read", "create", {"table": "t", "values": {}}, "write"),
    ("read", "export_memory", {}, "write"),
    ("write", "schema_create", CREATE, "admin"),
    ("write", "reload", {}, "admin"),
    ("write", "data_snapshot", {"upload": True}, "admin"),
    ("write", "schema_batch", {"table": "t", "ops": [{"op": "query", "sql": "DELETE FROM rows"}]}, "admin"),
]


def named(client: RawClient) -> set[str]:
    return {tool["name"] for tool in client.request("tools/list", {})["result"]["tools"]}


@pytest.mark.parametrize(("scope", "tool", "arguments", "needed"), REFUSED, ids=lambda value: str(value)[:20])
def test_beyond_its_scope_a_token_is_forbidden_and_told_what_is_needed(
    running: Daemon, scope: Reach, tool: str, arguments: dict[str, Any], needed: str
):
    client = bearer(running, made(running, "laptop", scope))
    with pytest.raises(Refused) as refused:
        client.call(tool, **arguments)
    assert (refused.value.code, refused.value.error["needed"]) == ("FORBIDDEN", needed)


@pytest.mark.parametrize(
    ("scope", "path", "expected"),
    [
        ("read", "/capture", 403),
        ("write", "/capture", 400),
        ("write", "/export", 403),
        ("write", "/admin/tables", 403),
        ("admin", "/admin/tables", 200),
    ],
)
def test_the_other_paths_ask_for_their_scope_too(running: Daemon, scope: Reach, path: str, expected: int):
    secret = made(running, "laptop", scope)
    address = running.url.removesuffix("/mcp") + path
    headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
    answer = httpx.post(address, content=b"{}", headers=headers)
    if answer.status_code == 405:
        answer = httpx.get(address, headers=headers)
    assert answer.status_code == expected, answer.text
    assert secret not in answer.text


def test_a_token_with_a_profile_shows_that_one_alone(running: Daemon):
    secret = made(running, "laptop", "write", "memory")
    assert named(bearer(running, secret, "")) == named(bearer(running, secret, "memory"))
    assert status(bearer(running, secret, "all")) == 403


def test_a_damaged_file_admits_nobody_and_the_local_socket_is_still_open(running: Daemon):
    client = bearer(running, made(running, "laptop"))
    assert status(client) == 200
    (running.data_dir / tokens.FILE).write_bytes(b"{")
    assert status(client) == 401
    assert status(running.client("all")) == 401
    assert commands.ran("sessions", "--data-dir", str(running.data_dir)).returncode == 0


def test_with_named_tokens_alone_it_may_listen_everywhere(tmp_path: Path):
    done = commands.ran("token", "create", "laptop", "--data-dir", str(tmp_path))
    assert done.returncode == 0, done.stderr
    with commands.daemon("--bind", "0.0.0.0:0", "--data-dir", str(tmp_path)) as running:
        assert "token" in running.line
        url = running.url.replace("0.0.0.0", "127.0.0.1")
        for headers, expected in (({}, 401), ({"authorization": f"Bearer {done.stdout.strip()}"}, 200)):
            client = RawClient(url, headers=headers)
            assert status(client) == expected
            client.http.close()


def test_no_secret_stands_in_the_journal_or_in_any_file(tmp_path: Path):
    with daemon(tmp_path / "data") as running:
        secret = made(running, "laptop")
        client = bearer(running, secret)
        client.write("x")
        assert status(bearer(running, secret + "x")) == 401
        _, journal = running.stop()
    assert secret not in journal
    for path in (tmp_path / "data").rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_each_call_is_one_line_of_the_journal_without_a_word_of_what_was_said(tmp_path: Path):
    with daemon(tmp_path / "data", "--log-format", "json") as running:
        client = bearer(running, made(running, "laptop"))
        client.write("a-word-nobody-may-read")
        with pytest.raises(Refused):
            client.call("recall", topic=5)
        client.call("search_messages", query="a-word-nobody-may-read")
        _, journal = running.stop()
    assert "nobody" not in journal
    lines = [json.loads(line) for line in journal.splitlines()]
    calls = [(line["tool"], line["device"], line["outcome"], line["request"]) for line in lines if "tool" in line]
    assert calls == [
        ("write_message", "laptop", "ok", 1),
        ("recall", "laptop", "VALIDATION_ERROR", 2),
        ("search_messages", "laptop", "ok", 3),
    ]
    assert all(0 <= line["ms"] < 60_000 for line in lines if "tool" in line)
