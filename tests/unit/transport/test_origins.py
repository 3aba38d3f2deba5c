"""Tests of what a caller is called."""

from typing import Any

import pytest

from convmem.limits import CLIENT_BYTES_MAX
from convmem.transport.origins import client_of, label


def test_a_header_is_kept_as_it_is_if_it_is_clean_and_short():
    assert label(b"claude-code/2.1.317 (linux; x64)") == "claude-code/2.1.317 (linux; x64)"
    assert label("Größe/1".encode()) == "Größe/1"


def test_controls_and_marks_of_direction_are_dropped():
    assert label("a\x00\x1b[31mb\r\n\u202ec\u2066d\u200e".encode()) == "a[31mbcd"
    assert label(b"\x00 \x7f") is None
    assert label(b"") is None


def test_a_label_is_cut_by_bytes_without_splitting_a_character():
    assert label(b"a" * 500) == "a" * CLIENT_BYTES_MAX
    cut = label("aé".encode() * 500)
    assert cut is not None
    assert len(cut.encode()) == CLIENT_BYTES_MAX - 1
    assert set(cut) == {"a", "é"}
    assert len(label("😀".encode() * 500).encode()) == CLIENT_BYTES_MAX


def test_bytes_that_are_no_text_do_no_harm():
    assert label(b"caf\xe9/1") == "caf\ufffd/1"


@pytest.mark.parametrize(
    ("client_info", "client"),
    [
        ({"name": "codex", "version": "0.165"}, "codex/0.165"),
        ({"name": "codex"}, "codex"),
        ({"name": 5, "version": "1"}, "1"),
        ({"name": "", "version": ""}, None),
        ({}, None),
        (None, None),
        ("codex", None),
    ],
)
def test_a_client_info_is_name_and_version(client_info: Any, client: str | None):
    assert client_of(client_info) == client
