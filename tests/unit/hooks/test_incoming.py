"""hooks/incoming: stdin is read to its end, never waited for without end, and taken apart strictly."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from convmem.hooks import incoming
from convmem.hooks.incoming import Malformed, read, values
from convmem.limits import HOOK_INPUT_BYTES_MAX


@contextmanager
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A pipe in the place of stdin; the end to write into."""
    reading, writing = os.pipe()
    monkeypatch.setattr(incoming, "STDIN", reading)
    yield writing
    os.close(reading)


def written(monkeypatch: pytest.MonkeyPatch, *pieces: bytes) -> bytes | None:
    with piped(monkeypatch) as writing:

        def write() -> None:
            for piece in pieces:
                view = memoryview(piece)
                while view:
                    view = view[os.write(writing, view) :]
            os.close(writing)

        thread = threading.Thread(target=write)
        thread.start()
        found = read()
        thread.join()
        return found


def test_all_pieces_are_read(monkeypatch: pytest.MonkeyPatch):
    assert written(monkeypatch, b"a", b"b" * 1_000_000, b"c") == b"a" + b"b" * 1_000_000 + b"c"
    assert written(monkeypatch) == b""


def test_too_much_is_read_to_its_end_and_kept_from_nobody(monkeypatch: pytest.MonkeyPatch):
    assert written(monkeypatch, b"x" * HOOK_INPUT_BYTES_MAX) == b"x" * HOOK_INPUT_BYTES_MAX
    assert written(monkeypatch, b"x" * HOOK_INPUT_BYTES_MAX, b"y" * 300_000) is None


def test_a_host_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(incoming, "HOOK_INPUT_SILENCE_MS_MAX", 50)
    with piped(monkeypatch) as writing:
        os.write(writing, b"so far")
        begun = time.monotonic()
        assert read() == b"so far"
        assert time.monotonic() - begun < 5
        os.close(writing)


def test_a_terminal_is_not_read(monkeypatch: pytest.MonkeyPatch):
    ours, theirs = os.openpty()
    monkeypatch.setattr(incoming, "STDIN", theirs)
    os.write(ours, b"typed\n")
    assert read() == b""
    os.close(ours)
    os.close(theirs)


def test_what_cannot_be_read_is_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(incoming, "STDIN", os.open("/", os.O_RDONLY))
    assert read() == b""
    os.close(incoming.STDIN)


def found(data: bytes) -> list[Any]:
    return ["malformed" if isinstance(value, Malformed) else value for value in values(data)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b" \n\r\n\t", []),
        (b'{"a":1}', [{"a": 1}]),
        (b'{\n  "a": 1,\n  "b": [2]\n}\n', [{"a": 1, "b": [2]}]),
        (b'[{"a":1},{"a":2}]', [{"a": 1}, {"a": 2}]),
        (b"[]", []),
        (b'{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
        (b'{"a":1}\r\n\r\n{"a":2}', [{"a": 1}, {"a": 2}]),
        (b'{"a":1}\nnonsense\n{"a":2}\n{"a":', [{"a": 1}, "malformed", {"a": 2}, "malformed"]),
        (b'{"a":1}{"a":2}', ["malformed"]),
        (b'{\n"a":\nnonsense\n}\n', ["malformed"]),
        (b"7", [7]),
        (b'\xef\xbb\xbf{"a":1}', [{"a": 1}]),
        (b'\xef\xbb\xbf{"a":1}\n{"a":2}', [{"a": 1}, {"a": 2}]),
        (b"\xef\xbb\xbf", []),
        (b'{"events":[{"a":1},{"a":2}]}', [{"a": 1}, {"a": 2}]),
        (b'{"events":[{"a":1}],"spool":{"depth":5}}', [{"a": 1}]),
        (b'{"events":[]}', []),
        (b'{"events":{"a":1}}', [{"events": {"a": 1}}]),
        (b'{"events":[1],"prompt":"x"}', [{"events": [1], "prompt": "x"}]),
    ],
)
def test_one_value_an_array_lines_or_what_the_daemon_takes(data: bytes, expected: list[Any]):
    assert found(data) == expected


@pytest.mark.parametrize(
    "data", [b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":' * 70 + b"1" + b"}" * 70, b'{"a":1e999}', b"\xff"]
)
def test_json_is_read_strictly(data: bytes):
    assert found(data) == ["malformed"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rb"cut \ud83d", "cut \ufffd"),
        (rb"\ude00 cut", "\ufffd cut"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\uD83D\uDE00 \uDBFFx", "\U0001f600 \ufffdx"),
        (rb"no escape: \\ud83d, half: \ud83d", "no escape: \\ud83d, half: \ufffd"),
        (rb"\\\ud83d", "\\\ufffd"),
    ],
)
def test_half_a_character_that_a_host_has_cut_is_no_reason_to_lose_the_rest(text: bytes, expected: str):
    assert found(b'{"a":"%b"}' % text) == [{"a": expected}]


def test_mending_takes_time_that_grows_with_the_text_alone():
    begun = time.perf_counter()
    assert found(b'{"a":"' + rb"\ud83d" * 200_000 + b'"}') == [{"a": "\ufffd" * 200_000}]
    assert found(b'{"a":"' + b"\\" * 1_000_001) == ["malformed"]
    assert time.perf_counter() - begun < 5
