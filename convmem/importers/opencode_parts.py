"""One message of OpenCode and its parts, as records: the words are in parts alone, and every kind of part has a rule.

text                          what was said; hidden if it is synthetic or ignored: no person wrote or saw it
file, agent, subtask          a line in the text, in the place where it stands
reasoning                     thinking
tool                          a call, and a result once there is one
steps, snapshots, patches …   no words: passed over and counted
anything else                 kept as its JSON
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PureWindowsPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from convmem.importers.model import HIDDEN, SUBAGENT, THINKING, TOOL_CALL, TOOL_RESULT, UNKNOWN, Message, Notes, Role
from convmem.importers.times import at_ms

ROLES: Mapping[Any, Role] = {"user": "user", "assistant": "assistant"}
WITHOUT_WORDS = frozenset({"step-start", "step-finish", "snapshot", "patch", "retry", "compaction"})
# What only a model's message has: it tells whose parts these are where the message itself cannot be read.
OF_MODELS = frozenset({"reasoning", "tool", "step-start", "step-finish"})
NAME_MAX = 200


class Talk(NamedTuple):
    """What all messages of a session have alike."""

    conversation: str
    title: str | None
    project: str | None
    is_child: bool


class Piece(NamedTuple):
    """A message or a part as a store has it. `data` is None if it cannot be read; `at` is what it is ordered by."""

    id: str
    at: int | None
    data: dict[str, Any] | None


class Draft(NamedTuple):
    """A record without its id. `is_talk` if it goes on with the next one."""

    role: Role
    content: str
    tags: tuple[str, ...] = ()
    at: int | None = None
    tool_call_id: str | None = None
    is_talk: bool = False


def messages(talk: Talk, said: Piece, parts: Sequence[Piece], notes: Notes) -> Iterator[Message]:
    """The records of one message, the first with its id, the further ones with their number behind it."""
    info = said.data if said.data is not None else {}
    blocks = [part.data for part in parts if part.data is not None]
    if not parts and isinstance(info.get("parts"), list):
        blocks = [block for block in info["parts"] if isinstance(block, dict)]
    role = _role(talk, said, blocks)
    drafts = (draft for block in blocks for draft in _drafts(block, role, notes))
    every = [*_joined(draft for draft in drafts if draft.content.strip()), *_error(info)]
    tags = (SUBAGENT,) if talk.is_child else ()
    for count, draft in enumerate(every):
        yield Message(
            conversation=talk.conversation,
            id=f"{said.id}/{count}" if count else said.id,
            role=draft.role,
            content=draft.content,
            at=said.at if draft.at is None and not count else draft.at,
            title=talk.title,
            project=talk.project,
            tags=draft.tags + tags,
            tool_call_id=draft.tool_call_id,
        )


def project_of(directory: Any) -> str | None:
    """The last component of a working directory, of Windows too."""
    return (PureWindowsPath(directory).name or None) if isinstance(directory, str) else None


def _role(talk: Talk, said: Piece, blocks: Sequence[dict[str, Any]]) -> Role:
    if said.data is None:
        return "assistant" if any(_kind(block) in OF_MODELS for block in blocks) else "system"
    role = ROLES.get(_text(said.data.get("role")), "system")
    # The prompt of a child session is written by the session that began it.
    return "system" if talk.is_child and role == "user" else role


def _drafts(block: dict[str, Any], role: Role, notes: Notes) -> Iterator[Draft]:
    kind = _kind(block)
    if kind in WITHOUT_WORDS:
        notes.pass_over(kind)
    elif kind in LINES:
        yield Draft(role, LINES[kind](block), at=_at(block, "start"), is_talk=True)
    elif kind in BLOCKS:
        yield from BLOCKS[kind](block, role)
    else:
        notes.keep_raw(kind or "a part without a type")
        yield Draft("system", _json(block), (UNKNOWN,))


def _said(block: dict[str, Any], role: Role) -> Iterator[Draft]:
    text, at = _text(block.get("text")), _at(block, "start")
    if block.get("synthetic") is True or block.get("ignored") is True:
        yield Draft("system", text, (HIDDEN,), at, is_talk=True)
    else:
        yield Draft(role, text, (), at, is_talk=True)


def _thought(block: dict[str, Any], role: Role) -> Iterator[Draft]:
    yield Draft("assistant", _text(block.get("text")), (THINKING,), _at(block, "start"))


def _used(block: dict[str, Any], role: Role) -> Iterator[Draft]:
    state = block.get("state") if isinstance(block.get("state"), dict) else {}
    assert isinstance(state, dict)
    call = block.get("callID")
    tool_call_id = call if isinstance(call, str) and call else None
    # While a model is still writing its input, that is there as it comes and not parsed.
    given = state.get("input") or state.get("raw")
    content = "\n".join(filter(None, (_text(block.get("tool")) or "tool", _shown(given))))
    yield Draft("assistant", content, (TOOL_CALL,), _at(state, "start"), tool_call_id)
    results = {"completed": _output, "error": _failure}
    if result := results.get(_text(state.get("status"))):
        yield Draft("system", result(state), (TOOL_RESULT,), _at(state, "end"), tool_call_id)


def _output(state: dict[str, Any]) -> str:
    attached = state.get("attachments")
    lines = [_file(file) for file in attached if isinstance(file, dict)] if isinstance(attached, list) else []
    return "\n".join(filter(None, (_shown(state.get("output")), *lines)))


def _failure(state: dict[str, Any]) -> str:
    return f"error: {_shown(state.get('error')) or 'it says nothing of itself'}"


def _error(info: dict[str, Any]) -> Iterator[Draft]:
    """What ended a model's message before its time."""
    error = info.get("error")
    if error is None:
        return
    about = error if isinstance(error, dict) else {"message": error}
    data = about.get("data")
    words = (data.get("message") if isinstance(data, dict) else None, about.get("message"), about.get("name"))
    text = next((word for word in words if isinstance(word, str) and word.strip()), None) or _json(error)
    yield Draft("system", f"error: {text}", (TOOL_RESULT,), _at(info, "completed"))


def _file(block: dict[str, Any]) -> str:
    mime, url = _text(block.get("mime")), _text(block.get("url"))
    source = block.get("source")
    path = _text(source.get("path")) if isinstance(source, dict) else ""
    if not url.startswith("data:"):
        path = path or _path(url)
    name = _text(block.get("filename")) or PureWindowsPath(path).name or _text(block.get("id")) or mime
    return f"[{'image' if mime.startswith('image/') else 'file'}: {_one_line(name)}]"


def _path(url: str) -> str:
    try:
        return unquote(urlsplit(url).path)
    except ValueError:
        return ""


def _agent(block: dict[str, Any]) -> str:
    return f"[agent: {_one_line(_text(block.get('name')))}]"


def _subtask(block: dict[str, Any]) -> str:
    asked = _text(block.get("description")) or _text(block.get("prompt"))
    return f"[subtask: {_one_line(', '.join(filter(None, (_text(block.get('agent')), asked))))}]"


LINES: Mapping[str, Callable[[dict[str, Any]], str]] = {"file": _file, "agent": _agent, "subtask": _subtask}
BLOCKS: Mapping[str, Callable[[dict[str, Any], Role], Iterator[Draft]]] = {
    "text": _said,
    "reasoning": _thought,
    "tool": _used,
}


def _joined(drafts: Iterator[Draft]) -> Iterator[Draft]:
    """Drafts, those of a run of text made one."""
    run: list[Draft] = []
    for draft in drafts:
        if run and not (draft.is_talk and run[0].is_talk and (draft.role, draft.tags) == (run[0].role, run[0].tags)):
            yield _one(run)
            run = []
        run.append(draft)
    if run:
        yield _one(run)


def _one(run: Sequence[Draft]) -> Draft:
    return run[0]._replace(content="\n\n".join(draft.content for draft in run))


def _kind(block: dict[str, Any]) -> str:
    return _text(block.get("type"))


def _at(holder: dict[str, Any], name: str) -> int | None:
    time = holder.get("time")
    return at_ms(time.get(name)) if isinstance(time, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())[:NAME_MAX]


def _shown(value: Any) -> str:
    """A text as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else "" if value is None else _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
