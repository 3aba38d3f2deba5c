"""Tests of the strict reading of Host and Origin."""

import pytest

from convmem.transport import authority

HOSTS = {
    b"localhost": "localhost",
    b"LOCALHOST:8484": "localhost",
    b"127.0.0.1": "127.0.0.1",
    b"127.0.0.1:65535": "127.0.0.1",
    b"[::1]": "::1",
    b"[::1]:8484": "::1",
    b"[0:0:0:0:0:0:0:1]:1": "::1",
    b"my_host.example-1.com:80": "my_host.example-1.com",
    b"a" * 63 + b".b": "a" * 63 + ".b",
}
MALFORMED_HOSTS = [
    *(b"", b" ", b":", b":80", b"localhost:", b"localhost:0", b"localhost:65536", b"localhost:123456", b"localhost:-1"),
    *(b"localhost:80:80", b"127.0.0.1:1.evil.com", b"localhost:80@evil.com", b"user@localhost", b"u:p@localhost"),
    *(b"[::1]x:80", b"[::1", b"::1", b"[::1]:", b"[::g]", b"[]", b"[127.0.0.1]", b"[fe80::1%25eth0]", b"[::1%lo]"),
    *(b"127.0.0.1.", b"127.0.0.1.:80", b"localhost.", b".localhost", b"a..b", b"-a.b", b"a" * 64, b"a" * 300),
    *(
        b"local host",
        b"localhost\x00",
        b"localhost/x",
        b"localhost?x",
        b"localhost#x",
        b"localhost\\x",
        b"http://localhost",
    ),
    *(b"localhost,evil.com", b"local%68ost", "höst".encode(), "localhost：80".encode(), "１２７.0.0.1".encode(), b"*"),
]


@pytest.mark.parametrize(("value", "host"), HOSTS.items())
def test_a_host_is_read_with_or_without_a_port_and_in_any_case(value: bytes, host: str):
    assert authority.host(value) == host


@pytest.mark.parametrize("value", MALFORMED_HOSTS)
def test_what_is_not_wholly_a_host_and_a_port_is_none(value: bytes):
    with pytest.raises(authority.Malformed):
        authority.host(value)


def test_an_origin_is_read_down_to_its_host():
    assert authority.origin(b"http://localhost:3000") == "localhost"
    assert authority.origin(b"HTTPS://[::1]") == "::1"
    assert authority.origin(b"vscode-webview://abc") == "abc"
    assert authority.origin(b"null") is None


@pytest.mark.parametrize(
    "value",
    [
        *(b"", b"localhost", b"localhost:80", b"http://", b"http:localhost", b"://localhost", b"http:///localhost"),
        *(b"http://localhost/", b"http://localhost/x", b"http://localhost?x", b"http://u@localhost"),
        *(b"http://localhost:80.evil.com", b"http://localhost http://evil.com", b"NULL", b"null, null"),
    ],
)
def test_what_is_not_wholly_an_origin_is_none(value: bytes):
    with pytest.raises(authority.Malformed):
        authority.origin(value)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "127.8.8.8", "::1"])
def test_names_of_this_machine_are_loopback(name: str):
    assert authority.is_loopback(name)


@pytest.mark.parametrize("name", ["localhost.evil.com", "evil.com", "0.0.0.0", "::", "10.0.0.1", "127.1", "2130706433"])
def test_other_names_are_not(name: str):
    assert not authority.is_loopback(name)
