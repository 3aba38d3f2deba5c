"""Files of conversations, one object each: where each of them stands, found once and read again when its turn comes.

The same conversation stands in each export of an account, and now and then twice in one of several files: the one that
was changed last counts. Between finding and reading only its place and its title are kept.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from convmem.importers import splitting
from convmem.importers.model import Entry, Notes, Record
from convmem.importers.sources import Source, Unreadable

# Characters of private use, which programs put where sources were cited.
CITATION = re.compile("\ue200[^\ue201]*\ue201|【[^【】]*†[^【】]*】")
PRIVATE, MARKED = re.compile("[\ue200-\ue206]"), re.compile("[\ue200-\ue206†]")


class Facts(NamedTuple):
    """What a format says of an object: the conversation's id, and when it began and was changed last; or why it is not
    taken in.
    """

    id: str | None
    title: str | None
    at: int | None = None
    changed_at: int | None = None
    refused: str | None = None


class Standing(NamedTuple):
    """Where a conversation stands, and what is known of it without its messages."""

    source: Source
    offset: int
    size: int
    facts: Facts

    @property
    def where(self) -> str:
        """The same for people."""
        return f"{self.source.name}: {self.facts.title or self.facts.id}"


# Of an object: None if it is no conversation at all.
Look = Callable[[Mapping[str, Any]], Facts | None]
Read = Callable[[Standing, Mapping[str, Any]], Iterator[Record]]


def entries(
    sources: Sequence[Source], is_wanted: Callable[[Any], bool], look: Look, read: Read, notes: Notes
) -> Iterator[Entry]:
    """An entry for each conversation. `is_wanted` tells one by its shape, behind damage; `read` makes its records."""
    known: dict[str, Standing] = {}
    for source in sources:
        try:
            with source.opened() as file:
                for found in splitting.objects(file, source.name, is_wanted, notes):
                    _note(known, source, found, look(found.value), notes)
        except Unreadable as error:
            notes.skip(source.name, str(error))
    for standing in known.values():
        yield Entry(standing.where, standing.facts.at, partial(_records, standing, read, notes), standing.facts.title)


def _note(
    known: dict[str, Standing], source: Source, found: splitting.Found, facts: Facts | None, notes: Notes
) -> None:
    if facts is None:
        notes.pass_over("object that is no conversation")
        return
    where = f"{source.name}: {facts.title or facts.id or f'byte {found.offset}'}"
    if facts.refused is not None:
        notes.skip(where, facts.refused)
    elif facts.id is None:
        notes.skip(where, "the conversation has no id")
    else:
        before = known.get(facts.id)
        if before is None or (facts.changed_at or 0) >= (before.facts.changed_at or 0):
            known[facts.id] = Standing(source, found.offset, found.size, facts)


def _records(standing: Standing, read: Read, notes: Notes) -> Iterator[Record]:
    try:
        with standing.source.opened() as file:
            value = splitting.read(file, (standing.offset, standing.size))
    except (Unreadable, ValueError) as error:
        notes.skip(standing.where, f"it cannot be read any more: {error}")
        return
    count = 0
    for record in read(standing, value):
        count += 1
        yield record
    if not count:
        notes.pass_over("empty conversation")


def without_marks(words: str) -> str:
    """A text without what pointed at sources, and without the marks around words, which stay."""
    return PRIVATE.sub("", CITATION.sub("", words)) if MARKED.search(words) else words


def text(value: Any) -> str | None:
    """A text that says something; None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def texts(value: Any) -> list[str]:
    """The texts of a list."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def compact_json(value: Any) -> str:
    """A value as its JSON, without white space."""
    return msgspec.json.encode(value).decode(errors="replace")
