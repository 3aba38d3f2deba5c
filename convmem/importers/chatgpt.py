"""ChatGPT's export: conversations.json, or several files of that kind, each an array of trees of messages.

What ChatGPT was asked not to remember is not remembered here either.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from convmem.importers import conversations
from convmem.importers.chatgpt_messages import Place, records_of
from convmem.importers.conversations import Facts, Standing, text, texts
from convmem.importers.model import Entry, Format, Message, Notes, Sample
from convmem.importers.sources import Source
from convmem.importers.times import at_ms
from convmem.importers.trees import walked

# What a conversation has beside its messages; an object without any of it is none.
MARKS = frozenset({"title", "create_time", "conversation_id", "current_node"})


def _fits(sample: Sample, source: Source) -> bool:
    return any(_is_conversation(value) for value in sample.values)


def _entries(sources: Sequence[Source], notes: Notes) -> Iterator[Entry]:
    yield from conversations.entries(sources, _is_conversation, _look, partial(_read, notes), notes)


def _is_conversation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def _look(value: Mapping[str, Any]) -> Facts | None:
    if not MARKS & value.keys() and "mapping" not in value:
        return None
    own_id, title = text(value.get("conversation_id")) or text(value.get("id")), text(value.get("title"))
    if not _is_conversation(value):
        return Facts(own_id, title, refused="the conversation has no messages (no mapping)")
    if value.get("is_do_not_remember") is True:
        return Facts(own_id, title, refused="ChatGPT was asked not to remember it")
    times = [at for node in value["mapping"].values() if (at := _time(node)) is not None]
    at = at_ms(value.get("create_time")) or min(times, default=None)
    return Facts(own_id, title, at, at_ms(value.get("update_time")) or max(times, default=None))


def _time(node: Any) -> int | None:
    message = node.get("message") if isinstance(node, dict) else None
    return at_ms(message.get("create_time")) if isinstance(message, dict) else None


def _read(notes: Notes, standing: Standing, value: Mapping[str, Any]) -> Iterator[Message]:
    mapping: dict[str, Any] = {name: node for name, node in value["mapping"].items() if isinstance(node, dict)}
    parents = _parents(mapping)
    children = {name: texts(node.get("children")) for name, node in mapping.items()}
    leaf = value.get("current_node")
    steps = walked(
        list(mapping), parents, children, leaf if isinstance(leaf, str) else None, lambda name: _time(mapping[name])
    )
    ids = set[str]()
    for step in steps:
        message = mapping[step.node].get("message")
        if message is None:
            continue
        if not isinstance(message, dict):
            notes.skip(standing.where, f"node {step.node[:64]} holds no message")
            continue
        own_id = _id_of(mapping, step.node) or step.node
        if own_id in ids:
            own_id = f"{own_id}@{step.node}"
        ids.add(own_id)
        call = _id_of(mapping, parents.get(step.node))
        assert standing.facts.id is not None
        place = Place(standing.facts.id, own_id, standing.facts.title, step.is_branch, call)
        yield from records_of(place, message, notes)


def _parents(mapping: Mapping[str, Any]) -> dict[str, str | None]:
    """The parent of each node; where a node does not say, the one that names it as a child."""
    named = {child: name for name, node in mapping.items() for child in texts(node.get("children"))}
    parents: dict[str, str | None] = {}
    for name, node in mapping.items():
        parent = node.get("parent")
        known = parent if isinstance(parent, str) and parent in mapping else named.get(name)
        parents[name] = None if known == name else known
    return parents


def _id_of(mapping: Mapping[str, Any], node: str | None) -> str | None:
    message = None if node is None else mapping[node].get("message")
    return text(message.get("id")) if isinstance(message, dict) else None


CHATGPT = Format("chatgpt", _fits, _entries)
