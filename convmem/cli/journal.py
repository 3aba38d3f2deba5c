"""The journal: one line an event on stderr, as text or as JSON, in which nothing hides.

What a journal line quotes may come from a caller: a path, a header, a client's name. Control characters could forge
lines or drive the terminal, bidirectional ones could make a line read as another; both are shown as escapes. The
content of messages is never handed to the journal at all, and a token that stands where none belongs (in a path, in a
name) is shown without its secret.

Who starts a process does not always read its stderr, and a full pipe would hold the writing process for ever. So a line
is written only as far as it is taken at once; what is lost is counted, and the count stands before the next line.
"""

import io
import json
import logging
import re
import select
import sys
from datetime import UTC, datetime
from typing import TextIO

# C0 and C1 controls, direction marks and isolates, line separators, byte order mark, surrogates, tag characters.
HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
# A device token (tokens.py), also in capitals: host names are written in either.
TOKEN = re.compile("(cvm_)[0-9A-Za-z_-]{16,}", re.IGNORECASE)
OWN_LOGGER = "convmem"


def visible(text: str) -> str:
    """Return the text with every character that could hide or act shown as its escape: \\n, \\u202e."""
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """The same for a JSON text: the escapes are JSON's own, so the value stays equal."""
    return HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def begin(log_format: str, stream: TextIO) -> None:
    """Send all log records to `stream`, one line each: ours from info on, those of libraries from warning on."""
    handler = Patient(stream)
    handler.setFormatter(JSONLines() if log_format == "json" else TextLines())
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(logging.WARNING)
    logging.getLogger(OWN_LOGGER).setLevel(logging.INFO)


def refusal(sentence: str) -> None:
    """Say why a command was not done: in the journal if there is one, else as a plain line for people."""
    if any(isinstance(handler.formatter, TextLines) for handler in logging.root.handlers):
        logging.getLogger(OWN_LOGGER).error("%s", sentence)
    else:
        print(f"convmem: {visible(sentence)}", file=sys.stderr)


class Patient(logging.Handler):
    """Writes to a stream without ever waiting for whoever reads it.

    A descriptor that says it is ready takes PIPE_BUF bytes at once (POSIX, poll and write), so a line goes in pieces of
    at most that. A code point takes four bytes or less.
    """

    PIECE_CODE_POINTS = select.PIPE_BUF // 4

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._poll = select.poll()
        self._lost_count = 0
        self._is_inside_a_line = False
        try:
            self._poll.register(stream.fileno(), select.POLLOUT)
            self._has_descriptor = True
        except io.UnsupportedOperation:
            self._has_descriptor = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, or count it as lost."""
        text = self.format(record) + "\n"
        if self._lost_count:
            lost = f"lines lost because nobody read them: {self._lost_count}"
            facts = {"name": OWN_LOGGER, "levelno": logging.WARNING, "levelname": "WARNING", "msg": lost}
            text = ("\n" if self._is_inside_a_line else "") + self.format(logging.makeLogRecord(facts)) + "\n" + text
        if self._write(text):
            self._lost_count, self._is_inside_a_line = 0, False
        else:
            self._lost_count += 1

    def _write(self, text: str) -> bool:
        """False if not all of it was taken."""
        for start in range(0, len(text), self.PIECE_CODE_POINTS):
            if self._has_descriptor and not self._poll.poll(0):
                return False
            piece = text[start : start + self.PIECE_CODE_POINTS]
            try:
                self._stream.write(piece)
                self._stream.flush()
            except OSError:  # nobody can read it any more, and there is no other place to say so
                return False
            self._is_inside_a_line = piece[-1] != "\n"
        return True


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


class TextLines(logging.Formatter):
    """2026-01-31T08:00:00.000Z info convmem: the event"""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_at(record)} {record.levelname.lower()} {record.name}: {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return visible(TOKEN.sub(r"\1[…]", line))


class JSONLines(TextLines):
    """{"at": …, "level": …, "logger": …, "event": …}, the facts of a call, and "trace" if there was an exception."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= getattr(record, "facts", {})
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return visible_json(TOKEN.sub(r"\1[…]", json.dumps(line, ensure_ascii=False)))
