"""OpenAI Codex's rollouts: a file of lines a session, in three layouts, with forks that copy what was before them.

    {timestamp, type, payload}          the envelope: session_meta, response_item, event_msg, compacted, …
    {id, timestamp, instructions}       a bare first line, and bare items behind it
    {created_at, role, message}         the oldest, flat

The idea: what the model saw (response_item) is the conversation; what a person typed is told by the events beside it,
where there are any (codex_lines.py). A session is the one that the first meta line of its file names: a fork brings the
meta lines of its parent along, and its history, which counts where it was first.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import PureWindowsPath
from typing import Any, NamedTuple

from convmem.importers import splitting
from convmem.importers.codex_lines import ITEMS, Item, records_of
from convmem.importers.conversations import text
from convmem.importers.model import Entry, Format, Message, Notes, Sample
from convmem.importers.sources import Source, Unreadable
from convmem.importers.times import at_ms

ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"})


class Session(NamedTuple):
    """A file: the session it is of, when that began, and where it worked."""

    source: Source
    id: str
    at: int | None
    project: str | None
    is_subagent: bool


def _fits(sample: Sample, source: Source) -> bool:
    return any(map(_is_line, sample.values))


def _is_line(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if text(value.get("type")) in ENVELOPES and isinstance(value.get("payload"), dict):
        return True
    is_meta = isinstance(value.get("id"), str) and "timestamp" in value and "instructions" in value
    is_flat = (
        "created_at" in value
        and value.get("role") in ("user", "assistant")
        and ("message" in value or "content" in value)
    )
    # Other programs have these too, among messages of a conversation.
    return is_meta or value.get("record_type") == "state" or (is_flat and "uuid" not in value)


def _entries(sources: Sequence[Source], notes: Notes) -> Iterator[Entry]:
    sessions: list[Session] = []
    for source in sources:
        try:
            session = _look(source, notes)
        except Unreadable as error:
            notes.skip(source.name, str(error))
            continue
        if session is not None:
            sessions.append(session)
    # Forks come behind what they copied, and sub-agents behind their sessions.
    sessions.sort(key=lambda one: (one.is_subagent, one.at or 0))
    seen: dict[bytes, str] = {}
    for session in sessions:
        yield Entry(f"{session.source.name}: session {session.id}", session.at, partial(_read, session, seen, notes))


def _look(source: Source, notes: Notes) -> Session | None:
    """What a file is of: its first meta line says so; without one it is known by its first line."""
    meta: Mapping[str, Any] = {}
    first: bytes | None = None
    at, directory = None, None
    with source.opened() as file:
        for _, value in splitting.lines(file, source.name, notes):
            inner = value.get("payload")
            payload: Mapping[str, Any] = inner if isinstance(inner, dict) else value
            if first is None:
                first = repr(sorted(value.items(), key=str)).encode(errors="replace")
            if not meta and (value.get("type") == "session_meta" or ("instructions" in value and "id" in value)):
                meta = payload
            at = at or at_ms(value.get("timestamp")) or at_ms(value.get("created_at"))
            directory = directory or text(payload.get("cwd"))
    if first is None:
        notes.pass_over("empty file")
        return None
    own_id = text(meta.get("id")) or text(meta.get("session_id")) or blake2b(first, digest_size=8).hexdigest()
    project = PureWindowsPath(directory).name or None if directory else None
    origin = meta.get("source")
    is_subagent = isinstance(origin, dict) and "subagent" in origin
    return Session(source, own_id, at_ms(meta.get("timestamp")) or at, project, is_subagent)


def _read(session: Session, seen: dict[bytes, str], notes: Notes) -> Iterator[Message]:
    items: list[Item] = []
    counts: Counter[str] = Counter()
    silent = Notes()  # What is wrong with the lines was told when the file was looked at.
    try:
        with session.source.opened() as file:
            for number, value in splitting.lines(file, session.source.name, silent):
                item = _item(value, number)
                if item is None:
                    notes.pass_over(f"line of type {value.get('type') or value.get('record_type') or 'unknown'}")
                    continue
                counts[item.name] += 1
                if counts[item.name] > 1:
                    item = item._replace(name=f"{item.name}-{counts[item.name]}")
                key = item.name.encode()
                # A fork copies what was said before it, with the times of then.
                if item.at is not None and seen.setdefault(key, session.id) != session.id:
                    notes.pass_over("line of another session, copied by a fork")
                    continue
                items.append(item)
    except Unreadable as error:
        notes.skip(session.source.name, str(error))
    count = 0
    for record in records_of(session.id, items, session.project, session.is_subagent, notes):
        count += 1
        yield record
    if not count:
        notes.pass_over("empty conversation")


def _item(value: Mapping[str, Any], number: int) -> Item | None:
    """A line of any layout as an item: its kind, what it says, and a name made of that; None for what is none."""
    kind, payload = text(value.get("type")), value.get("payload")
    at = at_ms(value.get("timestamp")) or at_ms(value.get("created_at"))
    if isinstance(payload, dict):
        if kind == "compacted":
            said: Mapping[str, Any] = {"type": "compacted", **payload}
        elif kind in ("response_item", "event_msg"):
            said = payload
        else:
            return None
        is_event = kind == "event_msg"
    else:
        said, is_event = value, False
        if "role" in value and kind in (None, "message"):
            said = {**value, "type": "message", "content": value.get("content", value.get("message"))}
    if text(said.get("type")) not in ITEMS and (is_event or "instructions" in said or "type" not in said):
        return None
    words = repr((value.get("timestamp") or value.get("created_at"), is_event, sorted(said.items(), key=str)))
    name = blake2b(words.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return Item(name, said, at, is_event, number)


CODEX = Format("codex-cli", _fits, _entries)
