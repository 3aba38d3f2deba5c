"""The reference memory server of MCP: a graph of entities, in a file that is written anew as a whole each time.

    {"type": "entity", "name", "entityType", "observations": [text]}     lines; or {"entities": […], "relations": […]}
    {"type": "relation", "from", "to", "relationType"}

The idea: an entity is a message under its name, and a relation a link of the one that it goes out from. What no link
can say stands in the text instead: a relation to nobody, one too many, one to an entity that is stored later. A graph
knows no times and its names are its ids, so all files that are given together are one graph: an entity that stands
twice has the observations of both.

Rejected: the last one wins, as a server that reads the file would have it. Files fused by two writers hold halves of
one entity, and which of them is the newer nobody knows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import IO, Any

from convmem.importers import splitting
from convmem.importers.model import Entry, Format, Link, Message, Notes, Sample
from convmem.importers.ordering import targets_first
from convmem.importers.sources import Source, Unreadable
from convmem.limits import RELATION_TYPE_BYTES_MAX, RELATIONS_MAX
from convmem.text import cut_to_bytes

CONVERSATION = "memory"
# Names that servers of this kind give the same thing; the first that is there counts.
NAMES = ("name", "entityName", "entity_name", "id")
KINDS = ("entityType", "entity_type", "type")
SOURCES = ("from", "from_id", "fromId", "source")
TARGETS = ("to", "to_id", "toId", "target")
RELATION_KINDS = ("relationType", "relation_type", "type")
LISTS = ("entities", "relations")
# What is no file of lines: an array, and an object that has lines inside or does not begin with a name and a text.
IS_ONE_VALUE = re.compile(rb'\s*(?:\[|\{\s*(?:[\r\n]|"[^"]*"\s*:\s*[^"\s]))')
HEAD_BYTES = 4096


@dataclass
class Entity:
    """What is known of one name."""

    name: str
    kind: str = ""
    observations: dict[str, None] = field(default_factory=dict)
    # (type, target) of what goes out to others; lines about what goes to nobody, or comes from nobody.
    relations: dict[tuple[str, str], None] = field(default_factory=dict)
    lines: dict[str, None] = field(default_factory=dict)


@dataclass
class Graph:
    """Entities by their names, in the order of the files; what they are also called; relations and where they stand."""

    entities: dict[str, Entity] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    relations: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def named(self, name: str) -> Entity | None:
        """The entity of this name."""
        return self.entities.get(name) or self.entities.get(self.aliases.get(name, ""))


def _fits(sample: Sample, source: Source) -> bool:
    return any(_is_of_graph(value) for value in sample.values)


def _is_of_graph(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if value.get("type") in ("entity", "relation"):
        return bool(value.keys() & {*NAMES, *SOURCES, *TARGETS})
    lists = [value[name] for name in LISTS if isinstance(value.get(name), list)]
    inner = [one for values in lists for one in values[:1]]
    # Other memories export graphs too, among other things.
    return len(lists) == len(value.keys() & set(LISTS)) > 0 and len(value) <= 3 and all(map(_shape, inner))


def _shape(value: Any) -> str | None:
    """`entities` or `relations`, by what an object has."""
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    if kind == "relation" or (kind != "entity" and _first(value, SOURCES) and _first(value, TARGETS)):
        return "relations"
    is_entity = kind == "entity" or "observations" in value or _first(value, KINDS)
    return "entities" if is_entity and _first(value, NAMES) else None


def _entries(sources: Sequence[Source], notes: Notes) -> Iterator[Entry]:
    if sources:
        yield Entry(", ".join(source.name for source in sources[:3]), None, partial(_read, sources, notes))


def _read(sources: Sequence[Source], notes: Notes) -> Iterator[Message]:
    graph = Graph()
    for source in sources:
        try:
            with source.opened() as file:
                for where, value in _values(file, source.name, notes):
                    _take(graph, value, where, notes)
        except Unreadable as error:
            notes.skip(source.name, str(error))
    _relate(graph, notes)
    targets = {name: [target for _, target in entity.relations] for name, entity in graph.entities.items()}
    stored: set[str] = set()
    for name in targets_first(list(graph.entities), targets):
        yield _message(graph.entities[name], stored)
        stored.add(name)
    if not stored:
        notes.pass_over("empty conversation")


def _values(file: IO[bytes], name: str, notes: Notes) -> Iterator[tuple[str, Any]]:
    head = file.read(HEAD_BYTES)
    file.seek(0)
    if IS_ONE_VALUE.match(head):
        for found in splitting.objects(file, name, lambda value: _is_of_graph(value) or bool(_shape(value)), notes):
            yield f"{name}, byte {found.offset}", found.value
    else:
        for number, value in splitting.lines(file, name, notes):
            yield f"{name}, line {number}", value


def _take(graph: Graph, value: Any, where: str, notes: Notes) -> None:
    """One object of a file: an entity, a relation, or lists of both."""
    lists = {name: value[name] for name in LISTS if isinstance(value, dict) and isinstance(value.get(name), list)}
    if lists and value.get("type") not in ("entity", "relation"):
        for name, inner in lists.items():
            for count, one in enumerate(inner, start=1):
                _take_one(graph, one, name, f"{where}, {name} {count}", notes)
    else:
        _take_one(graph, value, _shape(value), where, notes)


def _take_one(graph: Graph, value: Any, shape: str | None, where: str, notes: Notes) -> None:
    if not isinstance(value, dict) or shape is None:
        notes.skip(where, "it is neither an entity nor a relation")
    elif shape == "entities":
        _take_entity(graph, value, where, notes)
    else:
        _take_relation(graph, value, where, notes)


def _take_entity(graph: Graph, value: dict[str, Any], where: str, notes: Notes) -> None:
    name = _first(value, NAMES)
    if name is None:
        notes.skip(where, "the entity has no name")
        return
    entity = graph.entities.setdefault(name, Entity(name))
    entity.kind = entity.kind or _kind(value, KINDS, "entity") or ""
    if own := _first(value, ("id",)):
        graph.aliases.setdefault(own, name)
    observations = value.get("observations")
    for one in observations if isinstance(observations, list) else [observations]:
        if isinstance(one, str):
            if one.strip():
                entity.observations.setdefault(one)
        elif one is not None:
            notes.skip(where, f"an observation of {name} is no text")


def _take_relation(graph: Graph, value: dict[str, Any], where: str, notes: Notes) -> None:
    source, target = _first(value, SOURCES), _first(value, TARGETS)
    if source is None or target is None:
        notes.skip(where, "the relation does not say from what to what it goes")
        return
    kind = _kind(value, RELATION_KINDS, "relation") or "related_to"
    graph.relations.setdefault((source, kind, target), where)


def _relate(graph: Graph, notes: Notes) -> None:
    """Give every relation to an entity that it goes out from or, if there is none, comes to."""
    for (source, kind, target), where in graph.relations.items():
        giver, taker = graph.named(source), graph.named(target)
        if giver and taker:
            giver.relations.setdefault((kind, taker.name))
        elif giver:
            giver.lines.setdefault(f"{kind}: {target}")
            notes.pass_over("relation to what is not there, kept as text")
        elif taker:
            taker.lines.setdefault(f"{kind} by: {source}")
            notes.pass_over("relation to what is not there, kept as text")
        else:
            notes.skip(where, f"there is neither an entity {source} nor {target}")


def _message(entity: Entity, stored: set[str]) -> Message:
    """An entity as a message. Those that are stored by then can be linked to."""
    links = (Link(cut_to_bytes(kind, RELATION_TYPE_BYTES_MAX), CONVERSATION, name) for kind, name in entity.relations)
    said = [one for place, one in enumerate(entity.relations) if place >= RELATIONS_MAX or one[1] not in stored]
    lines = [
        f"{entity.name} ({entity.kind})" if entity.kind else entity.name,
        *(f"- {text}" for text in entity.observations),
        *(f"{kind}: {target}" for kind, target in said),
        *entity.lines,
    ]
    return Message(
        conversation=CONVERSATION,
        id=entity.name,
        role="system",
        content="\n".join(lines),
        kind="semantic",
        links=tuple(islice(dict.fromkeys(links), RELATIONS_MAX)),
    )


def _kind(value: Mapping[str, Any], names: Sequence[str], marker: str) -> str | None:
    """The type of an entity or relation. `type` says it only where it does not say which of both it is."""
    return _first(value, names if value.get("type") != marker else names[:-1])


def _first(value: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of some values that is a name: a text that is not blank, or a number."""
    for name in names:
        one = value.get(name)
        if isinstance(one, str) and one.strip():
            return one
        if isinstance(one, int) and not isinstance(one, bool):
            return str(one)
    return None


SERVER_MEMORY = Format("mcp-memory", _fits, _entries)
