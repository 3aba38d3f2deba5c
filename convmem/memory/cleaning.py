"""Secrets are taken out of what is asked before it becomes a command: nothing secret reaches the writer or the log.

What is asked for is cleaned like what is stored: so a project is found by the name it was stored under. A placeholder
may be longer than what it stands for, so a cleaned text is cut to the bound of its field again, and then ends in `…`.
Two projects or keys that differ in a secret alone become one: a hash that tells them apart could be guessed against.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from convmem.inputs import Input
from convmem.limits import (
    LESSON_TEXT_CODE_POINTS_MAX,
    PREFERENCE_KEY_CODE_POINTS_MAX,
    PREFERENCE_VALUE_CODE_POINTS_MAX,
    PROJECT_BYTES_MAX,
    SECTION_CODE_POINTS_MAX,
)
from convmem.quoting import cut
from convmem.redact import redact
from convmem.text import cut_to_bytes

Ask = TypeVar("Ask", bound=Input)

TAKEN_OUT = " A secret in it was replaced by a placeholder: secrets are never stored."


def _project(text: str) -> str:
    return cut_to_bytes(redact(text), PROJECT_BYTES_MAX)


def _text(code_points_max: int) -> Callable[[str], str]:
    def clean(text: str) -> str:
        redacted = redact(text)
        return text if redacted == text else cut(redacted, code_points_max)

    return clean


# What may hold a secret, by its name in the inputs.
CLEAN: Mapping[str, Callable[[str], str]] = {
    "project": _project,
    "key": _text(PREFERENCE_KEY_CODE_POINTS_MAX),
    "value": _text(PREFERENCE_VALUE_CODE_POINTS_MAX),
    **dict.fromkeys(("situation", "mistake", "correction"), _text(LESSON_TEXT_CODE_POINTS_MAX)),
    "content": _text(SECTION_CODE_POINTS_MAX),
}


def cleaned(ask: Ask) -> tuple[Ask, bool]:
    """The same without secrets, and whether there were any."""
    given = {name: value for name in CLEAN if (value := getattr(ask, name, None)) is not None}
    changes = {name: clean for name, value in given.items() if (clean := CLEAN[name](value)) != value}
    return (ask.model_copy(update=changes), True) if changes else (ask, False)
