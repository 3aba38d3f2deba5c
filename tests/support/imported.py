"""Files of other programs, as a test writes them, and what a format reads out of them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from convmem.importers.model import Entry, Format, Message, Notes, Record
from convmem.importers.sources import found


class Found(NamedTuple):
    """What was read."""

    entries: list[Entry]
    records: list[Record]
    notes: Notes

    @property
    def messages(self) -> list[Message]:
        """The messages among the records."""
        return [record for record in self.records if isinstance(record, Message)]

    @property
    def said(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Role, text and tags of each message."""
        return [(message.role, message.content, message.tags) for message in self.messages]


def read(format_: Format, *paths: Path) -> Found:
    """All that a format reads out of these files, each of which is of it by its shape."""
    notes = Notes()
    sources = [source for source in found(paths) if format_.fits(source.sample, source)]
    entries = list(format_.entries(sources, notes))
    return Found(entries, [record for entry in entries for record in entry.read()], notes)


def written(path: Path, value: Any) -> Path:
    """A file of JSON."""
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def lines(path: Path, *values: Any) -> Path:
    """A file of JSON Lines; a text is a line as it stands."""
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in values))
    return path
