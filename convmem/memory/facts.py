"""How each record looks to a program: the one place that says so.

What is absent is left out. A sequence is a string, like every number that may become too large for a program; times
are ms since the Unix epoch.
"""

from typing import Any

from convmem.memory.model import Lesson, Preference, Section
from convmem.messages.model import origin_facts


def preference_facts(record: Preference) -> dict[str, Any]:
    """A preference, whole."""
    facts = {
        "id": record.preference_id,
        "number": record.number,
        "category": record.category,
        "key": record.key,
        "value": record.value,
        "confidence": record.confidence,
        "source": record.source,
        "previous_value": record.previous_value,
        "project": record.project,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "sequence": str(record.sequence),
        "origin": origin_facts(record.origin),
    }
    return {name: value for name, value in facts.items() if value is not None}


def lesson_facts(record: Lesson) -> dict[str, Any]:
    """A lesson, whole."""
    facts = {
        "id": record.lesson_id,
        "number": record.number,
        "situation": record.situation,
        "mistake": record.mistake,
        "correction": record.correction,
        "project": record.project,
        "created_at": record.created_at,
        "sequence": str(record.sequence),
        "origin": origin_facts(record.origin),
    }
    return {name: value for name, value in facts.items() if value is not None}


def section_facts(record: Section) -> dict[str, Any]:
    """A section of the profile, whole."""
    return {
        "section": record.section,
        "content": record.content,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "sequence": str(record.sequence),
        "origin": origin_facts(record.origin),
    }
