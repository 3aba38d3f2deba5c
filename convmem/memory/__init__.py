"""What to remember about the user: preferences, lessons and the profile, as one domain."""

from convmem.domain import Domain
from convmem.memory import check, decide, kept, lines, projection, prune, queries, tools
from convmem.memory.create import CREATE
from convmem.memory.events import LessonKept, LessonSaved, PreferenceKept, PreferenceSaved

DOMAIN = Domain(
    name="memory",
    create=CREATE,
    deciders={**decide.DECIDERS, **prune.DECIDERS},
    appliers=projection.APPLIERS,
    made_ids={
        PreferenceSaved: lambda event: event.preference_id,
        LessonSaved: lambda event: event.lesson_id,
    },
    made_numbers={
        PreferenceSaved: lambda event: event.number,
        PreferenceKept: lambda event: event.number,
        LessonSaved: lambda event: event.number,
        LessonKept: lambda event: event.number,
    },
    live=kept.live,
    records=lambda connection: sum(queries.totals(connection)),
    record_types=lines.RECORD_TYPES,
    waste=kept.waste,
    check=check.check,
    tools=tools.TOOLS,
)
