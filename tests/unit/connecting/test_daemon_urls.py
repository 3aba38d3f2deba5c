"""connecting/daemon_urls: a URL is meant as a whole or refused, and a secret in it is never said again."""

import pytest

from convmem.addresses import Address
from convmem.connecting import daemon_urls


@pytest.mark.parametrize(
    ("text", "profile", "url", "is_loopback"),
    [
        ("http://127.0.0.1:8484", None, "http://127.0.0.1:8484/mcp", True),
        ("http://localhost:8484/", "all", "http://localhost:8484/mcp/all", True),
        ("http://[::1]:8484/mcp", "memory", "http://[::1]:8484/mcp/memory", True),
        ("https://central/mcp/tables/", None, "https://central/mcp/tables", False),
        ("https://central/mcp/tables", "tables", "https://central/mcp/tables", False),
        ("HTTPS://Central.example/notes/mcp", "all", "https://Central.example/notes/mcp/all", False),
        ("http://127.0.0.1.example:1/own/path", None, "http://127.0.0.1.example:1/own/path", False),
    ],
)
def test_a_url_is_completed_with_the_path_of_the_profile(text: str, profile: str | None, url: str, is_loopback: bool):
    read = daemon_urls.read(text, profile)
    assert (read.url, read.is_loopback) == (url, is_loopback)
    assert read.is_encrypted is url.startswith("https:")
    assert daemon_urls.read(read.base, profile) == read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no URL"),
        ("127.0.0.1:8484", "no URL"),
        ("ftp://central", "no URL"),
        ("http://", "no URL"),
        ("http://:8484", "no URL"),
        ("http://central:0", "no URL"),
        ("http://central:65536", "no URL"),
        ("http://[::1", "no URL"),
        ("http://me:hunter2@central", "user or a password"),
        ("http://hunter2@central", "user or a password"),
        ("http://@central", "user or a password"),
        ("http://central/mcp?token=hunter2", "query"),
        ("http://central/mcp?", "query"),
        ("http://central/mcp#hunter2", "fragment"),
        ("http://central/cvm_hunter2/mcp", "token does not belong"),
        ("http://central/${HOME}/hunter2", "no blanks"),
        ("http://central/{env:HOME}", "no blanks"),
        ("http://central/ hunter2", "no blanks"),
        ("http://central/\nhunter2", "no blanks"),
        ("http://céntral", "no blanks"),
        ("http://-central", "no host name"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_a_secret_is_not_quoted(text: str, said: str):
    with pytest.raises(ValueError, match=said) as caught:
        daemon_urls.read(text, None)
    assert "hunter2" not in str(caught.value)


def test_a_profile_needs_a_path_that_it_can_follow():
    for text in ("http://central/mcp/tables", "http://central/own"):
        with pytest.raises(ValueError, match="--profile"):
            daemon_urls.read(text, "memory")


def test_whoever_listens_everywhere_is_called_on_this_machine():
    assert daemon_urls.of_bind(Address("0.0.0.0", 1), None).url == "http://127.0.0.1:1/mcp"
    assert daemon_urls.of_bind(Address("::", 1), "all").url == "http://[::1]:1/mcp/all"
    assert daemon_urls.of_bind(Address("10.0.0.5", 1), None).is_loopback is False
    with pytest.raises(ValueError, match="any free port"):
        daemon_urls.of_bind(Address("127.0.0.1", 0), None)
