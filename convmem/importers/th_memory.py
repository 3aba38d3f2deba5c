"""th-memory-mcp: what it knows of its user and what it captured, out of its database or its export.

    1.x   preferences, lessons, profile, interactions
    2.x   the same, and memories, each with a type and a state, and links between them

The idea: what a table of its own says is a record of that kind, and everything else that is remembered is a message.
Version 2 once copied preferences and lessons into its memories: a memory that says what a row of those says is that
row, and counts once. What was taken back (deleted, superseded) stays away; entities and relations were drawn from the
texts by rule and are not kept.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PureWindowsPath
from typing import Any

import msgspec

from convmem.importers.model import (
    UNKNOWN,
    Captured,
    Entry,
    Format,
    Kind,
    Lesson,
    Link,
    Message,
    Notes,
    Preference,
    Record,
    Role,
    Sample,
    Section,
)
from convmem.importers.ordering import targets_first
from convmem.importers.rows import Group
from convmem.importers.sources import Source, Unreadable
from convmem.importers.th_memory_bodies import FORMAT, MARKS, Body, Export, Row, Tables, by_id, dated
from convmem.importers.times import at_ms
from convmem.limits import IMPORTANCE_MAX, RELATION_TYPE_BYTES_MAX, RELATIONS_MAX
from convmem.text import cut_to_bytes

MEMORIES, WITHOUT_SESSION = "memories", "th-memory-mcp"
ROLES: Mapping[str, Role] = {"prompt": "user", "tool_call": "assistant", "error": "system"}
KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("FACT", "GOAL", "DECISION", "CONSTRAINT", "LESSON", "RELATION", "PROFILE", "DERIVED"), "semantic"),
    "PREFERENCE": "preference",
    "PROCEDURE": "procedure",
    "EPISODE": "episode",
}
CAPTURED: Mapping[str, Captured] = {
    "prompt": Captured("prompt"),
    "tool_call": Captured("tool_call"),
    "error": Captured("error"),
}
# As both versions write it, indented.
BEGINNING = re.compile(rb'\{\s+"exported_at":\s*"[^"]*",\s+"version":')
TIMES = ("created_at", "updated_at", "valid_from")
TAKEN_BACK = frozenset({"deleted", "superseded"})


def _fits(sample: Sample, source: Source) -> bool:
    if sample.tables:
        has = {table: sample.tables.get(table, frozenset()) >= marks for table, marks in MARKS.items()}
        return has["interactions"] or (has["preferences"] and has["lessons"])
    value = sample.values[0] if sample.values else None
    if not isinstance(value, dict):
        return False
    if not value:
        # The brace in the first line is all that can be told of one that is damaged near its beginning.
        with source.opened() as file:
            return bool(BEGINNING.match(file.read(256)))
    told = value.get("format")
    if isinstance(told, str):
        return told.split("/")[0] == FORMAT
    # Version 1 does not name itself.
    return value.keys() >= {"exported_at", "version"} and bool(
        value.keys() & {"preferences", "lessons", "interactions"}
    )


def _entries(sources: Sequence[Source], notes: Notes) -> Iterator[Entry]:
    for source in sources:
        try:
            is_database = bool(source.sample.tables)
        except Unreadable as error:
            notes.skip(source.name, str(error))
            continue
        yield from _of_body(Tables(source, notes) if is_database else Export(source, notes), notes)


def _of_body(body: Body, notes: Notes) -> Iterator[Entry]:
    readers: Mapping[str, Callable[[], Iterator[Record]]] = {
        "the user": partial(_of_user, body, notes),
        MEMORIES: partial(_memories, body, notes),
    }
    tables = {"the user": ("preferences", "lessons", "profile"), MEMORIES: ("memories",)}
    for name, read in readers.items():
        rows = [row for table in tables[name] for row in body.rows(table)]
        if rows:
            times = (row.at(*TIMES) for row in rows)
            at = min((time for time in times if time is not None), default=None)
            yield Entry(f"{body.name}, {name}", at, read)
    sessions: dict[str, tuple[list[Any], list[int]]] = {}
    for group in body.sessions():
        keys, begun = sessions.setdefault(_session(group), ([], []))
        keys.append(group.key)
        begun.extend(time for time in (at_ms(group.least),) if time is not None)
    for name, (keys, begun) in sessions.items():
        at = min(begun, default=None)
        yield Entry(f"{body.name}, session {name}", at, partial(_interactions, body, name, keys, notes))
    for table in ("entities", "relations"):
        for _ in body.rows(table):
            notes.pass_over(table)


def _of_user(body: Body, notes: Notes) -> Iterator[Record]:
    readers: Mapping[str, Callable[[Row], Record | None]] = {
        "preferences": _preference,
        "lessons": _lesson,
        "profile": _part_of_profile,
    }
    for table, read in readers.items():
        for row in body.rows(table):
            record = read(row)
            if record is None:
                notes.skip(row.where, "one of its texts is missing")
            else:
                yield record


def _preference(row: Row) -> Preference | None:
    category, key, value = (row.text(name) for name in ("category", "key", "value"))
    if category is None or key is None or value is None:
        return None
    confidence = row.number("confidence")
    return Preference(
        category=category,
        key=key,
        value=value,
        confidence=confidence if confidence is not None and 0 <= confidence <= 1 else None,
        source=row.text("source"),
        at=row.at("updated_at"),
    )


def _lesson(row: Row) -> Lesson | None:
    situation, mistake, correction = (row.text(name) for name in ("situation", "mistake", "correction"))
    if situation is None or mistake is None or correction is None:
        return None
    return Lesson(situation=situation, mistake=mistake, correction=correction, at=row.at("created_at"))


def _part_of_profile(row: Row) -> Section | None:
    section, content = row.text("section"), row.text("content")
    if section is None or content is None:
        return None
    return Section(section=section, content=content, at=row.at("updated_at"))


def _interactions(body: Body, name: str, keys: Sequence[Any], notes: Notes) -> Iterator[Record]:
    rows = [row for key in keys for row in body.of_session(key)]
    rows.sort(key=lambda row: (row.number("id") or 0, row.at("ts") or 0))
    for row_id, row in by_id(rows).items():
        content, kind = row.text("content"), row.text("kind") or ""
        if content is None:
            notes.skip(row.where, "it has no text")
            continue
        captured = CAPTURED.get(kind)
        if captured is None:
            notes.keep_raw(f"interaction {kind}")
        meta = Row(row.where, row.fields("meta"))
        directory = meta.text("directory")
        facts = {field: meta.text(field) for field in ("tool", "status", "directory")}
        yield Message(
            conversation=name,
            id=dated(f"interaction/{row_id}", row.at("ts")),
            role=ROLES.get(kind, "system"),
            content=content if captured else row.json(),
            at=row.at("ts"),
            project=_project(directory),
            tags=() if captured else (UNKNOWN,),
            tool_call_id=meta.text("callID"),
            captured=captured and msgspec.structs.replace(captured, **facts),
        )


def _memories(body: Body, notes: Notes) -> Iterator[Record]:
    kept: dict[str, Row] = {}
    doubles = _said_elsewhere(body)
    for name, row in by_id(body.rows("memories")).items():
        status, content = row.text("status"), row.text("content")
        if status in TAKEN_BACK:
            notes.pass_over(f"{status} memory")
        elif content is None:
            notes.skip(row.where, "it has no text")
        elif _plain(content) in doubles.get(row.text("type") or "", ()):
            notes.pass_over("memory that has a table of its own")
        else:
            kept[name] = row
    links = _links(body, kept, notes)
    targets = {name: [link.id for link in of_one] for name, of_one in links.items()}
    for name in targets_first(list(kept), targets):
        of_one = (
            Link(link.type, link.conversation, dated(link.id, kept[link.id].at("created_at")))
            for link in links.get(name, ())
        )
        yield _memory(name, kept[name], tuple(of_one), notes)


def _memory(name: str, row: Row, links: tuple[Link, ...], notes: Notes) -> Message:
    kind = KINDS.get(row.text("type") or "")
    if kind is None:
        notes.keep_raw(f"memory {row.text('type') or ''}")
    return Message(
        conversation=MEMORIES,
        id=dated(name, row.at("created_at")),
        role="system",
        content=row.text("content") or "" if kind else row.json(),
        at=row.at(*TIMES),
        project=_project(row.text("project_id")),
        tags=() if kind else (UNKNOWN,),
        kind=kind or "semantic",
        importance=_importance(row.number("importance")),
        links=links,
    )


def _links(body: Body, kept: Mapping[str, Row], notes: Notes) -> dict[str, list[Link]]:
    """The links of each memory to those that are kept too."""
    found: dict[str, dict[Link, None]] = {}
    superseding = (
        Row(row.where, {"source_memory_id": name, "relation": "supersedes", "target_memory_id": target})
        for name, row in kept.items()
        if (target := row.name("supersedes_id")) is not None
    )
    for row in (*superseding, *body.rows("memory_links")):
        source, target = row.name("source_memory_id"), row.name("target_memory_id")
        relation = row.text("relation") or "related_to"
        if source is None or target is None or not {source, target} <= kept.keys():
            notes.pass_over("link of a memory that is not kept")
            continue
        links = found.setdefault(source, {})
        link = Link(cut_to_bytes(relation, RELATION_TYPE_BYTES_MAX), MEMORIES, target)
        if link not in links and len(links) == RELATIONS_MAX:
            notes.skip(row.where, f"memory {source} has more than {RELATIONS_MAX} links")
        else:
            links.setdefault(link)
    return {name: list(links) for name, links in found.items()}


def _said_elsewhere(body: Body) -> Mapping[str, set[str]]:
    """What memories say that only repeat a preference or a lesson, in the words in which they were copied."""
    preferences = filter(None, map(_preference, body.rows("preferences")))
    lessons = filter(None, map(_lesson, body.rows("lessons")))
    return {
        "PREFERENCE": {
            _plain(text)
            for one in preferences
            for text in (f"[{one.category}] {one.key} = {one.value}", f"{one.key}: {one.value}")
        },
        "LESSON": {
            _plain(text)
            for one in lessons
            for text in (
                f"Situation: {one.situation} | Mistake: {one.mistake} | Correction: {one.correction}",
                f"{one.situation} | mistake: {one.mistake} -> correction: {one.correction}",
            )
        },
    }


def _session(group: Group) -> str:
    return Row("", {"id": group.key}).name("id") or WITHOUT_SESSION


def _importance(number: float | None) -> int:
    """0..100 out of that, or out of 0..1."""
    number = number or 0
    return min(max(round(number * IMPORTANCE_MAX if number <= 1 else number), 0), IMPORTANCE_MAX)


def _project(directory: str | None) -> str | None:
    return (PureWindowsPath(directory).name or None) if directory else None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


TH_MEMORY = Format(FORMAT, _fits, _entries)
