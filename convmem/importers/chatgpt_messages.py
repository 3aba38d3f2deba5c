"""One message of a ChatGPT conversation, as records: what was said, thought, called, answered, or hidden.

Each kind of content has its reader; what has none is kept as its JSON. Who typed something is told by the role alone;
what the program put in unseen (a profile, instructions, search results) is never a person's text.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from convmem.importers.conversations import compact_json, text, without_marks
from convmem.importers.model import BRANCH, HIDDEN, THINKING, TOOL_CALL, TOOL_RESULT, UNKNOWN, Message, Notes, Role
from convmem.importers.times import at_ms

# Texts, each with the tag of what is no plain talk.
Pieces = Iterator[tuple[str, str | None]]
POINTERS: Mapping[str, str] = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "real_time_user_audio_video_asset_pointer": "audio",
    "video_container_asset_pointer": "video",
}


class Place(NamedTuple):
    """Where a message stands. `call` is the id of the message before it, which the result of a tool answers."""

    conversation: str
    id: str
    title: str | None
    is_branch: bool
    call: str | None


def records_of(place: Place, message: Mapping[str, Any], notes: Notes) -> Iterator[Message]:
    """The records of a message."""
    content = message.get("content")
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    if not isinstance(content, dict):
        if content is not None:
            notes.skip(f"{place.conversation}: message {place.id[:64]}", "its content is of no known shape")
        return
    kind = text(content.get("content_type"))
    reader = None if kind is None else READERS.get(kind)
    if reader is None:
        notes.keep_raw(str(kind))
    found: list[tuple[str, str | None]] = (
        [(compact_json(content), UNKNOWN)] if reader is None else list(reader(content))
    )
    metadata = message.get("metadata")
    facts = metadata if isinstance(metadata, dict) else {}
    found += [(f"[file: {name}]", None) for name in _attached(facts)]
    role, tags, tool_call_id = _whose(message, kind, facts, place)
    recipient = f"{message.get('recipient')}\n" if TOOL_CALL in tags else ""
    for number, (words, tag) in enumerate(_joined(found, notes)):
        yield Message(
            conversation=place.conversation,
            id=place.id if number == 0 else f"{place.id}/{number}",
            role=role,
            content=recipient + words,
            at=at_ms(message.get("create_time")) or at_ms(message.get("update_time")),
            title=place.title,
            tags=(*tags, *((tag,) if tag else ()), *((BRANCH,) if place.is_branch else ())),
            tool_call_id=tool_call_id,
        )


def _whose(
    message: Mapping[str, Any], kind: Any, facts: Mapping[str, Any], place: Place
) -> tuple[Role, tuple[str, ...], str | None]:
    """Role, tags and the call that it belongs to."""
    author = message.get("author")
    said_by = author.get("role") if isinstance(author, dict) else None
    if kind in CONTEXT or facts.get("is_visually_hidden_from_conversation") is True:
        return "system", (HIDDEN,), None
    if said_by == "tool":
        return "system", (TOOL_RESULT,), place.call
    if said_by == "assistant":
        if kind in ("thoughts", "reasoning_recap"):
            return "assistant", (THINKING,), None
        if message.get("recipient") not in (None, "all"):
            return "assistant", (TOOL_CALL,), place.id
        return "assistant", (), None
    return ("user", (), None) if said_by == "user" else ("system", (HIDDEN,), None)


def _joined(found: Sequence[tuple[str, str | None]], notes: Notes) -> Iterator[tuple[str, str | None]]:
    """Pieces that stand side by side and have no tag, as one text; what says nothing is left out."""
    plain: list[str] = []
    for words, tag in found:
        text = without_marks(words)
        if tag is not None:
            notes.keep_raw("part of a message")
            if "".join(plain).strip():
                yield "\n\n".join(plain), None
            plain = []
            yield text, tag
        elif text.strip():
            plain.append(text)
    if plain:
        yield "\n\n".join(plain), None


def _parts(content: Mapping[str, Any]) -> Pieces:
    parts = content.get("parts")
    if isinstance(parts, str):
        parts = [parts]
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, str):
            yield part, None
        elif isinstance(part, dict):
            yield _part(part)
    if not isinstance(parts, list) and isinstance(content.get("text"), str):
        yield content["text"], None


def _part(part: Mapping[str, Any]) -> tuple[str, str | None]:
    kind = part.get("content_type")
    if isinstance(kind, str) and kind in POINTERS:
        inner = part.get("audio_asset_pointer")
        pointer = part.get("asset_pointer") or (inner.get("asset_pointer") if isinstance(inner, dict) else None)
        name = pointer.rpartition("/")[2] if isinstance(pointer, str) else "unnamed"
        return f"[{POINTERS[kind]}: {name}]", None
    if isinstance(part.get("text"), str):
        return part["text"], None
    return compact_json(part), UNKNOWN


def _fields(*names: str) -> Callable[[Mapping[str, Any]], Pieces]:
    """Texts of these names, each a line of its own; the parts if there are none."""

    def read(content: Mapping[str, Any]) -> Pieces:
        texts = [content[name] for name in names if isinstance(content.get(name), str) and content[name].strip()]
        if texts:
            yield "\n".join(texts), None
        else:
            yield from _parts(content)

    return read


def _error(content: Mapping[str, Any]) -> Pieces:
    texts = [content[name] for name in ("name", "text") if isinstance(content.get(name), str)]
    yield f"error: {': '.join(texts)}", None


def _thoughts(content: Mapping[str, Any]) -> Pieces:
    thoughts = content.get("thoughts")
    for thought in thoughts if isinstance(thoughts, list) else ():
        if isinstance(thought, dict):
            texts = [thought[name] for name in ("summary", "content") if isinstance(thought.get(name), str)]
            yield "\n".join(texts), None
    if not isinstance(thoughts, list):
        yield from _parts(content)


def _screen(content: Mapping[str, Any]) -> Pieces:
    screenshot = content.get("screenshot")
    if isinstance(screenshot, dict):
        yield _part({"content_type": "image_asset_pointer", **screenshot})
    state = content.get("state")
    if isinstance(state, dict):
        yield "\n".join(str(state[name]) for name in ("title", "url") if isinstance(state.get(name), str)), None


CONTEXT = frozenset({"user_editable_context", "model_editable_context"})
READERS: Mapping[str, Callable[[Mapping[str, Any]], Pieces]] = {
    "text": _parts,
    "multimodal_text": _parts,
    "code": _fields("text"),
    "execution_output": _fields("text"),
    "computer_output": _screen,
    "tether_quote": _fields("title", "url", "text"),
    "tether_browsing_display": _fields("result", "summary"),
    "tether_browsing_code": _fields("text"),
    "sonic_webpage": _fields("title", "url", "text"),
    "system_error": _error,
    "citable_code_output": _fields("output_str"),
    "thoughts": _thoughts,
    "reasoning_recap": _fields("content"),
    **dict.fromkeys(CONTEXT, _fields("user_profile", "user_instructions", "model_set_context", "structured_context")),
}


def _attached(facts: Mapping[str, Any]) -> Iterator[str]:
    attachments = facts.get("attachments")
    for one in attachments if isinstance(attachments, list) else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str) and one["name"]:
            yield one["name"]
