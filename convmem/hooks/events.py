"""What a hook saw, made fit to leave the process: checked, without its secrets, cut, one line of JSON.

The order is the promise: secrets are looked for in the whole text, only then is it cut, and nothing that has not come
through here is sent or written. A cut could otherwise leave the first half of a secret that is no longer seen as one.
"""

from __future__ import annotations

from collections.abc import Mapping

from convmem import redact
from convmem.hooks.json_text import encoded
from convmem.limits import (
    CAPTURE_DIRECTORY_BYTES_MAX,
    CAPTURE_STATUS_BYTES_MAX,
    CAPTURE_TOOL_BYTES_MAX,
    CAPTURED_OTHER_CODE_POINTS_MAX,
    CAPTURED_PROMPT_CODE_POINTS_MAX,
    EVENT_ID_BYTES_MAX,
    INT64_MAX,
    PROJECT_BYTES_MAX,
    REDACTED_AHEAD_CODE_POINTS,
    REDACTED_BEYOND_CODE_POINTS,
    REDACTED_FIRST_CODE_POINTS,
    SESSION_ID_BYTES_MAX,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CODE_POINTS_MAX = {
    "prompt": CAPTURED_PROMPT_CODE_POINTS_MAX,
    "tool_call": CAPTURED_OTHER_CODE_POINTS_MAX,
    "error": CAPTURED_OTHER_CODE_POINTS_MAX,
}
CUT = "…"
# Two of these that held secrets stay two, by a hash at their end. Other names need not, and a hash of a secret could be
# guessed against.
REQUIRED = ("event_id", "session_id")
NAMES_BYTES_MAX = {
    "event_id": EVENT_ID_BYTES_MAX,
    "session_id": SESSION_ID_BYTES_MAX,
    "project": PROJECT_BYTES_MAX,
    "tool": CAPTURE_TOOL_BYTES_MAX,
    "status": CAPTURE_STATUS_BYTES_MAX,
    "directory": CAPTURE_DIRECTORY_BYTES_MAX,
}
FIELDS = {"kind", "content", "at", *NAMES_BYTES_MAX}


class NotAnEvent(ValueError):
    """This is nothing that can be captured; the sentence says why, without repeating any of it."""


def line(said: Any, event_id: str, now_ms: int) -> bytes | None:
    """The event as one JSON text; None if it says nothing. NotAnEvent.

    `event_id` and `now_ms` are for one that does not say which it is or when it was.
    """
    if not isinstance(said, Mapping):
        raise NotAnEvent("an event is a JSON object")
    given = {"event_id": event_id, **{name: value for name, value in said.items() if value is not None}}
    if given.keys() - FIELDS:
        raise NotAnEvent("an event has a field that has no meaning")
    kind, content = given.get("kind"), given.get("content")
    if not isinstance(kind, str) or kind not in CODE_POINTS_MAX:
        raise NotAnEvent(f"kind is one of {', '.join(CODE_POINTS_MAX)}")
    if not isinstance(content, str):
        raise NotAnEvent("content is a text")
    event: dict[str, Any] = {name: _name(given, name) for name in NAMES_BYTES_MAX if name in given or name in REQUIRED}
    event["kind"], event["at"] = kind, _time(given.get("at", now_ms))
    event["content"] = start_of(content, CODE_POINTS_MAX[kind])
    if not event["content"].strip():
        return None
    return encoded(event)


def start_of(text: str, code_points_max: int) -> str:
    """The start of a text without its secrets; it ends in an ellipsis if there was more.

    Of a long text only a part is looked through, if so much is left over behind what is kept that no secret can reach
    from there to where the part ends.
    """
    for ahead in (code_points_max + REDACTED_FIRST_CODE_POINTS, REDACTED_AHEAD_CODE_POINTS):
        if len(text) > ahead:
            clean = redact.redact(text[:ahead])
            if len(clean) >= code_points_max + REDACTED_BEYOND_CODE_POINTS:
                return _cut(clean, code_points_max)
    return _cut(redact.redact(text), code_points_max)


def _cut(text: str, code_points_max: int) -> str:
    return text if len(text) <= code_points_max else text[: code_points_max - len(CUT)] + CUT


def _name(given: Mapping[str, Any], name: str) -> str:
    text = given.get(name)
    if not isinstance(text, str):
        raise NotAnEvent(f"{name} is a text")
    bytes_max = NAMES_BYTES_MAX[name]
    is_there = bool(text) or name not in REQUIRED
    if not is_there or len(text) > bytes_max or len(text.encode()) > bytes_max or "\0" in text:
        raise NotAnEvent(f"{name} is empty, longer than {bytes_max} bytes or holds U+0000")
    clean = redact.redact_name(text) if name in REQUIRED else redact.redact(text)
    # One that has grown is cut at its start: its end is what tells it from others.
    return clean.encode()[-bytes_max:].decode(errors="ignore")


def _time(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= INT64_MAX:
        raise NotAnEvent("at is a time in milliseconds since 1970")
    return value
