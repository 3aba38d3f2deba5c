"""Secrets are taken out of what is asked before it becomes a command: nothing secret reaches the writer or the log.

A project or a key that held a secret stays unlike every other (redact_name() says how), and what is asked for is
cleaned like what is stored: so a project is found by the name it was stored under. A placeholder may be longer than
what it stands for, so a cleaned text is cut to the bound of its field again; of a name the end is kept, which tells it
from others.
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
from convmem.quoting import start
from convmem.redact import redact, redact_name

Ask = TypeVar("Ask", bound=Input)

TAKEN_OUT = " A secret in it was replaced by a placeholder: secrets are never stored."


def _project(text: str) -> str:
    return redact_name(text).encode()[-PROJECT_BYTES_MAX:].decode(errors="ignore")


def _key(text: str) -> str:
    return redact_name(text)[-PREFERENCE_KEY_CODE_POINTS_MAX:]


def _text(code_points_max: int) -> Callable[[str], str]:
    return lambda text: start(redact(text), code_points_max)


# What may hold a secret, by its name in the inputs.
CLEAN: Mapping[str, Callable[[str], str]] = {
    "project": _project,
    "key": _key,
    "value": _text(PREFERENCE_VALUE_CODE_POINTS_MAX),
    **dict.fromkeys(("situation", "mistake", "correction"), _text(LESSON_TEXT_CODE_POINTS_MAX)),
    "content": _text(SECTION_CODE_POINTS_MAX),
}


def cleaned(ask: Ask) -> tuple[Ask, bool]:
    """The same without secrets, and whether there were any."""
    given = {name: value for name in CLEAN if (value := getattr(ask, name, None)) is not None}
    changes = {name: clean for name, value in given.items() if (clean := CLEAN[name](value)) != value}
    return (ask.model_copy(update=changes), True) if changes else (ask, False)
