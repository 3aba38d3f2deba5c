"""What is taken out of texts before they become commands: secrets, and what is too long of what a hook saw.

A secret that was stored once is in the log, in the index and in every backup; so it is taken out before anything is
written. Two ids that held one stay two (redact_name() says how); other names need not, and a hash of a secret could be
guessed against.

What a person or an agent writes is stored as it was sent, unless the daemon is to redact everything; what hooks capture
is always cleaned.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from convmem.inputs import checked
from convmem.limits import (
    CAPTURE_DIRECTORY_BYTES_MAX,
    CAPTURE_STATUS_BYTES_MAX,
    CAPTURE_TOOL_BYTES_MAX,
    CAPTURED_OTHER_CODE_POINTS_MAX,
    CAPTURED_PROMPT_CODE_POINTS_MAX,
    EVENT_ID_BYTES_MAX,
    PROJECT_BYTES_MAX,
    SESSION_ID_BYTES_MAX,
)
from convmem.messages.inputs import CaptureEvent, UpdateMessage, WriteMessage
from convmem.messages.model import CaptureKind
from convmem.redact import redact, redact_name

Written = TypeVar("Written", WriteMessage, UpdateMessage)

KEPT_CODE_POINTS_MAX: Mapping[CaptureKind, int] = {
    "prompt": CAPTURED_PROMPT_CODE_POINTS_MAX,
    "tool_call": CAPTURED_OTHER_CODE_POINTS_MAX,
    "error": CAPTURED_OTHER_CODE_POINTS_MAX,
}
CUT = "…"
# What else of an event may hold a secret, and its bytes at most.
EVENT_NAMES: Mapping[str, int] = {
    "event_id": EVENT_ID_BYTES_MAX,
    "session_id": SESSION_ID_BYTES_MAX,
    "project": PROJECT_BYTES_MAX,
    "tool": CAPTURE_TOOL_BYTES_MAX,
    "status": CAPTURE_STATUS_BYTES_MAX,
    "directory": CAPTURE_DIRECTORY_BYTES_MAX,
}
# Those of them that must stay unlike each other.
IDS: Mapping[str, Callable[[str], str]] = {"event_id": redact_name, "session_id": redact_name}
# What of a message's metadata may hold one, beside the tags.
METADATA_TEXTS = ("summary", "tool_call_id", "project")


def cleaned_event(event: CaptureEvent) -> CaptureEvent:
    """The event without secrets and with no more text than is kept; a name that has grown too long is cut."""
    given = event.model_dump()
    names = {
        name: _within(IDS.get(name, redact)(given[name]), bytes_max)
        for name, bytes_max in EVENT_NAMES.items()
        if given[name] is not None
    }
    return CaptureEvent.model_validate({**given, **names, "content": _cut(redact(event.content), event.kind)})


def _within(name: str, bytes_max: int) -> str:
    """A name in at most so many bytes: its end is kept, which tells a redacted one from others."""
    encoded = name.encode()
    return name if len(encoded) <= bytes_max else encoded[-bytes_max:].decode(errors="ignore")


def _cut(text: str, kind: CaptureKind) -> str:
    code_points_max = KEPT_CODE_POINTS_MAX[kind]
    return text if len(text) <= code_points_max else text[: code_points_max - len(CUT)] + CUT


def cleaned_message(ask: Written) -> Written:
    """The message, or the change of one, without secrets in anything that it says. Invalid if a name gets too long."""
    given: dict[str, Any] = ask.model_dump(exclude_unset=True)
    if given.get("content") is not None:
        given["content"] = redact(given["content"])
    if "session_id" in given:
        given["session_id"] = redact_name(given["session_id"])
    metadata = given.get("metadata") or {}
    for name in METADATA_TEXTS:
        if metadata.get(name) is not None:
            metadata[name] = redact(metadata[name])
    if metadata.get("tags"):
        metadata["tags"] = list(map(redact, metadata["tags"]))
    return checked(type(ask), given)
