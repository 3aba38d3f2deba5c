"""Rows without secrets, for a daemon that is to take them out of everything.

Every text among the values of a row is looked through, however deep; keys are names that the schema gives. What is
cleaned is the row as it would be stored, so it does not matter how the text came in.
"""

from typing import Any

from convmem.redact import redact


def cleaned(data: dict[str, Any]) -> dict[str, Any]:
    """The data with `[REDACTED:kind]` in the place of every secret."""
    return {name: _cleaned(value) for name, value in data.items()}


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_cleaned(inner) for inner in value]
    return cleaned(value) if isinstance(value, dict) else value
