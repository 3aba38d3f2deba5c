"""cli/progress: a bar for people at a terminal, silence for everybody else."""

import io
import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import pytest

from convmem.cli import progress


@contextmanager
def terminal() -> Iterator[tuple[int, TextIO]]:
    """The two ends of a terminal: what is shown on the stream can be read from the descriptor once it is closed."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield ours, stream
    os.close(ours)


def shown_on(ours: int, stream: TextIO) -> str:
    """All that was shown. A terminal hands on what it gets piece by piece, so its end is awaited."""
    stream.close()
    pieces: list[bytes] = []
    with suppress(OSError):  # EIO: the other end is closed and nothing is left
        while piece := os.read(ours, 65_536):
            pieces.append(piece)
    return b"".join(pieces).decode()


def test_in_a_pipe_nothing_is_shown(capsys: pytest.CaptureFixture[str]):
    stream = io.StringIO()
    with progress.shown(stream) as tell:
        tell(1, 2, "half of it")
    with progress.shown() as tell:
        tell(1, 2, "half of it")
    assert (stream.getvalue(), *capsys.readouterr()) == ("", "", "")


def test_on_a_terminal_the_sentence_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    with terminal() as (ours, stream):
        with progress.shown(stream) as tell:
            tell(1, 4, "reading [bold]the log\x1b[2J")
        text = shown_on(ours, stream)
    assert "reading [bold]the log\\x1b[2J" in text
    assert "25%" in text


def test_an_unknown_total_is_no_percentage(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    with terminal() as (ours, stream):
        with progress.shown(stream) as tell:
            tell(3, 0, "waiting")
        text = shown_on(ours, stream)
    assert "waiting" in text
    assert "%" not in text


def test_a_bar_goes_away_when_the_work_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")

    def work(stream: TextIO) -> None:
        with progress.shown(stream) as tell:
            tell(1, 2, "half of it")
            raise ValueError

    with terminal() as (ours, stream):
        with pytest.raises(ValueError):
            work(stream)
        # The cursor that the bar had hidden is there again.
        assert shown_on(ours, stream).rindex("\x1b[?25h") > 0
