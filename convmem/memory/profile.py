"""The profile: what an agent should know of the user before it is asked anything.

All sections, the surest preferences, the newest lessons; the project's own before those of none, if there is one.
"""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, TypeVar

import apsw

from convmem.domain import Access, Answer
from convmem.limits import PROFILE_CODE_POINTS_MAX, PROFILE_LESSONS_MAX, PROFILE_PREFERENCES_MAX
from convmem.memory import queries
from convmem.memory.cleaning import cleaned
from convmem.memory.facts import lesson_facts, preference_facts, section_facts
from convmem.memory.fitting import fitted
from convmem.memory.inputs import GetProfile
from convmem.profile_text import profile_text

NOTHING = "Nothing is stored about the user yet."
SUREST = "ORDER BY confidence DESC, changed_sequence DESC"
NEWEST = "ORDER BY sequence DESC"

Record = TypeVar("Record")


async def get_profile(access: Access, ask: GetProfile) -> Answer:
    """{sections[], preferences[], lessons[], more?}; `more` counts the preferences and lessons that are not shown."""
    ask, _ = cleaned(ask)
    facts = await access.read(profile, ask.project)
    return Answer(facts, profile_text(facts, PROFILE_CODE_POINTS_MAX) or NOTHING)


def profile(connection: apsw.Connection, project: str | None) -> dict[str, Any]:
    """The facts of the profile."""
    preferences = _chosen(connection, queries.read_preferences, SUREST, project)
    lessons = _chosen(connection, queries.read_lessons, NEWEST, project)
    shown = {
        "sections": [section_facts(found) for found in queries.sections(connection)],
        "preferences": [preference_facts(found) for found in islice(preferences, PROFILE_PREFERENCES_MAX)],
        "lessons": [lesson_facts(found) for found in islice(lessons, PROFILE_LESSONS_MAX)],
    }
    more = {
        "preferences": _count(connection, "memory_preference", project) - len(shown["preferences"]),
        "lessons": _count(connection, "memory_lesson", project) - len(shown["lessons"]),
    }
    return fitted(shown, more)


def _count(connection: apsw.Connection, table: str, project: str | None) -> int:
    """How many records may be shown."""
    found: Any = connection.execute(
        f"SELECT count(*) FROM {table} WHERE ?1 IS NULL OR project IS NULL OR project = ?1", (project,)
    ).fetchone()
    return int(found[0])


def _chosen(
    connection: apsw.Connection,
    read: Callable[[apsw.Connection, str, tuple[str | None, ...]], Iterator[Record]],
    order: str,
    project: str | None,
) -> Iterator[Record]:
    """The records in this order: all, or the project's own and then those of none."""
    if project is None:
        return read(connection, order, ())
    of_one = f"WHERE project IS ? {order}"
    return chain(read(connection, of_one, (project,)), read(connection, of_one, (None,)))
