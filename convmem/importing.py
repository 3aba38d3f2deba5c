"""Files of other programs into the store: what is found there, conversation by conversation, in the order of time.

    files -> sources -> formats (by shape) -> entries, sorted by time -> records -> batches -> outcomes -> a report

The idea: this side reads and cleans, and whoever holds the store decides. So a file may be on another machine than the
store, and a running daemon does nothing but write. Batches are sent one after another, the next one is made while the
one before is written; what was sent and not answered may be sent again, for each record is known by its source.
"""

import hashlib
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convmem.errors import Invalid
from convmem.import_report import Conversation, Report
from convmem.importers.formats import FORMATS
from convmem.importers.model import THINKING, Entry, Format, Link, Message, Notes, Preference, Record, Section
from convmem.importers.sources import Source, Unreadable, found
from convmem.limits import (
    CONTENT_BYTES_MAX,
    IMPORT_BATCH_BYTES,
    IMPORT_BATCH_RECORDS,
    PROJECT_BYTES_MAX,
    RELATIONS_MAX,
    SESSION_ID_BYTES_MAX,
    SOURCE_NAME_BYTES_MAX,
    SUMMARY_BYTES_MAX,
    TAG_BYTES_MAX,
    TAGS_MAX,
    TOOL_CALL_ID_BYTES_MAX,
)
from convmem.redact.records import cleaned
from convmem.text import cut_to_bytes

CONTINUES = "continues"
CATEGORIES = ("work_style", "coding_pref", "language", "domain", "other")
KINDS_OF_SOURCE = ("explicit", "corrected", "inferred")
# Sections that are made anew from what was captured.
DISTILLED = ("usage_stats", "topics")

Tell = Callable[[float, float, str], None]
Batch = list[dict[str, Any]]
Outcomes = Sequence[Mapping[str, Any]]
# Batches. Each is answered with the outcomes of the one before, the first with None; at the end comes an empty one.
Batches = Generator[Batch, Outcomes | None, None]


class Options(NamedTuple):
    """What a person may say of an import."""

    format: str | None = None
    project: str | None = None
    account: str | None = None
    since_ms: int | None = None
    keeps_thinking: bool = True
    keeps_secrets: bool = False


def batches(paths: Sequence[Path], options: Options, report: Report, tell: Tell) -> Batches:
    """What files hold, in batches to be sent; see Batches. Invalid if a path holds nothing of a format."""
    entries = _entries(paths, options, report)
    outbox = _Outbox(options, report)
    for number, (format_, entry) in enumerate(entries):
        tell(number, len(entries), entry.title or entry.where)
        conversation = report.begin(format_.name, entry)
        for record in _prepared(format_, entry, options, conversation):
            report.refuse_if_stopped()
            if outbox.is_full_with(record):
                yield from outbox.sent()
            outbox.put(record, conversation)
    yield from outbox.sent()
    yield from outbox.settled()
    tell(len(entries), len(entries), "done")


def _entries(paths: Sequence[Path], options: Options, report: Report) -> list[tuple[Format, Entry]]:
    """Every conversation of every source, the oldest first."""
    by_format = _by_format(paths, options, report)
    entries = [(format_, entry) for format_, sources in by_format for entry in format_.entries(sources, report.notes)]
    # What nobody knows the time of comes first: there it hides nothing that is newer.
    return sorted(entries, key=lambda pair: pair[1].at or 0)


def _by_format(paths: Sequence[Path], options: Options, report: Report) -> list[tuple[Format, list[Source]]]:
    known, notes = {format_.name: format_ for format_ in FORMATS}, report.notes
    if options.format is not None and options.format not in known:
        raise Invalid(f"--format is one of {', '.join(known)}", field="format")
    formats = [known[options.format]] if options.format is not None else list(FORMATS)
    sources: dict[str, list[Source]] = {format_.name: [] for format_ in formats}
    for path in paths:
        is_of_any = False
        try:
            for source in found([path]):
                report.refuse_if_stopped()
                name = _format_of(source, formats, notes)
                if name is not None:
                    sources[name].append(source)
                    is_of_any = True
                elif not path.is_file():
                    notes.pass_over("file of no known format")
        except Unreadable as error:
            notes.skip(str(path), str(error))
            is_of_any = True
        if not is_of_any:
            raise Invalid(f"{path} holds nothing of a known format ({', '.join(known)})", field="format")
    return [(format_, sources[format_.name]) for format_ in formats if sources[format_.name]]


def _format_of(source: Source, formats: Sequence[Format], notes: Notes) -> str | None:
    try:
        sample = source.sample
    except Unreadable as error:
        notes.skip(source.name, str(error))
        return None
    return next((format_.name for format_ in formats if format_.fits(sample, source)), None)


class _Outbox:
    """Records that wait to be sent together, and whose conversation each is of."""

    def __init__(self, options: Options, report: Report) -> None:
        self._options, self._report = options, report
        self._records: Batch = []
        self._of: list[Conversation] = []
        self._bytes = 0
        self._unanswered: tuple[Batch, list[Conversation]] = ([], [])

    def is_full_with(self, record: dict[str, Any]) -> bool:
        """True if another one would be too much."""
        is_too_large = self._bytes + _size(record) > IMPORT_BATCH_BYTES
        return bool(self._records) and (is_too_large or len(self._records) >= IMPORT_BATCH_RECORDS)

    def put(self, record: dict[str, Any], conversation: Conversation) -> None:
        """Let a record wait."""
        self._records.append(record if self._options.keeps_secrets else cleaned(record) | {"type": record["type"]})
        self._of.append(conversation)
        self._bytes += _size(record)

    def sent(self) -> Batches:
        """Send what waits."""
        if not self._records:
            return
        outcomes = yield self._records
        self._note(outcomes)
        self._unanswered = self._records, self._of
        self._records, self._of, self._bytes = [], [], 0

    def settled(self) -> Batches:
        """Wait for the outcomes of what was sent last."""
        outcomes = yield []
        self._note(outcomes)

    def _note(self, outcomes: Outcomes | None) -> None:
        for record, conversation, outcome in zip(*self._unanswered, outcomes or (), strict=True):
            self._report.note(conversation, record, outcome)


def _size(record: Mapping[str, Any]) -> int:
    return 512 + len(record.get("content") or "") * 2


def _prepared(format_: Format, entry: Entry, options: Options, conversation: Conversation) -> Iterator[dict[str, Any]]:
    """The records of an entry as they are sent: in the store's own bounds, with times where there are none."""
    at, has_title = entry.at, False
    for record in entry.read():
        conversation.read += 1
        if isinstance(record, Message):
            at = record.at if record.at is not None else at
            if THINKING in record.tags and not options.keeps_thinking:
                conversation.left_out += 1
                continue
        if options.since_ms is not None and ((record.at or at) or 0) < options.since_ms:
            conversation.left_out += 1
            continue
        if not isinstance(record, Message):
            sent = _of_memory(record, options)
            if sent is None:
                conversation.left_out += 1
            else:
                yield sent
            continue
        parts = list(_message(format_.name, record, at, options))
        title = None if has_title else record.title or entry.title
        if title:
            parts[0]["summary"], has_title = _text(title, SUMMARY_BYTES_MAX), True
        conversation.read += len(parts) - 1
        yield from parts


def _message(format_: str, record: Message, at: int | None, options: Options) -> Iterator[dict[str, Any]]:
    """A message, in several parts if it is longer than one may be: each points at the one before."""
    conversation = _name(record.conversation, SOURCE_NAME_BYTES_MAX)
    common: dict[str, Any] = {
        "type": "message",
        "format": format_,
        "conversation": conversation,
        "session_id": _name(f"{format_}:{record.conversation}", SESSION_ID_BYTES_MAX),
        "role": record.role,
        "kind": record.kind,
        "importance": record.importance,
        "tags": [_text(tag, TAG_BYTES_MAX) for tag in (format_, *record.tags)][:TAGS_MAX],
    }
    project = options.project if options.project is not None else record.project
    account = options.account if options.account is not None else record.account
    optional = {
        "account": None if account is None else _name(account, SOURCE_NAME_BYTES_MAX),
        "at": at,
        "project": _text(project or "", PROJECT_BYTES_MAX) or None,
        "tool_call_id": None if not record.tool_call_id else _name(record.tool_call_id, TOOL_CALL_ID_BYTES_MAX),
        "captured": None if record.captured is None else msgspec.to_builtins(record.captured),
    }
    common |= {name: value for name, value in optional.items() if value is not None}
    links = list(record.links[:RELATIONS_MAX])
    own_id = _name(record.id, SOURCE_NAME_BYTES_MAX - 8)
    before: str | None = None
    for number, content in enumerate(_parts(record.content), start=1):
        part_id = own_id if number == 1 else f"{own_id}~{number}"
        said = links if before is None else [Link(CONTINUES, record.conversation, before)]
        yield {**common, "id": part_id, "content": content, **({"links": _links(said, own=before)} if said else {})}
        before = part_id


def _links(links: Sequence[Link], *, own: str | None) -> list[dict[str, str]]:
    return [
        {
            "type": _text(link.type, 64) or "relates to",
            "conversation": _name(link.conversation, SOURCE_NAME_BYTES_MAX),
            "id": link.id if own is not None else _name(link.id, SOURCE_NAME_BYTES_MAX - 8),
        }
        for link in links
    ]


def _parts(content: str) -> Iterator[str]:
    """A text in pieces that a message can hold, cut behind a line where one ends in the last quarter."""
    text = content.encode(errors="replace").decode()
    while len(text) * 4 > CONTENT_BYTES_MAX and len(text.encode()) > CONTENT_BYTES_MAX:
        piece = cut_to_bytes(text, CONTENT_BYTES_MAX)
        line_end = piece.rfind("\n", len(piece) * 3 // 4) + 1
        piece = piece[:line_end] if line_end else piece
        yield piece
        text = text[len(piece) :]
    yield text


def _of_memory(record: Record, options: Options) -> dict[str, Any] | None:
    """A record of memory; None for one that the store makes by itself."""
    facts: dict[str, Any] = {name: value for name, value in msgspec.to_builtins(record).items() if value is not None}
    if isinstance(record, Section):
        name = re.sub("[^a-z0-9_]", "_", record.section.lower())
        return None if name in DISTILLED else {**facts, "section": name[:64]}
    if options.project is not None:
        facts["project"] = options.project
    if isinstance(record, Preference):
        facts["category"] = record.category if record.category in CATEGORIES else "other"
        if record.source not in KINDS_OF_SOURCE:
            facts.pop("source", None)
    return facts


def _text(text: str, bytes_max: int) -> str:
    """A name or a label in the store's bounds."""
    return cut_to_bytes(text.encode(errors="replace").decode().replace("\0", ""), bytes_max)


def _name(text: str, bytes_max: int) -> str:
    """An id in the store's bounds; one that is not within them keeps its beginning and ends in its hash."""
    plain = text.encode(errors="replace").decode().replace("\0", "")
    if plain == text and 1 <= len(text.encode()) <= bytes_max:
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{cut_to_bytes(plain, bytes_max - 33)}-{digest}"
