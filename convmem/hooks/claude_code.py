"""What Claude Code gives its hooks, as events: which hook means what stands in one table.

Of a tool call that is the tool, its input and, where it is short, its result. Texts inside are cut one by one, so that
what stands behind a long one is still seen; each is redacted before that.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from convmem.hooks.events import NotAnEvent, encoded, start_of
from convmem.limits import CAPTURE_DIRECTORY_BYTES_MAX, PROJECT_BYTES_MAX

Said = Mapping[str, Any]
COMPLETED, FAILED = "completed", "error"
RESULT_CODE_POINTS_MAX, TEXT_CODE_POINTS_MAX = 300, 400
ENTRIES_MAX, LEVELS_MAX = 16, 4
LEVELS_UP_MAX = 64


def event_of(said: Any) -> dict[str, Any] | None:
    """The event that a hook's input means, in the form that events.line takes; None if it is nothing to remember."""
    if not isinstance(said, Mapping) or not isinstance(said.get("hook_event_name"), str):
        raise NotAnEvent("this is not what Claude Code gives a hook")
    read = CAPTURED.get(said["hook_event_name"])
    if read is None:
        return None
    event = {"session_id": said.get("session_id"), **read(said)}
    directory = said.get("cwd")
    if isinstance(directory, str) and directory and len(directory.encode()) <= CAPTURE_DIRECTORY_BYTES_MAX:
        event |= {"directory": directory, "project": project_of(directory)}
    return event


def project_of(directory: str) -> str | None:
    """The name of the working tree that a directory stands in, else its own; None if it has none."""
    top = directory
    for _ in range(LEVELS_UP_MAX):
        if os.path.lexists(os.path.join(top, ".git")):
            break
        above = os.path.dirname(top)
        if above == top:
            top = directory
            break
        top = above
    name = os.path.basename(top.rstrip("/"))
    return name if name and len(name.encode()) <= PROJECT_BYTES_MAX else None


def _prompt(said: Said) -> dict[str, Any]:
    return {"kind": "prompt", "content": said.get("prompt"), "event_id": said.get("prompt_id")}


def _tool_call(said: Said) -> dict[str, Any]:
    result = said.get("tool_response")
    error = (result.get("error") or result.get("is_error")) if isinstance(result, Mapping) else None
    if error:
        return _error(said, result if error is True else error)
    content = _called(said)
    if result is not None and _is_short(result):
        content += f" -> {_compact(result)}"
    return {"kind": "tool_call", "content": content, "status": COMPLETED, **_which(said)}


def _failure(said: Said) -> dict[str, Any]:
    return _error(said, said.get("error") or said.get("error_message"))


def _error(said: Said, error: Any) -> dict[str, Any]:
    content = f"{_compact(error)}: {_called(said)}" if error else f"failed: {_called(said)}"
    return {"kind": "error", "content": content, "status": FAILED, **_which(said)}


def _end_of_turn(said: Said) -> dict[str, Any]:
    parts = [_compact(said[name]) for name in ("error", "error_details") if said.get(name)]
    return {"kind": "error", "content": ": ".join(parts), "status": FAILED}


def _which(said: Said) -> dict[str, Any]:
    return {"tool": said.get("tool_name"), "event_id": said.get("tool_use_id")}


def _called(said: Said) -> str:
    name = said.get("tool_name")
    return f"{name if isinstance(name, str) else 'a tool'} {_compact(said.get('tool_input', {}))}"


def _is_short(result: Any) -> bool:
    return len(result if isinstance(result, str) else encoded(result)) <= RESULT_CODE_POINTS_MAX


def _compact(value: Any) -> str:
    """A value as short text: a text as it is, all else as JSON."""
    short = _shortened(value, 1)
    return short if isinstance(short, str) else encoded(short).decode()


def _shortened(value: Any, level: int) -> Any:
    if isinstance(value, str):
        return start_of(value, TEXT_CODE_POINTS_MAX)
    if not isinstance(value, Mapping | list):
        return value
    if level > LEVELS_MAX:
        return "…"
    if isinstance(value, list):
        return [_shortened(inner, level + 1) for inner in value[:ENTRIES_MAX]]
    entries = list(value.items())[:ENTRIES_MAX]
    return {name: _shortened(inner, level + 1) for name, inner in entries}


# All others say nothing that is worth remembering: a session begins, ends or is compacted, a turn ends.
CAPTURED: Mapping[str, Callable[[Said], dict[str, Any]]] = {
    "UserPromptSubmit": _prompt,
    "PostToolUse": _tool_call,
    "PostToolUseFailure": _failure,
    "StopFailure": _end_of_turn,
}
