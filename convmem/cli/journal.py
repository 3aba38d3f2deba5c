"""The journal: one line an event on stderr, as text or as JSON, in which nothing hides.

What a journal line quotes may come from a caller: a path, a header, a client's name. Control characters could forge
lines or drive the terminal, bidirectional ones could make a line read as another; both are shown as escapes. The
content of messages is never handed to the journal at all.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import TextIO

# C0 and C1 controls, direction marks and isolates, line separators, byte order mark, surrogates, tag characters.
HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
OWN_LOGGER = "convmem"


def visible(text: str) -> str:
    """Return the text with every character that could hide or act shown as its escape: \\n, \\u202e."""
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """The same for a JSON text: the escapes are JSON's own, so the value stays equal."""
    return HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def begin(log_format: str, stream: TextIO) -> None:
    """Send all log records to `stream`, one line each: ours from info on, those of libraries from warning on."""
    handler = logging.StreamHandler(stream)
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


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


class TextLines(logging.Formatter):
    """2026-01-31T08:00:00.000Z info convmem: the event"""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_at(record)} {record.levelname.lower()} {record.name}: {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return visible(line)


class JSONLines(TextLines):
    """{"at": …, "level": …, "logger": …, "event": …}, and "trace" if there was an exception."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return visible_json(json.dumps(line, ensure_ascii=False))
