"""OpenCode: its sessions out of the database, out of the files that were before it, or out of both half-migrated.

The idea: all stores that are given together are one. A session that stands in several counts once, as the one with the
most messages says; its messages are united by their ids, and so are the parts of each.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from convmem.importers.model import Entry, Format, Message, Notes, Sample
from convmem.importers.opencode_parts import Piece, Talk, messages, project_of
from convmem.importers.opencode_stores import Files, Session, Store, Tables, place_of
from convmem.importers.sources import Source, Unreadable

# By what the ids of sessions, messages and parts begin.
ID_PREFIXES = ("ses_", "msg_", "prt_")
# What a storage holds beside them.
BESIDE = frozenset({"project", "todo", "permission", "session_diff", "session_share"})

Standing = tuple[Session, Store]


def _fits(sample: Sample, source: Source) -> bool:
    if sample.tables:
        columns = sample.tables
        has_parts = columns.get("part", frozenset()) >= {"message_id", "data"}
        return "session" in columns and has_parts and columns.get("message", frozenset()) >= {"session_id", "data"}
    place = place_of(source)
    if place is None:
        return _beside(source) is not None
    data = sample.values[0] if sample.values else None
    if not isinstance(data, dict):
        # A file that is empty or damaged belongs to its storage all the same.
        is_named = place.id.startswith(ID_PREFIXES) or place.owner.startswith(ID_PREFIXES)
        return is_named or "storage" in source.parts
    if place.kind == "part":
        return "type" in data
    if place.kind == "message":
        return isinstance(data.get("role"), str) and bool(data.keys() & {"time", "metadata", "sessionID"})
    return bool(data.keys() & {"title", "directory", "projectID"})


def _entries(sources: Sequence[Source], notes: Notes) -> Iterator[Entry]:
    standing: dict[str, list[Standing]] = {}
    tables, files = _stores(sources, notes)
    for store in (*tables, files):
        for session in store.sessions():
            standing.setdefault(session.id, []).append((session, store))
    for found in standing.values():
        # Of two with as many messages the database goes first: it is what OpenCode goes on with.
        found.sort(key=lambda one: -one[0].messages)
        sessions = [session for session, _ in found]
        if not sessions[0].messages:
            notes.pass_over("empty conversation")
            continue
        title = next((session.title for session in sessions if session.title), None)
        at = next((session.at for session in sessions if session.at is not None), None)
        yield Entry(sessions[0].where, at, partial(_read, found, title, notes), title)
    if not tables:
        files.pass_over_orphans()


def _stores(sources: Sequence[Source], notes: Notes) -> tuple[list[Store], Files]:
    tables: list[Store] = []
    files = Files(notes)
    for source in sources:
        if place := place_of(source):
            files.add(place, source)
        elif beside := _beside(source):
            notes.pass_over(beside)
        else:
            try:
                is_database = bool(source.sample.tables)
            except Unreadable as error:
                notes.skip(source.name, str(error))
                continue
            if is_database:
                tables.append(Tables(source, notes))
            else:
                notes.skip(source.name, "it is neither a database of OpenCode nor a file of its storage")
    return tables, files


def _beside(source: Source) -> str | None:
    """What a file of a storage is that belongs to no session; None if it is none."""
    folders = ("", "", *source.parts)
    if folders[-3] == "storage" and folders[-2] in BESIDE:
        return folders[-2]
    return "migration" if folders[-2:] == ("storage", "migration") else None


def _read(found: Sequence[Standing], title: str | None, notes: Notes) -> Iterator[Message]:
    sessions = [session for session, _ in found]
    directory = next((session.directory for session in sessions if session.directory), None)
    is_child = any(session.is_child for session in sessions)
    talk = Talk(sessions[0].id, title, project_of(directory), is_child)
    count = 0
    for said, parts in _united(found):
        for message in messages(talk, said, parts, notes):
            count += 1
            yield message
    if not count:
        notes.pass_over("empty conversation")


def _united(found: Sequence[Standing]) -> Iterator[tuple[Piece, list[Piece]]]:
    """The messages of all stores in their order, each with all of its parts in theirs."""
    messages: dict[str, list[Piece]] = {}
    for session, store in found:
        for piece in store.messages(session.id):
            messages.setdefault(piece.id, []).append(piece)
    for said in sorted(map(_best, messages.values()), key=_time_and_id):
        parts: dict[str, list[Piece]] = {}
        for _, store in found:
            for piece in store.parts(said.id):
                parts.setdefault(piece.id, []).append(piece)
        best = [_best(pieces) for pieces in parts.values()]
        # Files say no time of a part; the ids of one message's parts are in order.
        has_times = all(piece.at is not None for piece in best)
        yield said, sorted(best, key=_time_and_id if has_times else lambda piece: piece.id)


def _best(pieces: Sequence[Piece]) -> Piece:
    """One message or part of several stores: the first that can be read."""
    best = next((piece for piece in pieces if piece.data is not None), pieces[0])
    return best._replace(at=next((piece.at for piece in pieces if piece.at is not None), None))


def _time_and_id(piece: Piece) -> tuple[bool, int, str]:
    """Ids are no order: those of a message that was said later may be less."""
    return piece.at is None, piece.at or 0, piece.id


OPENCODE = Format("opencode", _fits, _entries)
