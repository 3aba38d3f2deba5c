"""hooks/target: which daemon is meant, where it may listen, and what it is told of us."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from convmem.hooks.options import parse
from convmem.hooks.target import Misplaced, Target, address_of, target_of


def meant(*arguments: str, directory: str = "/", **environment: str) -> Target:
    return target_of(parse(arguments), {"HOME": "/h/a", **environment}, directory)


@pytest.mark.parametrize(
    ("arguments", "environment", "name"),
    [
        ([], {}, "/h/a/.local/share/convmem/convmem.sock"),
        ([], {"XDG_DATA_HOME": "/data"}, "/data/convmem/convmem.sock"),
        ([], {"CONVMEM_DATA_DIR": "/b"}, "/b/convmem.sock"),
        (["--data-dir", "/c"], {"CONVMEM_DATA_DIR": "/b"}, "/c/convmem.sock"),
        (["--data-dir", "d"], {}, "/cwd/d/convmem.sock"),
        ([], {"CONVMEM_DATA_DIR": "/b", "CONVMEM_URL": "http://h:1"}, "http://h:1"),
        (["--data-dir", "/c"], {"CONVMEM_URL": "http://h:1"}, "/c/convmem.sock"),
        (["--url", "http://g:2"], {"CONVMEM_URL": "http://h:1"}, "http://g:2"),
        (["--url", "http://g:2"], {"CONVMEM_URL": "", "CONVMEM_DATA_DIR": ""}, "http://g:2"),
    ],
)
def test_a_flag_goes_before_a_variable_and_a_url_before_a_directory(
    arguments: list[str], environment: dict[str, str], name: str
):
    assert meant(*arguments, directory="/cwd", **environment).name == name


def test_a_directory_has_one_name_however_it_is_reached(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    names = {meant("--data-dir", text, directory=str(tmp_path)).name for text in ("link", "real", "./real/../link")}
    assert names == {str(tmp_path / "real" / "convmem.sock")}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:8484", "http://host:8484"),
        ("http://HOST:8484/mcp", "http://host:8484"),
        ("http://host:8484/mcp/memory", "http://host:8484"),
        ("http://host:8484/", "http://host:8484"),
        ("http://host", "http://host"),
        ("http://host:80", "http://host"),
        ("https://host:443/a/mcp", "https://host/a"),
        ("http://[::1]:8484/mcp", "http://[::1]:8484"),
    ],
)
def test_a_url_has_one_name_however_it_is_written(url: str, shown: str):
    assert str(address_of(url)) == shown


@pytest.mark.parametrize(
    "url",
    [
        *("host:8484", "ftp://host", "http://", "http://host:0", "http://host:65536", "http://host:x"),
        *("http://user:password@host", "http://host?a=1", "http://host#a", "http://host/a b", "http://host\r\nX: 1"),
        *("http://hos\nt", "http://host:8484/mcp\r\nEvil: 1", "http://[::1", "http://höst"),
    ],
)
def test_what_is_no_url_is_refused_without_repeating_it(url: str):
    with pytest.raises(Misplaced, match=r"^the URL is not one like http://host:8484$"):
        address_of(url)


@pytest.mark.parametrize(
    ("url", "is_near"),
    [
        ("http://127.0.0.1:8484", True),
        ("http://localhost:8484", True),
        ("http://[::1]:8484", True),
        ("https://127.0.0.1:8484", False),
        ("http://192.168.0.2:8484", False),
        ("http://convmem.example", False),
        ("http://127.0.0.1.evil.example", False),
    ],
)
def test_only_this_machine_is_asked_while_a_host_waits(url: str, is_near: bool):
    assert meant("--url", url).is_near is is_near
    assert meant().is_near


def test_the_lock_is_read_only_where_the_local_socket_was_of_no_use(tmp_path: Path):
    target = meant("--data-dir", str(tmp_path))
    addresses = target.addresses()
    assert next(addresses).socket == str(tmp_path / "convmem.sock")
    lock = {"pid": os.getpid(), "socket": "/run/other.sock", "url": "http://127.0.0.1:9/mcp"}
    (tmp_path / "store.lock").write_text(json.dumps(lock))
    assert [str(address) for address in addresses] == ["/run/other.sock", "http://127.0.0.1:9"]


def test_a_lock_that_says_the_socket_again_is_not_followed_twice(tmp_path: Path):
    target = meant("--data-dir", str(tmp_path))
    (tmp_path / "store.lock").write_text(json.dumps({"pid": os.getpid(), "socket": str(tmp_path / "convmem.sock")}))
    assert [str(address) for address in target.addresses()] == [str(tmp_path / "convmem.sock")]


def test_what_a_dead_process_left_in_the_lock_is_not_believed(tmp_path: Path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    (tmp_path / "store.lock").write_text(json.dumps({"pid": gone.pid, "url": "http://127.0.0.1:9/mcp"}))
    assert len(list(meant("--data-dir", str(tmp_path)).addresses())) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "7", '{"pid": "1"}', '{"pid": 1.5, "url": "http://a"}', '{"url": "http://a"}', "\udcff"),
        f'{{"pid": {2**70}}}',
        f'{{"pid": {os.getpid()}, "url": 7, "socket": "relative"}}',
        f'{{"pid": {os.getpid()}, "url": "nonsense", "socket": null}}',
    ],
)
def test_a_lock_that_says_nothing_useful_names_no_address(tmp_path: Path, text: str):
    (tmp_path / "store.lock").write_bytes(os.fsencode(text))
    assert len(list(meant("--data-dir", str(tmp_path)).addresses())) == 1


def test_a_directory_whose_socket_path_is_too_long_still_has_a_name(tmp_path: Path):
    directory = tmp_path / ("d" * 120)
    directory.mkdir()
    target = meant("--data-dir", str(directory))
    assert target.name == str(directory / "convmem.sock")
    assert list(target.addresses()) == []


def test_a_file_names_the_token_before_a_variable_does(tmp_path: Path):
    (tmp_path / "token").write_bytes(b"from a file\r\n")
    target = meant("--url", "http://a", "--token-file", "token", directory=str(tmp_path), CONVMEM_TOKEN="x")
    assert target.token() == b"from a file"
    (tmp_path / "token").write_bytes(b"mended\n")
    assert target.token() == b"mended"
    assert meant("--url", "http://a", CONVMEM_TOKEN="x").token() == b"x"
    assert meant("--url", "http://a").token() is None


def test_the_token_of_this_machines_daemon_is_for_that_alone(tmp_path: Path):
    (tmp_path / "token").write_bytes(b"file\n")
    assert meant(CONVMEM_HTTP_TOKEN="own").token() == b"own"
    assert meant(CONVMEM_HTTP_TOKEN_FILE=str(tmp_path / "token")).token() == b"file"
    assert meant(CONVMEM_HTTP_TOKEN="own", CONVMEM_TOKEN="client").token() == b"client"
    assert meant("--url", "http://a", CONVMEM_HTTP_TOKEN="own").token() is None


@pytest.mark.parametrize("data", [b"", b"\n", b" a", b"a ", b"a\r\nX: 1", b"a\x00b", b"x" * 5000])
def test_a_token_that_no_header_can_hold_is_not_sent(tmp_path: Path, data: bytes):
    (tmp_path / "token").write_bytes(data)
    with pytest.raises(Misplaced, match="the token"):
        meant("--url", "http://a", "--token-file", str(tmp_path / "token")).token()


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(Misplaced, match="is not there"):
        meant("--url", "http://a", "--token-file", str(tmp_path / "token")).token()
    with pytest.raises(Misplaced, match="cannot be read"):
        meant("--url", "http://a", "--token-file", str(tmp_path)).token()


@pytest.mark.parametrize("arguments", [["--url", "nonsense"], ["--data-dir", "a\0b"]])
def test_what_names_no_daemon_is_refused(arguments: list[str]):
    with pytest.raises(Misplaced):
        meant(*arguments)


def test_a_user_without_a_home_must_name_a_daemon(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("convmem.data_dir.default", lambda environment: None)
    with pytest.raises(Misplaced, match="no home directory"):
        meant()
