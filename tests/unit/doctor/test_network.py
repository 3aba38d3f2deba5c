"""doctor/network: which hosts a proxy is passed by for, and what is this machine."""

import pytest

from convmem.clock import SystemClock
from convmem.doctor import network
from convmem.doctor.visit import Visit

EXCEPTED = [
    ("127.0.0.1", "127.0.0.1", True),
    ("127.0.0.1", "localhost,127.0.0.1:8484", True),
    ("127.0.0.1", "127.0.0.1:1", False),
    ("::1", "[::1]", True),
    ("memory.example", "example", True),
    ("memory.example", ".example", True),
    ("memory.example", "*.example", True),
    ("memory.example", "Memory.Example", True),
    ("memory.example", "ory.example", False),
    ("memory.example", "other, ,", False),
    ("memory.example", "*", True),
    ("memory.example", "", False),
]


@pytest.mark.parametrize(("host", "no_proxy", "is_excepted"), EXCEPTED)
def test_no_proxy_is_read_as_clients_read_it(host: str, no_proxy: str, is_excepted: bool):
    authority = f"[{host}]" if ":" in host else host
    environment = {"HTTP_PROXY": "http://proxy:1", "NO_PROXY": no_proxy}
    visit = Visit(f"http://{authority}:8484", environment, SystemClock())
    list(network.url(visit))
    (finding,) = network.proxy(visit)
    assert finding.name == ("proxy-passed-by" if is_excepted else "proxy-in-the-way")
    if not is_excepted:
        # What it says to set does what it says.
        mended = {**environment, "NO_PROXY": finding.change.removeprefix("export NO_PROXY=")}
        (again,) = network.proxy(Visit(visit.url, mended, SystemClock(), target=visit.target))
        assert again.name == "proxy-passed-by"


@pytest.mark.parametrize(
    ("host", "is_this_machine"),
    [("localhost", True), ("127.0.0.9", True), ("::1", True), ("a.localhost", True), ("10.0.0.1", False), ("x", False)],
)
def test_loopback_is_known_by_name_and_address(host: str, is_this_machine: bool):
    assert network.is_loopback(host) is is_this_machine


URLS = {
    "http://127.0.0.1:8484": "http://127.0.0.1:8484/mcp",
    "http://127.0.0.1:8484/mcp/": "http://127.0.0.1:8484/mcp",
    "http://localhost:8484/mcp/memory": "http://localhost:8484/mcp/memory",
    "https://memory.example": "https://memory.example/mcp",
    "https://memory.example/behind/a/proxy": "https://memory.example/behind/a/proxy/mcp",
    "https://[2001:db8::1]:8484/behind/mcp/all": "https://[2001:db8::1]:8484/behind/mcp/all",
}


@pytest.mark.parametrize("url", URLS)
def test_a_url_names_an_endpoint_whether_it_says_so_or_not(url: str):
    visit = Visit(url, {}, SystemClock())
    list(network.url(visit))
    assert visit.url_of() == URLS[url]


@pytest.mark.parametrize("url", ["", "8484", "ftp://x", "http://u:p@x", "http://x?k=v", "http://x#f", "http://x:0"])
def test_what_is_no_url_of_a_daemon_is_not_repeated(url: str):
    (finding,) = network.url(Visit(url, {}, SystemClock()))
    assert finding.name == "url-invalid"
    assert finding.seen == "the argument is not one like http://host:8484"
