"""tokens: a secret is shown once and never kept, what was revoked is known at once, damage opens no door."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from convmem import tokens
from convmem.errors import Busy, Conflict, DiskFault, Invalid, NotFound
from convmem.files import lock
from convmem.limits import TOKENS_MAX
from convmem.tokens import TokenBook
from tests.support.manual_clock import ManualClock


def made(directory: Path, name: str) -> str:
    return tokens.create(directory, name, "write", None, ManualClock()).secret


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def test_the_file_does_not_hold_the_secret_and_is_for_its_owner_alone(tmp_path: Path):
    secret = made(tmp_path, "laptop")
    assert len(secret) == len("cvm_") + 43
    held = (tmp_path / tokens.FILE).read_text()
    assert secret not in held
    assert secret.removeprefix("cvm_") not in held
    assert (tmp_path / tokens.FILE).stat().st_mode & 0o777 == 0o600
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_a_book_knows_whose_secret_it_is_and_when_it_was_used(tmp_path: Path):
    clock = ManualClock()
    laptop = tokens.create(tmp_path, "laptop", "read", "memory", clock)
    server = tokens.create(tmp_path, "server", "admin", None, clock)
    assert (laptop.is_first, server.is_first) == (True, False)
    book = TokenBook(tmp_path, clock)
    found = book.find(digest(laptop.secret))
    assert found is not None
    assert (found.name, found.scope, found.profile) == ("laptop", "read", "memory")
    assert book.find(digest("cvm_other")) is None
    assert book.last_used_ms == {"laptop": clock.now_ms()}


def test_what_is_made_or_revoked_beside_a_book_counts_at_once(tmp_path: Path):
    book = TokenBook(tmp_path, ManualClock())
    assert not book.is_needed
    first, second = made(tmp_path, "first"), made(tmp_path, "second")
    assert book.is_needed
    assert book.find(digest(first)) is not None
    assert tokens.revoke(tmp_path, "first") == 1
    assert book.find(digest(first)) is None
    assert book.find(digest(second)) is not None
    assert tokens.revoke(tmp_path, "second") == 0


def test_the_last_token_that_is_revoked_opens_no_door(tmp_path: Path):
    secret = made(tmp_path, "laptop")
    book = TokenBook(tmp_path, ManualClock())
    tokens.revoke(tmp_path, "laptop")
    assert book.is_needed
    assert book.find(digest(secret)) is None
    (tmp_path / tokens.FILE).unlink()
    assert not book.is_needed


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{}x",
        b"\xff",
        b"[]",
        b'{"version": 2, "tokens": []}',
        b'{"tokens": [{"name": "a", "sha256": "zz", "created_at_ms": 1}]}',
        b'{"tokens": [{"name": "a", "sha256": "00", "created_at_ms": 1, "more": 1}]}',
        b" " * (1 << 20) + b"{}",
    ],
)
def test_a_damaged_file_admits_nobody_and_still_asks_for_a_token(tmp_path: Path, damage: bytes):
    secret = made(tmp_path, "laptop")
    book = TokenBook(tmp_path, ManualClock())
    whole = (tmp_path / tokens.FILE).read_bytes()
    (tmp_path / tokens.FILE).write_bytes(damage)
    assert book.is_needed
    assert book.find(digest(secret)) is None
    assert TokenBook(tmp_path, ManualClock()).is_needed
    (tmp_path / tokens.FILE).write_bytes(whole)
    assert book.find(digest(secret)) is not None


def test_a_file_that_may_not_be_read_admits_nobody(tmp_path: Path):
    secret = made(tmp_path, "laptop")
    (tmp_path / tokens.FILE).unlink()
    (tmp_path / tokens.FILE).mkdir()
    book = TokenBook(tmp_path, ManualClock())
    assert book.is_needed
    assert book.find(digest(secret)) is None


@pytest.mark.parametrize("kind", ["pipe", "dangling link"])
def test_what_is_no_file_admits_nobody_and_nobody_waits_for_it(tmp_path: Path, kind: str):
    secret = made(tmp_path, "laptop")
    book = TokenBook(tmp_path, ManualClock())
    place = tmp_path / tokens.FILE
    place.unlink()
    os.mkfifo(place) if kind == "pipe" else place.symlink_to("nowhere")
    for _ in range(2):
        assert book.is_needed
        assert book.find(digest(secret)) is None
    with pytest.raises(ValueError, match="regular"):
        tokens.read(tmp_path)
    place.unlink()
    assert not book.is_needed


def test_a_damaged_file_is_not_written_over(tmp_path: Path):
    (tmp_path / tokens.FILE).write_bytes(b"{")
    with pytest.raises(DiskFault, match="not one of ours"):
        made(tmp_path, "laptop")
    assert (tmp_path / tokens.FILE).read_bytes() == b"{"


@pytest.mark.parametrize("name", ["", "env", "local", " a", "a ", "a\nb", "a\x00", "\u202ea", "é" * 33])
def test_a_name_that_cannot_be_shown_or_means_something_else_is_refused(tmp_path: Path, name: str):
    with pytest.raises(Invalid):
        made(tmp_path, name)
    assert not (tmp_path / tokens.FILE).exists()


def test_a_name_stands_for_one_token(tmp_path: Path):
    made(tmp_path, "書斎")
    with pytest.raises(Conflict, match="revoke it first"):
        made(tmp_path, "書斎")
    with pytest.raises(NotFound):
        tokens.revoke(tmp_path, "laptop")


def test_many_who_make_tokens_at_once_all_get_one(tmp_path: Path):
    with ThreadPoolExecutor(8) as threads:
        secrets = list(threads.map(lambda number: made(tmp_path, f"device {number}"), range(24)))
    book = TokenBook(tmp_path, ManualClock())
    assert {book.find(digest(secret)) for secret in secrets} == set(tokens.read(tmp_path))
    assert len(tokens.read(tmp_path)) == 24


def test_two_who_change_the_tokens_at_once_lose_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tokens, "LOCK_TRIES", 2)
    held = lock(tmp_path / tokens.LOCK)
    assert held is not None
    with pytest.raises(Busy):
        made(tmp_path, "laptop")
    held.close()
    made(tmp_path, "laptop")


def test_there_is_an_end_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert TOKENS_MAX >= 100
    monkeypatch.setattr(tokens, "TOKENS_MAX", 2)
    made(tmp_path, "a")
    made(tmp_path, "b")
    with pytest.raises(Invalid, match="2 tokens already"):
        made(tmp_path, "c")


def test_a_file_that_is_replaced_by_another_of_the_same_size_is_seen(tmp_path: Path):
    first = made(tmp_path, "a")
    book = TokenBook(tmp_path, ManualClock())
    assert book.find(digest(first)) is not None
    tokens.revoke(tmp_path, "a")
    second = made(tmp_path, "b")
    os.utime(tmp_path / tokens.FILE)
    assert book.find(digest(first)) is None
    assert book.find(digest(second)) is not None
