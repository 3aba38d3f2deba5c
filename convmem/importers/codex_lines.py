"""The items of one Codex session, as records: what was said, thought, called and answered.

What a person typed stands twice, as an item that the model saw and as an event of the screen. The items are the
conversation; the events tell which of the user's items were typed. Where there are none, an item is the person's unless
it begins as what the program puts in by itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from convmem.importers.conversations import compact_json, objects, text
from convmem.importers.model import (
    HIDDEN,
    SUBAGENT,
    THINKING,
    TOOL_CALL,
    TOOL_RESULT,
    UNKNOWN,
    Kind,
    Message,
    Notes,
    Role,
)

# How what no person typed begins.
OF_THE_PROGRAM = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>")


class Item(NamedTuple):
    """A line: a name made of what it says, that, its time in ms, whether it is an event of the screen, its number."""

    name: str
    said: Mapping[str, Any]
    at: int | None
    is_event: bool
    number: int


class Said(NamedTuple):
    """One record in the making."""

    role: Role
    text: str
    tags: tuple[str, ...] = ()
    call: str | None = None
    kind: Kind = "conversation"


def records_of(
    conversation: str, items: Sequence[Item], project: str | None, is_subagent: bool, notes: Notes
) -> Iterator[Message]:
    """The records of a session, in the order of its file."""
    typed = {words for item in items if item.is_event if (words := _typed(item.said)) is not None}
    for item in items:
        if item.is_event:
            continue
        reader = ITEMS.get(str(item.said.get("type")))
        if reader is None:
            kind = str(item.said.get("type"))
            notes.keep_raw(kind)
            found = [Said("system", compact_json(item.said), (UNKNOWN,))]
        else:
            found = list(reader(item.said))
        for number, said in enumerate(one for one in found if one.text.strip()):
            role, tags = _whose(said, typed, is_subagent)
            yield Message(
                conversation=conversation,
                id=item.name if number == 0 else f"{item.name}/{number}",
                role=role,
                content=said.text,
                at=item.at,
                project=project,
                tags=(*tags, *((SUBAGENT,) if is_subagent else ())),
                kind=said.kind,
                tool_call_id=said.call,
            )


def _whose(said: Said, typed: set[str], is_subagent: bool) -> tuple[Role, tuple[str, ...]]:
    if said.role != "user":
        return said.role, said.tags
    is_own = said.text.lstrip().startswith(OF_THE_PROGRAM) or (bool(typed) and said.text.strip() not in typed)
    if is_own:
        return "system", (HIDDEN,)
    # What a sub-agent is told was written by the agent that sent it.
    return ("system" if is_subagent else "user"), said.tags


def _typed(said: Mapping[str, Any]) -> str | None:
    """What an event says that a person typed."""
    words = text(said.get("message")) if said.get("type") == "user_message" else None
    return None if words is None else words.strip()


def _message(said: Mapping[str, Any]) -> Iterator[Said]:
    role, content = said.get("role"), said.get("content")
    words: list[str] = [content] if isinstance(content, str) else []
    for block in objects(content):
        if isinstance(block.get("text"), str):
            words.append(block["text"])
        elif block.get("type") in ("input_image", "image", "image_url"):
            words.append(f"[image: {text(block.get('file_id')) or 'unnamed'}]")
        elif block.get("type") in ("input_file", "file"):
            words.append(f"[file: {text(block.get('filename')) or 'unnamed'}]")
        else:
            yield Said("system", compact_json(block), (UNKNOWN,))
    if role in ("user", "assistant"):
        yield Said(role, "\n\n".join(words))
    else:
        yield Said("system", "\n\n".join(words), (HIDDEN,))


def _reasoning(said: Mapping[str, Any]) -> Iterator[Said]:
    parts = [*objects(said.get("summary")), *objects(said.get("content"))]
    words = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    if isinstance(said.get("content"), str):
        words.append(said["content"])
    yield Said("assistant", "\n\n".join(words), (THINKING,))


def _call(said: Mapping[str, Any]) -> Iterator[Said]:
    function = said.get("function")
    name = text(said.get("name")) or (text(function.get("name")) if isinstance(function, dict) else None)
    given = next((said[key] for key in ("arguments", "input", "action", "query") if said.get(key) is not None), None)
    words = given if isinstance(given, str) else compact_json(given)
    kind = str(said.get("type")).removesuffix("_call")
    call = text(said.get("call_id")) or text(said.get("id"))
    yield Said("assistant", f"{name or kind}\n{words}", (TOOL_CALL,), call)


def _output(said: Mapping[str, Any]) -> Iterator[Said]:
    output = said.get("output", said.get("result", said.get("tools")))
    if isinstance(output, dict) and isinstance(output.get("content"), str):
        output = output["content"]
    if isinstance(output, list):
        parts = [one["text"] if isinstance(one.get("text"), str) else compact_json(one) for one in objects(output)]
        output = "\n".join(parts) if parts else compact_json(output)
    words = output if isinstance(output, str) else compact_json(output)
    yield Said("system", words, (TOOL_RESULT,), text(said.get("call_id")))


def _compacted(said: Mapping[str, Any]) -> Iterator[Said]:
    yield Said("assistant", text(said.get("message")) or "", kind="summary")


def _image(said: Mapping[str, Any]) -> Iterator[Said]:
    words = text(said.get("revised_prompt")) or "image"
    yield Said("assistant", f"image_generation\n{words}", (TOOL_CALL,), text(said.get("id")))


def _nothing(said: Mapping[str, Any]) -> Iterator[Said]:
    return iter(())


ITEMS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Said]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call,
    "custom_tool_call": _call,
    "local_shell_call": _call,
    "web_search_call": _call,
    "tool_search_call": _call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "tool_search_output": _output,
    "function_result": _output,
    "image_generation_call": _image,
    "compacted": _compacted,
    # What was packed for the model alone, and what events say of what a person typed.
    **dict.fromkeys(("compaction", "ghost_snapshot", "user_message"), _nothing),
}
