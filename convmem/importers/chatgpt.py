"""ChatGPT's export: conversations.json, or several files of that kind, each an array of trees of messages.

The conversation of an account stands in each of its exports, and with split files now and then in two of one: the one
that was changed last counts. What ChatGPT was asked not to remember is not remembered here either.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from convmem.importers import splitting
from convmem.importers.chatgpt_messages import records_of
from convmem.importers.model import Entry, Format, Message, Notes, Sample
from convmem.importers.sources import Source, Unreadable
from convmem.importers.times import at_ms
from convmem.importers.trees import walked

# What a conversation has beside its messages; an object without any of it is none.
MARKS = frozenset({"title", "create_time", "conversation_id", "current_node"})


class Standing(NamedTuple):
    """Where a conversation stands, and what is known of it without its messages."""

    source: Source
    offset: int
    size: int
    title: str | None
    at: int | None
    changed_at: int


def _fits(sample: Sample, source: Source) -> bool:
    return any(isinstance(value, dict) and isinstance(value.get("mapping"), dict) for value in sample.values)


def _entries(sources: Sequence[Source], notes: Notes) -> Iterator[Entry]:
    known: dict[str, Standing] = {}
    for source in sources:
        try:
            with source.opened() as file:
                for found in splitting.objects(file, source.name, _is_conversation, notes):
                    _note(known, source, found, notes)
        except Unreadable as error:
            notes.skip(source.name, str(error))
    for conversation, standing in known.items():
        where = f"{standing.source.name}: {standing.title or conversation}"
        yield Entry(where, standing.at, partial(_read, conversation, standing, notes), standing.title)


def _is_conversation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def _note(known: dict[str, Standing], source: Source, found: splitting.Found, notes: Notes) -> None:
    value = found.value
    if not MARKS & value.keys() and "mapping" not in value:
        notes.pass_over("object that is no conversation")
        return
    conversation = _id(value)
    title = value.get("title") if isinstance(value.get("title"), str) else None
    where = f"{source.name}: {title or conversation or f'byte {found.offset}'}"
    if conversation is None:
        notes.skip(where, "the conversation has no id")
    elif not isinstance(value.get("mapping"), dict):
        notes.skip(where, "the conversation has no messages (no mapping)")
    elif value.get("is_do_not_remember") is True:
        notes.skip(where, "ChatGPT was asked not to remember it")
    else:
        times = [at for node in value["mapping"].values() if (at := _time(node)) is not None]
        at = at_ms(value.get("create_time")) or min(times, default=None)
        changed_at = at_ms(value.get("update_time")) or max(times, default=0)
        before = known.get(conversation)
        if before is None or changed_at >= before.changed_at:
            known[conversation] = Standing(source, found.offset, found.size, title, at, changed_at)


def _id(value: Mapping[str, Any]) -> str | None:
    ids = (value.get(name) for name in ("conversation_id", "id"))
    return next((one for one in ids if isinstance(one, str) and one), None)


def _time(node: Any) -> int | None:
    message = node.get("message") if isinstance(node, dict) else None
    return at_ms(message.get("create_time")) if isinstance(message, dict) else None


def _read(conversation: str, standing: Standing, notes: Notes) -> Iterator[Message]:
    where = f"{standing.source.name}: {standing.title or conversation}"
    try:
        with standing.source.opened() as file:
            value = splitting.read(file, (standing.offset, standing.size))
    except (Unreadable, ValueError) as error:
        notes.skip(where, f"it cannot be read any more: {error}")
        return
    mapping: dict[str, Any] = {name: node for name, node in value["mapping"].items() if isinstance(node, dict)}
    parents = _parents(mapping)
    children = {name: _texts(node.get("children")) for name, node in mapping.items()}
    leaf = value.get("current_node")
    steps = walked(
        list(mapping), parents, children, leaf if isinstance(leaf, str) else None, lambda name: _time(mapping[name])
    )
    count, ids = 0, set[str]()
    for step in steps:
        message = mapping[step.node].get("message")
        if message is None:
            continue
        if not isinstance(message, dict):
            notes.skip(where, f"node {step.node[:64]} holds no message")
            continue
        own_id = _id_of(mapping, step.node) or step.node
        if own_id in ids:
            own_id = f"{own_id}@{step.node}"
        ids.add(own_id)
        call = _id_of(mapping, parents.get(step.node))
        for record in records_of(conversation, own_id, message, call, step.is_branch, standing.title, notes):
            count += 1
            yield record
    if not count:
        notes.pass_over("empty conversation")


def _parents(mapping: Mapping[str, Any]) -> dict[str, str | None]:
    """The parent of each node; where a node does not say, the one that names it as a child."""
    named = {child: name for name, node in mapping.items() for child in _texts(node.get("children"))}
    parents: dict[str, str | None] = {}
    for name, node in mapping.items():
        parent = node.get("parent")
        known = parent if isinstance(parent, str) and parent in mapping else named.get(name)
        parents[name] = None if known == name else known
    return parents


def _id_of(mapping: Mapping[str, Any], node: str | None) -> str | None:
    message = None if node is None else mapping[node].get("message")
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, str) and found else None


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


CHATGPT = Format("chatgpt", _fits, _entries)
