"""Secrets in records of other programs' files: taken out of every text that is kept, before anything is written.

Names that make a record one (its ids) stay two where they were two, as redact_name() has it.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from convmem.redact import redact, redact_name

IDS = frozenset({"conversation", "id", "session_id", "account"})
TEXTS = frozenset(
    {"content", "summary", "project", "tool_call_id", "key", "value", "situation", "mistake", "correction"}
)
# The same names and labels stand in every record of a conversation.
_name = lru_cache(maxsize=4_096)(redact_name)
_label = lru_cache(maxsize=4_096)(redact)
LABELS = frozenset({"project", "tool_call_id", "key", "summary"})


def _redacted(name: str, value: str) -> str:
    if name in IDS:
        return _name(value)
    if name in LABELS:
        return _label(value)
    return redact(value) if name in TEXTS else value


def cleaned(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without secrets. What is no text stays as it is: whoever reads the record refuses it."""
    found = dict(record)
    for name, value in record.items():
        if isinstance(value, str):
            found[name] = _redacted(name, value)
    if isinstance(record.get("tags"), list | tuple):
        found["tags"] = [_label(tag) if isinstance(tag, str) else tag for tag in record["tags"]]
    for name in ("links", "captured"):
        value = record.get(name)
        if isinstance(value, dict):
            found[name] = {key: _label(one) if isinstance(one, str) else one for key, one in value.items()}
        elif isinstance(value, list | tuple):
            found[name] = [cleaned(one) if isinstance(one, dict) else one for one in value]
    return found
