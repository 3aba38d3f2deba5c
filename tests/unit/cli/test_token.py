"""cli/token: made, listed and revoked on the file alone; the secret stands on stdout once and nowhere else."""

import json
from pathlib import Path

import pytest

from convmem.cli import run
from tests.support.pages import blocks, page


def asked(tmp_path: Path, *words: str) -> int:
    return run(["token", *words, "--data-dir", str(tmp_path / "data")], {}, tmp_path)


def test_a_token_is_shown_once_and_the_first_says_what_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert asked(tmp_path, "create", "laptop") == 0
    shown = capsys.readouterr()
    secret = shown.out.strip()
    assert secret.startswith("cvm_")
    assert "\n" not in secret
    assert secret not in shown.err
    assert "asks every caller over TCP for a token" in shown.err
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert asked(tmp_path, "create", "server", "--scope", "read", "--profile", "memory") == 0
    assert "asks every caller" not in capsys.readouterr().err
    assert asked(tmp_path, "list") == 0
    shown = capsys.readouterr()
    assert [line.split("\t")[:3] for line in shown.out.splitlines()] == [
        ["laptop", "write", "any"],
        ["server", "read", "memory"],
    ]
    assert secret not in shown.out


def test_for_programs_it_answers_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert asked(tmp_path, "create", "laptop", "--scope", "admin", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert {**made, "token": "…"} == {"name": "laptop", "scope": "admin", "profile": None, "token": "…"}
    assert asked(tmp_path, "list", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)["tokens"]
    assert set(listed) == {"name", "scope", "profile", "created_at_ms"}


def test_a_revoked_token_is_gone_and_its_name_is_free(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert asked(tmp_path, "create", "laptop") == 0
    assert asked(tmp_path, "revoke", "laptop") == 0
    shown = capsys.readouterr()
    assert shown.out.endswith("revoked; 0 left\n")
    assert "Nobody comes in over TCP now" in shown.err
    assert asked(tmp_path, "create", "laptop") == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "env"), "name must be"),
        (("revoke", "nobody"), "are no tokens"),
    ],
)
def test_what_cannot_be_is_one_line_and_a_failure(
    tmp_path: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
):
    assert asked(tmp_path, *words) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "a", "--scope", "root"), "read, write, admin"),
        (("create", "a", "--profile", "none"), "--profile is one"),
    ],
)
def test_a_wrong_word_is_wrong_usage(
    tmp_path: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
):
    assert asked(tmp_path, *words) == 2
    assert said in capsys.readouterr().err


def test_a_damaged_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "tokens.json").write_bytes(b"{")
    assert asked(tmp_path, "list") == 1
    assert "tokens.json" in capsys.readouterr().err


def test_the_page_shows_commands_that_work(tmp_path: Path):
    (block,) = blocks(page("devices.md"), "sh")
    for line in block.strip().splitlines():
        program, verb, *words = line.split()
        assert (program, verb) == ("convmem", "token")
        assert asked(tmp_path, *words) == 0
