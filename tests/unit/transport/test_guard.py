"""Tests of the guard: who may come in, in which order it is decided, and what a refusal says."""

import json
from pathlib import Path
from typing import Any

import pytest

from convmem import tokens
from convmem.limits import HEADERS_BYTES_MAX
from convmem.reach import Reach
from convmem.tokens import TokenBook
from convmem.transport import guard
from convmem.transport.gate import Settings
from convmem.transport.guard import Caller, Guard
from tests.support.manual_clock import ManualClock

TCP, UNIX = ("127.0.0.1", 8484), ("/run/convmem.sock", None)
LOCAL = (b"host", b"127.0.0.1:8484")
TOKEN = Settings(token=b"caf\xc3\xa9")
BEARER = (b"authorization", b"Bearer caf\xc3\xa9")


async def knock(
    settings: Settings,
    *headers: tuple[bytes, bytes],
    path: str = "/mcp",
    server: tuple[str, int | None] | None = TCP,
    client: tuple[str, int] | None = ("10.0.0.9", 5),
) -> tuple[Any, dict[bytes, bytes], bytes]:
    """Send one request through a guard: its status (or the Caller if it came through), headers and body."""
    sent: list[Any] = []
    passed: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope["caller"])

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("a refused request is not read")

    scope = {"type": "http", "path": path, "headers": list(headers), "server": server, "client": client}
    await Guard(application, settings)(scope, receive, send)
    if passed:
        assert not sent
        return passed[0], {}, b""
    start, body = sent
    assert dict(start["headers"])[b"content-length"] == b"%d" % len(body["body"])
    return start["status"], dict(start["headers"]), body["body"]


async def status(settings: Settings, *headers: tuple[bytes, bytes], **more: Any) -> Any:
    return (await knock(settings, *headers, **more))[0]


@pytest.mark.parametrize("host", [b"localhost", b"LocalHost:1", b"127.0.0.1", b"[::1]:8484", b" 127.0.0.1:8484 "])
async def test_names_of_this_machine_are_served(host: bytes):
    assert await status(Settings(), (b"host", host)) == guard.WITHOUT_TOKEN


@pytest.mark.parametrize("host", [b"evil.com", b"localhost.evil.com:8484", b"10.0.0.1", b"127.1", b"[::2]"])
async def test_another_name_is_misdirected_and_the_answer_names_the_setting(host: bytes):
    found, headers, body = await knock(Settings(), (b"host", host))
    assert found == 421
    assert headers[b"content-type"] == b"application/json"
    message = json.loads(body)["error"]["message"]
    name = host.split(b":8")[0].strip(b"[]").decode()
    assert f'Host "{name}"' in message
    assert f"--allowed-host {name}" in message
    assert "CONVMEM_ALLOWED_HOSTS" in message


@pytest.mark.parametrize(
    "host",
    [b"", b"127.0.0.1:1.evil.com", b"localhost:8484@evil.com", b"[::1]x:8484", b"127.0.0.1.:8484", b"a\x00b", b"\xff"],
)
async def test_a_malformed_host_is_a_bad_request(host: bytes):
    found, _, body = await knock(Settings(allowed_hosts=("evil.com",)), (b"host", host))
    assert found == 400
    assert body.isascii()
    assert json.loads(body)["error"]["message"].startswith('Host "')


async def test_no_host_or_two_is_a_bad_request():
    assert await status(Settings()) == 400
    assert await status(Settings(), LOCAL, LOCAL) == 400
    assert await status(Settings(), LOCAL, (b"x", b"1"), (b"host", b"evil.com")) == 400


async def test_an_allowed_name_is_served_beside_the_names_of_this_machine():
    settings = Settings(allowed_hosts=("memory.example", "fd00::1"))
    assert await status(settings, (b"host", b"Memory.Example:443")) == guard.WITHOUT_TOKEN
    assert await status(settings, (b"host", b"[fd00:0::1]")) == guard.WITHOUT_TOKEN
    assert await status(settings, LOCAL) == guard.WITHOUT_TOKEN
    assert await status(settings, (b"host", b"evil.com")) == 421


async def test_where_others_reach_the_address_the_token_suffices_unless_names_are_given():
    plain = Settings(loopback_bind=False, token=b"t")
    named = Settings(loopback_bind=False, token=b"t", allowed_hosts=("memory.example",))
    bearer = (b"authorization", b"Bearer t")
    assert await status(plain, (b"host", b"anything.example"), bearer) == guard.WITH_TOKEN
    assert await status(plain, (b"host", b"127.0.0.1:1.evil.com"), bearer) == 400
    assert await status(named, (b"host", b"memory.example"), bearer) == guard.WITH_TOKEN
    assert await status(named, (b"host", b"anything.example"), bearer) == 421
    assert await status(named, (b"host", b"127.0.0.1"), bearer) == 421


async def test_health_asks_for_no_token_and_for_a_host_only_where_browsers_could_ask():
    health = "/healthz"
    assert await status(TOKEN, LOCAL, path=health) == guard.WITHOUT_TOKEN
    assert await status(TOKEN, (b"host", b"evil.com"), path=health) == 421
    open_to_others = Settings(loopback_bind=False, token=b"t", allowed_hosts=("memory.example",))
    assert await status(open_to_others, (b"host", b"10.2.3.4:8484"), path=health) == guard.WITHOUT_TOKEN
    assert await status(open_to_others, path=health) == guard.WITHOUT_TOKEN


ORIGINS = {
    b"http://localhost:3000": guard.WITHOUT_TOKEN,
    b"https://127.0.0.1": guard.WITHOUT_TOKEN,
    b"http://[::1]:9": guard.WITHOUT_TOKEN,
    b"https://Memory.example": guard.WITHOUT_TOKEN,
    b"https://evil.com": 403,
    b"null": 403,
    b"http://localhost.evil.com": 403,
    b"chrome-extension://abcdef": 403,
    b"http://localhost:80.evil.com": 400,
    b"http://u@localhost": 400,
    b"localhost": 400,
    b"": 400,
}


@pytest.mark.parametrize(("origin", "expected"), ORIGINS.items())
async def test_pages_of_this_machine_and_of_allowed_hosts_may_call(origin: bytes, expected: Any):
    settings = Settings(allowed_hosts=("memory.example",))
    found, _, body = await knock(settings, LOCAL, (b"origin", origin))
    assert found == expected
    if expected == 403 and origin != b"null":
        assert f'"{origin.decode()}"' in json.loads(body)["error"]["message"]
        assert "--allowed-host" in json.loads(body)["error"]["message"]


async def test_two_origins_are_a_bad_request():
    assert await status(Settings(), LOCAL, (b"origin", b"http://localhost"), (b"origin", b"http://localhost")) == 400


async def test_a_forwarded_host_counts_only_from_a_trusted_proxy():
    settings = Settings(allowed_hosts=("memory.example",), trusted_proxies=("10.0.0.1", "::1"))
    forwarded = (b"x-forwarded-host", b"memory.example")
    foreign = (b"host", b"backend.internal")
    assert await status(settings, foreign, forwarded, client=("10.0.0.1", 5)) == guard.WITHOUT_TOKEN
    assert await status(settings, foreign, forwarded, client=("::ffff:10.0.0.1", 5)) == guard.WITHOUT_TOKEN
    assert await status(settings, foreign, forwarded, client=("10.0.0.2", 5)) == 421
    assert await status(settings, LOCAL, forwarded, client=("10.0.0.2", 5)) == guard.WITHOUT_TOKEN
    evil = (b"x-forwarded-host", b"evil.com")
    assert await status(settings, LOCAL, evil, client=("10.0.0.1", 5)) == 421
    assert await status(settings, LOCAL, evil, client=None) == guard.WITHOUT_TOKEN
    assert await status(settings, LOCAL, forwarded, forwarded, client=("10.0.0.1", 5)) == 400
    assert await status(settings, LOCAL, (b"x-forwarded-host", b"a, b"), client=("10.0.0.1", 5)) == 400


@pytest.mark.parametrize("scheme", [b"Bearer", b"bearer", b"BEARER"])
async def test_the_token_opens_whatever_the_case_of_the_scheme(scheme: bytes):
    assert await status(TOKEN, LOCAL, (b"authorization", scheme + b" caf\xc3\xa9")) == guard.WITH_TOKEN
    assert await status(TOKEN, LOCAL, (b"authorization", scheme + b" caf\xc3\xa9 ")) == guard.WITH_TOKEN


@pytest.mark.parametrize(
    "value",
    [
        *(
            b"",
            b"Bearer",
            b"Bearer ",
            b"Bearer x",
            b"Bearer \xff",
            b"Bearer caf\xe9",
            b"Bearer  caf\xc3\xa9",
            b"caf\xc3\xa9",
        ),
        *(
            b"Basic caf\xc3\xa9",
            b"Bearer caf\xc3\xa9x",
            b"Bearer caf",
            b"Bearer\tcaf\xc3\xa9",
            b"Bearer " + b"x" * 9000,
        ),
    ],
)
async def test_anything_else_is_unauthorized_and_says_only_how_to_ask(value: bytes):
    found, headers, body = await knock(TOKEN, LOCAL, (b"authorization", value))
    assert found == 401
    assert headers[b"www-authenticate"] == b'Bearer realm="convmem"'
    assert b"caf" not in body


async def test_no_token_or_two_is_unauthorized():
    assert await status(TOKEN, LOCAL) == 401
    assert await status(TOKEN, LOCAL, BEARER, BEARER) == 401


async def test_a_token_that_nobody_asks_for_changes_nothing():
    assert await status(Settings(), LOCAL, BEARER) == guard.WITHOUT_TOKEN


async def test_over_the_local_socket_neither_host_nor_token_is_asked_for():
    for settings in (TOKEN, Settings(loopback_bind=False, token=b"t", allowed_hosts=("memory.example",))):
        assert await status(settings, (b"host", b"any thing"), server=UNIX, client=None) == guard.OVER_THE_SOCKET
        assert await status(settings, server=UNIX, client=None) == guard.OVER_THE_SOCKET


async def test_who_cannot_be_placed_is_not_local():
    assert await status(TOKEN, LOCAL, server=None) == 401


async def test_the_checks_come_in_the_promised_order():
    large = (b"x", b"y" * HEADERS_BYTES_MAX)
    evil_host, evil_origin = (b"host", b"evil.com"), (b"origin", b"https://evil.com")
    assert await status(TOKEN, large, evil_host, path="/.well-known/x") == 431
    assert await status(TOKEN, evil_host, evil_origin, path="/.well-known/oauth-protected-resource/mcp") == 404
    assert await status(TOKEN, evil_host, evil_origin) == 421
    assert await status(TOKEN, LOCAL, evil_origin, path="/healthz") == 403
    assert await status(TOKEN, LOCAL, path="/healthz") == guard.WITHOUT_TOKEN
    assert await status(TOKEN, LOCAL, path="/nothing") == 401
    assert await status(TOKEN, LOCAL, BEARER, path="/nothing") == guard.WITH_TOKEN


async def test_headers_up_to_their_limit_are_served():
    rest = HEADERS_BYTES_MAX - len(b"host127.0.0.1:8484") - 4 - len(b"x") - 4
    assert await status(Settings(), LOCAL, (b"x", b"y" * rest)) == guard.WITHOUT_TOKEN
    assert await status(Settings(), LOCAL, (b"x", b"y" * (rest + 1))) == 431


async def test_a_refusal_is_a_json_rpc_error_on_the_mcp_paths_and_plain_elsewhere():
    _, _, body = await knock(TOKEN, LOCAL, path="/mcp/core")
    assert json.loads(body) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": guard.UNAUTHORIZED.sentence, "data": {"code": "FORBIDDEN"}},
    }
    _, _, body = await knock(TOKEN, LOCAL, path="/elsewhere")
    assert json.loads(body) == {
        "error": {"code": "FORBIDDEN", "message": guard.UNAUTHORIZED.sentence, "retryable": False}
    }


async def test_no_header_reaches_the_journal_as_it_is(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    await knock(TOKEN, (b"host", b"a\r\nFORGED line"), (b"authorization", b"Bearer secret-of-a-client"))
    await knock(TOKEN, LOCAL, (b"authorization", b"Bearer secret-of-a-client"))
    assert len(caplog.records) == 2
    assert "\n" not in caplog.records[0].getMessage()
    assert "secret-of-a-client" not in caplog.text


def bearing(secret: str) -> tuple[bytes, bytes]:
    return (b"authorization", b"Bearer " + secret.encode())


@pytest.mark.parametrize("reach", ["read", "write", "admin"])
@pytest.mark.parametrize("profile", [None, "memory"])
async def test_a_named_token_says_who_comes_in_and_how_far(tmp_path: Path, reach: Reach, profile: str | None):
    made = tokens.create(tmp_path, "書斎", reach, profile, ManualClock())
    settings = Settings(tokens=TokenBook(tmp_path, ManualClock()))
    assert await status(settings, LOCAL, bearing(made.secret)) == Caller("書斎", "http", reach, profile)
    assert await status(settings, LOCAL) == 401
    assert await status(settings, LOCAL, bearing(made.secret + "x")) == 401
    assert await status(settings, LOCAL, bearing(made.secret), bearing(made.secret)) == 401
    assert await status(settings, LOCAL, path="/healthz") == guard.WITHOUT_TOKEN
    assert await status(settings, server=UNIX) == guard.OVER_THE_SOCKET


async def test_the_token_of_the_environment_and_named_ones_admit_side_by_side(tmp_path: Path):
    made = tokens.create(tmp_path, "laptop", "write", None, ManualClock())
    settings = Settings(token=b"caf\xc3\xa9", tokens=TokenBook(tmp_path, ManualClock()))
    assert await status(settings, LOCAL, BEARER) == guard.WITH_TOKEN
    assert await status(settings, LOCAL, bearing(made.secret)) == Caller("laptop", "http", "write")
    tokens.revoke(tmp_path, "laptop")
    assert await status(settings, LOCAL, bearing(made.secret)) == 401


async def test_without_any_token_loopback_is_open_and_other_addresses_are_not(tmp_path: Path):
    book = TokenBook(tmp_path, ManualClock())
    assert await status(Settings(tokens=book), LOCAL) == guard.WITHOUT_TOKEN
    assert await status(Settings(tokens=book, loopback_bind=False), LOCAL) == 401
