"""What Claude Code gives its hooks, as events: which hook means what stands in one table.

Of a tool call that is the tool, its input and its result. Both share the room that there is: what one leaves the other
has, and where both are long each has half of it, so that two results make two texts. The texts inside an input are cut
one by one, so that what stands behind a long one is still seen. Secrets are looked for before each cut.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from convmem.hooks.events import NotAnEvent, start_of
from convmem.hooks.json_text import encoded
from convmem.limits import CAPTURE_DIRECTORY_BYTES_MAX, CAPTURED_OTHER_CODE_POINTS_MAX, PROJECT_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Said = Mapping[str, Any]

COMPLETED, FAILED = "completed", "error"
NAME_CODE_POINTS_MAX = 100
# Texts inside an input are not made shorter than this.
TEXT_CODE_POINTS_MIN = 24
# So much of an input is looked at, more than is kept since its texts are cut; of all else only the start is. What is
# left out takes no time.
INPUT_CODE_POINTS_MAX = 2 * CAPTURED_OTHER_CODE_POINTS_MAX
ENTRIES_MAX, LEVELS_MAX = 16, 4
LEVELS_UP_MAX = 64
CUT = "…"


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
    name = _name(said)
    if result is None:
        content = f"{name} {_input(said, CAPTURED_OTHER_CODE_POINTS_MAX - len(name) - 1)}"
    else:
        asked, came = _shared(said, result, CAPTURED_OTHER_CODE_POINTS_MAX - len(f"{name}  -> "))
        content = f"{name} {asked} -> {came}"
    return {"kind": "tool_call", "content": content, "status": COMPLETED, **_which(said)}


def _failure(said: Said) -> dict[str, Any]:
    return _error(said, said.get("error") or said.get("error_message"))


def _error(said: Said, error: Any) -> dict[str, Any]:
    name = _name(said)
    asked, came = _shared(said, error or "failed", CAPTURED_OTHER_CODE_POINTS_MAX - len(f": {name} "))
    return {"kind": "error", "content": f"{came}: {name} {asked}", "status": FAILED, **_which(said)}


def _end_of_turn(said: Said) -> dict[str, Any]:
    parts = [_compact(said[name]) for name in ("error", "error_details") if said.get(name)]
    return {"kind": "error", "content": ": ".join(parts), "status": FAILED}


def _which(said: Said) -> dict[str, Any]:
    return {"tool": said.get("tool_name"), "event_id": said.get("tool_use_id")}


def _name(said: Said) -> str:
    name = said.get("tool_name")
    return start_of(name, NAME_CODE_POINTS_MAX) if isinstance(name, str) else "a tool"


def _shared(said: Said, result: Any, room: int) -> tuple[str, str]:
    """The input of a tool and what came of it, in so many code points together."""
    came = _compact(result)
    asked = _input(said, max(room // 2, room - len(came)))
    return asked, start_of(came, room - len(asked))


def _input(said: Said, room: int) -> str:
    """The input of a tool in so many code points: its texts are cut until it fits, and if need be its end."""
    short = _Shortened(INPUT_CODE_POINTS_MAX).of(said.get("tool_input", {}))
    text_max = room
    while len(text := _said(short)) > room and text_max > TEXT_CODE_POINTS_MIN and not isinstance(short, str):
        text_max = max(text_max * 3 // 4, TEXT_CODE_POINTS_MIN)
        short = _with_texts_cut(short, text_max)
    return start_of(text, room)


def _compact(value: Any) -> str:
    """The start of a value as text: a text as it is, all else as JSON."""
    short = _Shortened(CAPTURED_OTHER_CODE_POINTS_MAX).of(value)
    return start_of(_said(short), CAPTURED_OTHER_CODE_POINTS_MAX)


def _said(value: Any) -> str:
    return value if isinstance(value, str) else encoded(value).decode()


class _Shortened:
    """A value with the starts of its texts, their secrets taken out, and with so many entries and levels; about so much
    of it in all.
    """

    def __init__(self, code_points_max: int) -> None:
        self._left = code_points_max

    def of(self, value: Any, level: int = 1) -> Any:
        if isinstance(value, str):
            text = start_of(value, CAPTURED_OTHER_CODE_POINTS_MAX) if self._left > 0 else CUT
            self._left -= len(text)
            return text
        self._left -= 1
        if not isinstance(value, Mapping | list):
            return value
        if level > LEVELS_MAX or self._left <= 0:
            return CUT
        if isinstance(value, list):
            return [self.of(inner, level + 1) for inner in value[:ENTRIES_MAX]]
        entries = list(value.items())[:ENTRIES_MAX]
        return {name: self.of(inner, level + 1) for name, inner in entries}


def _with_texts_cut(value: Any, code_points_max: int) -> Any:
    """The same with shorter texts. Nothing has to be looked for any more: each is without its secrets."""
    if isinstance(value, str):
        return value if len(value) <= code_points_max else value[: code_points_max - len(CUT)] + CUT
    if isinstance(value, list):
        return [_with_texts_cut(inner, code_points_max) for inner in value]
    if isinstance(value, dict):
        return {name: _with_texts_cut(inner, code_points_max) for name, inner in value.items()}
    return value


# All others say nothing that is worth remembering: a session begins, ends or is compacted, a turn ends.
CAPTURED: Mapping[str, Callable[[Said], dict[str, Any]]] = {
    "UserPromptSubmit": _prompt,
    "PostToolUse": _tool_call,
    "PostToolUseFailure": _failure,
    "StopFailure": _end_of_turn,
}
