"""data_dir: the same answers as the settings give, without reading any."""

import os
import pwd
import sys
from pathlib import Path

import platformdirs
import pytest

from convmem import config, data_dir


@pytest.mark.parametrize(
    "variables",
    [
        {"HOME": "/somewhere"},
        {"HOME": "/somewhere", "XDG_DATA_HOME": "/data"},
        {"HOME": "/somewhere", "XDG_DATA_HOME": "relative"},
        {"HOME": "/somewhere", "XDG_DATA_HOME": ""},
        {"XDG_DATA_HOME": "/data"},
        {"HOME": ""},
        {},
    ],
)
def test_the_data_directory_is_that_of_the_platform(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    for name in ("HOME", "XDG_DATA_HOME", "ANDROID_DATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert data_dir.default(variables) == platformdirs.user_data_dir("convmem", appauthor=False)


def test_what_only_the_library_knows_is_left_to_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "another")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert data_dir.default({}) == platformdirs.user_data_dir("convmem", appauthor=False)


def test_on_a_mac_it_is_where_programs_of_that_system_keep_theirs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert data_dir.default({"HOME": "/Users/a"}) == "/Users/a/Library/Application Support/convmem"


def test_a_home_that_is_no_path_is_none():
    assert data_dir.default({"HOME": "here"}) is None


def test_without_the_variable_the_system_says_where_home_is(monkeypatch: pytest.MonkeyPatch):
    assert data_dir.known_home() == pwd.getpwuid(os.getuid()).pw_dir

    def nobody(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert data_dir.known_home() == ""
    assert data_dir.default({}) is None
    assert data_dir.default({"HOME": "/h"}) == "/h/.local/share/convmem"


@pytest.mark.parametrize("length", [10, 80, 120])
@pytest.mark.parametrize("runtime", ["/run/user/1", "", "relative", "/run/" + "x" * 100])
def test_the_socket_is_where_the_daemon_puts_it(tmp_path: Path, length: int, runtime: str):
    directory = Path("/tmp") / ("d" * length)
    variables = {"XDG_RUNTIME_DIR": runtime, "HOME": str(tmp_path)}
    settings = config.load({"data_dir": str(directory)}, variables, tmp_path)
    found = data_dir.socket_path(str(directory), variables)
    assert (None if found is None else Path(found)) == settings.socket
    assert (found is None) == (length > 85 and runtime != "/run/user/1")
