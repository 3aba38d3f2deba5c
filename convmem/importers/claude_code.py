"""Claude Code's transcripts: a file of lines a session, with copies, sub-agents and rewound turns.

    a session   the conversation of its id; lines that stand in several files (a resumed copy, a fork) count once
    sub-agent   a conversation of its own, `<session>/<agent>`, read behind its session

The idea: the lines of all files that are given together are one set, in which a line is known by its uuid. A first look
finds which session each line is of and what the sessions are called; the lines themselves are read when it is their
session's turn (claude_code_lines.py says what a line is).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import PureWindowsPath
from typing import Any

from convmem.importers import splitting
from convmem.importers.claude_code_lines import CHAT, Line, records_of
from convmem.importers.conversations import text
from convmem.importers.model import Entry, Format, Message, Notes, Sample
from convmem.importers.sources import Source, Unreadable
from convmem.importers.times import at_ms

SUBAGENTS = "subagents"
# Lines that name a session, the later ones of this order before the others.
TITLES = ("summary", "ai-title", "custom-title")
TITLE_NAMES = ("title", "customTitle", "aiTitle", "name")
# What the directory above that of the sub-agents is called, if it is that of their session.
SESSION = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass
class Session:
    """A conversation: which sources hold lines of it, and what is known of it."""

    id: str
    is_subagent: bool
    sources: dict[Source, None] = field(default_factory=dict)
    at: int | None = None
    titles: dict[str, str] = field(default_factory=dict)
    project: str | None = None

    @property
    def title(self) -> str | None:
        """What it is called, by whoever has the most to say."""
        return next((self.titles[kind] for kind in reversed(TITLES) if kind in self.titles), None)


def _fits(sample: Sample, source: Source) -> bool:
    return any(map(_is_line, sample.values))


def _is_line(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return isinstance(value.get("sessionId"), str) or (value["type"] == "summary" and "leafUuid" in value)


def _entries(sources: Sequence[Source], notes: Notes) -> Iterator[Entry]:
    sessions: dict[str, Session] = {}
    # Which session a line was first seen in: by a hash, since there are millions.
    owners: dict[bytes, str] = {}
    summaries: list[tuple[str, str]] = []
    for source in sources:
        try:
            with source.opened() as file:
                for _, value in splitting.lines(file, source.name, notes):
                    _look(source, value, sessions, owners, summaries)
        except Unreadable as error:
            notes.skip(source.name, str(error))
    for leaf, title in summaries:
        owner = owners.get(_hash(leaf))
        if owner is not None:
            sessions[owner].titles["summary"] = title
    for session in sorted(sessions.values(), key=lambda one: one.is_subagent):
        read = partial(_read, session, owners, notes)
        yield Entry(f"session {session.id}", session.at, read, session.title)


def _look(
    source: Source,
    value: dict[str, Any],
    sessions: dict[str, Session],
    owners: dict[bytes, str],
    summaries: list[tuple[str, str]],
) -> None:
    kind = text(value.get("type"))
    if kind == "summary":
        leaf, title = text(value.get("leafUuid")), text(value.get("summary"))
        if leaf and title:
            summaries.append((leaf, title))
        return
    name, is_subagent = _session_of(source, value)
    if name is None:
        return
    session = sessions.setdefault(name, Session(name, is_subagent))
    session.sources[source] = None
    at = at_ms(value.get("timestamp"))
    if at is not None and kind in CHAT:
        session.at = at if session.at is None else min(session.at, at)
    if kind in TITLES:
        title = next((one for name in TITLE_NAMES if (one := text(value.get(name)))), None)
        if title is not None:
            session.titles[str(kind)] = title
    directory = text(value.get("cwd")) or text(value.get("project"))
    if directory is not None and session.project is None:
        session.project = PureWindowsPath(directory).name or None
    own_id = text(value.get("uuid"))
    if own_id is not None:
        owners.setdefault(_hash(own_id), name)


def _session_of(source: Source, value: dict[str, Any]) -> tuple[str | None, bool]:
    """The conversation of a line, and whether it is that of a sub-agent."""
    session, agent = text(value.get("sessionId")), text(value.get("agentId"))
    parts = source.parts
    if SUBAGENTS in parts[1:-1] and SESSION.fullmatch(above := parts[parts.index(SUBAGENTS, 1) - 1]):
        return f"{above}/{agent or parts[-1].removesuffix('.jsonl').removeprefix('agent-')}", True
    if session is None:
        return None, False
    if value.get("isSidechain") is True or agent is not None:
        return f"{session}/{agent or 'sidechain'}", True
    return session, False


def _hash(name: str) -> bytes:
    return blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest()


def _read(session: Session, owners: dict[bytes, str], notes: Notes) -> Iterator[Message]:
    lines: list[Line] = []
    seen: Counter[str] = Counter()
    silent = Notes()  # What is wrong with the lines was told when they were looked at.
    for source in session.sources:
        try:
            with source.opened() as file:
                for number, value in splitting.lines(file, source.name, silent):
                    if _session_of(source, value)[0] != session.id:
                        continue
                    own_id = text(value.get("uuid"))
                    if own_id is not None and owners.get(_hash(own_id)) != session.id:
                        notes.pass_over("line of another session, copied by a fork")
                        continue
                    name = own_id or _name(value, seen)
                    seen[name] += own_id is not None
                    if own_id is not None and seen[own_id] > 1:
                        notes.pass_over("line that stands in several files")
                        continue
                    lines.append(Line(name, value, f"{source.name}, line {number}"))
        except Unreadable as error:
            notes.skip(source.name, str(error))
    count = 0
    for record in records_of(session.id, lines, session.title, session.project, session.is_subagent, notes):
        count += 1
        yield record
    if not count:
        notes.pass_over("empty conversation")


def _name(value: dict[str, Any], seen: Counter[str]) -> str:
    """A name for a line without one: of what it says, and the how-manieth that says so."""
    said = f"{value.get('timestamp')}\0{value.get('type')}\0{value.get('message')!r}"
    name = blake2b(said.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}-{seen[name]}"


CLAUDE_CODE = Format("claude-code", _fits, _entries)
