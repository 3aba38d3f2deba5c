"""addresses: an address is parsed once and as a whole."""

import pytest

from convmem import addresses
from convmem.addresses import Address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8484", Address("127.0.0.1", 8484)),
        ("0.0.0.0:80", Address("0.0.0.0", 80)),
        ("localhost:0", Address("localhost", 0)),
        ("LOCALHOST:1", Address("localhost", 1)),
        ("[::1]:8484", Address("::1", 8484)),
        ("[0:0:0:0:0:0:0:1]:65535", Address("::1", 65535)),
        ("central.example.:9", Address("central.example", 9)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: Address):
    assert addresses.parse(text) == address


@pytest.mark.parametrize("text", ["127.0.0.1:8484", "[::1]:8484", "central.example:0"])
def test_an_address_is_written_as_it_is_read(text: str):
    assert str(addresses.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "8484", ":8484", "127.0.0.1", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1: 8484"),
        *("127.0.0.1:8484 ", "127.0.0.1:84x", "127.0.0.1:٣٣", "::1:8484", "[::1]", "[::1]x:1", "[127.0.0.1]:1"),
        *("[]:1", "127.0.0.1:1.evil.example:1", "user@localhost:1", "300.1.1.1:1", "127.1:1", "http://localhost:1"),
        *("-x:1", "a..b:1", "a b:1", "x/y:1", "127.0.0.1:1\n", "*:1", f"{'a' * 64}:1"),
    ],
)
def test_what_only_resembles_an_address_is_refused(text: str):
    with pytest.raises(ValueError, match="is "):
        addresses.parse(text)


def test_a_port_without_a_host_is_refused_with_both_readings():
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:80 is this machine, 0\.0\.0\.0:80 everybody"):
        addresses.parse(":80")


@pytest.mark.parametrize("text", ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "localhost:1"])
def test_loopback_is_what_only_this_machine_reaches(text: str):
    assert addresses.parse(text).is_loopback


@pytest.mark.parametrize(
    "text", ["0.0.0.0:1", "[::]:1", "192.168.1.2:1", "localhost.example:1", "[::ffff:10.0.0.1]:1", "[fe80::1]:1"]
)
def test_everything_else_is_not_loopback(text: str):
    assert not addresses.parse(text).is_loopback


def test_a_host_has_one_spelling():
    assert addresses.host("Central.Example.") == "central.example"
    assert addresses.host("[::1]") == addresses.host("0::1") == "::1"


def test_a_host_with_a_port_is_told_to_leave_it_out():
    with pytest.raises(ValueError, match="leave the port out"):
        addresses.host("central.example:443")


@pytest.mark.parametrize("text", ["", "localhost", "10.0.0.0/8", "10.0.0.256", "1"])
def test_what_is_no_ip_address_is_refused(text: str):
    with pytest.raises(ValueError, match="is no IP address"):
        addresses.ip(text)
