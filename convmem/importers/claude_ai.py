"""Claude.ai's export: conversations.json, an array of conversations, each with its messages in a row or as a tree.

What was said stands in the blocks of a message; its `text` may be empty beside them, or hold stand-ins for what some
program could not show, so it counts only where there are no blocks. Newer exports say what each message answers: a turn
that was edited is a branch there; older ones have both versions in a row and do not say so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from convmem.importers import conversations
from convmem.importers.conversations import Facts, Standing, compact_json, objects, text, without_marks
from convmem.importers.model import (
    BRANCH,
    THINKING,
    TOOL_CALL,
    TOOL_RESULT,
    UNKNOWN,
    Entry,
    Format,
    Message,
    Notes,
    Role,
    Sample,
)
from convmem.importers.sources import Source
from convmem.importers.times import at_ms
from convmem.importers.trees import Step, walked

ROLES: Mapping[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


class Block(NamedTuple):
    """A part of a message: its text, its tag if it is no plain talk, and the call that it belongs to."""

    text: str
    tag: str | None = None
    call: str | None = None


def _fits(sample: Sample, source: Source) -> bool:
    return any(_is_conversation(value) for value in sample.values)


def _entries(sources: Sequence[Source], notes: Notes) -> Iterator[Entry]:
    yield from conversations.entries(sources, _is_conversation, _look, partial(_read, notes), notes)


def _messages(value: Mapping[str, Any]) -> Any:
    """`chat_messages`; a rare shape has `messages` with blocks of content."""
    return value.get("chat_messages", value.get("messages"))


def _is_conversation(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(_messages(value), list):
        return False
    # Other programs have messages too: only here they have a sender, or blocks inside of their content.
    return "chat_messages" in value or any(_is_message(one) for one in objects(value["messages"])[:3])


def _is_message(value: Mapping[str, Any]) -> bool:
    content = value.get("content")
    return "sender" in value or (isinstance(content, dict) and "contentBlocks" in content)


def _look(value: Mapping[str, Any]) -> Facts | None:
    own_id = text(value.get("uuid")) or text(value.get("conversation_id")) or text(value.get("id"))
    title = text(value.get("name")) or text(value.get("title"))
    if not _is_conversation(value):
        is_one = "uuid" in value and ("name" in value or "created_at" in value) and "summary" in value
        return Facts(own_id, title, refused="the conversation has no messages") if is_one else None
    times = [at for one in objects(_messages(value)) if (at := at_ms(one.get("created_at"))) is not None]
    at = at_ms(value.get("created_at")) or at_ms(value.get("create_time")) or min(times, default=None)
    return Facts(own_id, title, at, at_ms(value.get("updated_at")) or max(times, default=None))


def _read(notes: Notes, standing: Standing, value: Mapping[str, Any]) -> Iterator[Message]:
    messages = _messages(value)
    known: dict[str, dict[str, Any]] = {}
    for number, message in enumerate(messages):
        if isinstance(message, dict):
            name = text(message.get("uuid")) or text(message.get("id")) or f"message {number}"
            known[name if name not in known else f"{name}@{number}"] = message
        else:
            notes.skip(standing.where, f"message {number + 1} is no object")
    account = value.get("account")
    project = value.get("project")
    facts = {
        "conversation": standing.facts.id,
        "title": standing.facts.title,
        "account": text(account.get("uuid")) if isinstance(account, dict) else None,
        "project": text(project.get("name")) if isinstance(project, dict) else None,
    }
    for step in _steps(known, value.get("current_leaf_message_uuid")):
        yield from _records(step, known[step.node], facts, notes)


def _steps(known: Mapping[str, Mapping[str, Any]], leaf: Any) -> list[Step]:
    """The messages in their order: that of the tree, or as they stand where none says what it answers."""
    answered = {name: text(message.get("parent_message_uuid")) for name, message in known.items()}
    if not any(parent in known for parent in answered.values() if parent is not None):
        return [Step(name, is_branch=False) for name in known]
    parents = {name: parent if parent in known and parent != name else None for name, parent in answered.items()}
    given = leaf if isinstance(leaf, str) else None
    return walked(list(known), parents, {}, given, lambda name: at_ms(known[name].get("created_at")))


def _records(step: Step, message: Mapping[str, Any], facts: Mapping[str, Any], notes: Notes) -> Iterator[Message]:
    sender = message.get("sender", message.get("role"))
    role = ROLES.get(sender, "system") if isinstance(sender, str) else "system"
    for number, block in enumerate(_joined(_blocks(message, notes))):
        own_role: Role = role
        if block.tag is not None:
            own_role = "system" if block.tag == TOOL_RESULT or role == "user" else role
        tags = (*((block.tag,) if block.tag else ()), *((BRANCH,) if step.is_branch else ()))
        yield Message(
            id=step.node if number == 0 else f"{step.node}/{number}",
            role=own_role,
            content=block.text,
            at=at_ms(message.get("created_at")) or at_ms(message.get("updated_at")),
            tags=tags,
            tool_call_id=block.call,
            **facts,
        )


def _joined(blocks: Iterator[Block]) -> Iterator[Block]:
    """Texts that stand side by side, as one; what says nothing is left out."""
    plain: list[str] = []
    for block in blocks:
        if not block.text.strip():
            continue
        if block.tag is None:
            plain.append(without_marks(block.text))
            continue
        if plain:
            yield Block("\n\n".join(plain))
            plain = []
        yield block
    if plain:
        yield Block("\n\n".join(plain))


def _blocks(message: Mapping[str, Any], notes: Notes) -> Iterator[Block]:
    content = message.get("content")
    if isinstance(content, dict):
        content = content.get("contentBlocks", [content])
    found: list[Block] = []
    if isinstance(content, str):
        found.append(Block(content))
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            found.append(Block(block))
        elif isinstance(block, dict):
            found += _block(block, notes)
        elif block is not None:
            notes.keep_raw("block that is no object")
            found.append(Block(compact_json(block), UNKNOWN))
    if not any(block.text.strip() for block in found):
        said = message.get("text")
        found.append(Block(str(said) if isinstance(said, str | int | float) and not isinstance(said, bool) else ""))
    yield from found
    for one in objects(message.get("attachments")):
        name = text(one.get("file_name")) or "pasted text"
        pasted = text(one.get("extracted_content"))
        yield Block(f"[file: {name}]" + (f"\n{pasted}" if pasted else ""))
    for one in [*objects(message.get("files")), *objects(message.get("files_v2"))]:
        yield Block(f"[file: {text(one.get('file_name')) or text(one.get('file_uuid')) or 'unnamed'}]")


def _block(block: Mapping[str, Any], notes: Notes) -> list[Block]:
    kind = text(block.get("type"))
    reader = None if kind is None else READERS.get(kind)
    if kind in PASSED_OVER:
        notes.pass_over(str(kind))
        return []
    if reader is None:
        notes.keep_raw(str(kind))
        return [Block(compact_json(block), UNKNOWN)]
    return [reader(block)]


def _use(block: Mapping[str, Any]) -> Block:
    given = block.get("input")
    words = given if isinstance(given, str) else compact_json(given)
    return Block(f"{text(block.get('name')) or 'tool'}\n{words}", TOOL_CALL, text(block.get("id")))


def _result(block: Mapping[str, Any]) -> Block:
    content = block.get("content")
    parts = content if isinstance(content, list) else [content]
    words = "\n".join(filter(None, map(_result_part, parts)))
    error = "error: " if block.get("is_error") is True else ""
    return Block((error + words) if words or error else "", TOOL_RESULT, text(block.get("tool_use_id")))


def _result_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return "" if part is None else compact_json(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if part.get("type") == "image":
        return f"[image: {text(part.get('file_uuid')) or 'unnamed'}]"
    return "\n".join(part[name] for name in ("title", "url") if isinstance(part.get(name), str)) or compact_json(part)


def _words(name: str, tag: str | None = None) -> Callable[[Mapping[str, Any]], Block]:
    def read(block: Mapping[str, Any]) -> Block:
        said = block.get(name)
        return Block(str(said) if isinstance(said, str | int | float) else "", tag)

    return read


PASSED_OVER = frozenset({"token_budget"})
READERS: Mapping[str, Callable[[Mapping[str, Any]], Block]] = {
    "text": _words("text"),
    "thinking": _words("thinking", THINKING),
    "voice_note": _words("text"),
    "tool_use": _use,
    "tool_result": _result,
}


CLAUDE_AI = Format("claude-ai", _fits, _entries)
