"""What is known about a topic: preferences, lessons and messages, the best of each, on one page.

The number of entries is shared: each block gets what it has, or as many as the others that have more. Of what is known
for the project asked for, its own stands first; then what belongs to none; nothing of another project. What matches as
well is counted as far as it was looked at: one message more than may be shown, and the most promising records.
"""

from collections import Counter
from typing import Any, NamedTuple

import apsw

from convmem.domain import Access, Answer
from convmem.limits import RECALL_CODE_POINTS_MAX, RECALL_HISTORY_MAX, RECALL_SCORED_MAX
from convmem.memory import queries
from convmem.memory.cleaning import cleaned
from convmem.memory.facts import lesson_facts, preference_facts
from convmem.memory.fitting import fitted
from convmem.memory.history import found_in_history, history_quote
from convmem.memory.inputs import Recall
from convmem.memory.ranking import ranked
from convmem.profile_text import INTRO, lesson, preference
from convmem.quoting import Block, page, shares

NOTHING = "Nothing is known about this topic: no preference, no lesson, no message."
SHORTEST_CODE_POINTS = 80
QUOTES = {"preferences": preference, "lessons": lesson, "history": history_quote}


class Matching(NamedTuple):
    """The best of one list as facts, how many match, and whether others may that nobody has looked at."""

    best: list[dict[str, Any]]
    matches: int
    is_at_least: bool


async def recall(access: Access, ask: Recall) -> Answer:
    """{preferences[], lessons[], history[], more?, at_least?}, each best first; `more` counts those that match as well,
    and `at_least` names the lists of which there may be more than that.
    """
    ask, _ = cleaned(ask)
    found: dict[str, Matching] = await access.read(_remembered, ask)
    history_max = min(RECALL_HISTORY_MAX, ask.limit)
    messages, has_others = await found_in_history(access, ask.topic, history_max + 1, ask.project)
    found["history"] = Matching(messages[:history_max], len(messages), has_others)
    counts = shares([len(matching.best) for matching in found.values()], ask.limit)
    shown = {name: matching.best[:count] for (name, matching), count in zip(found.items(), counts, strict=True)}
    facts = fitted(shown, {name: matching.matches - len(shown[name]) for name, matching in found.items()})
    more = facts.get("more", {})
    at_least = [name for name, matching in found.items() if name in more and matching.is_at_least]
    blocks = [
        Block(f"[{name}]", list(map(QUOTES[name], facts[name])), more.get(name, 0), name in at_least) for name in shown
    ]
    text = page(INTRO, blocks, RECALL_CODE_POINTS_MAX, shortest=SHORTEST_CODE_POINTS)
    return Answer({**facts, "at_least": at_least} if at_least else facts, text or NOTHING)


def _remembered(connection: apsw.Connection, ask: Recall) -> dict[str, Matching]:
    """The preferences and lessons that match."""
    rows = list(queries.searched(connection))
    hits = ranked(rows, ask.topic, ask.project)
    # Of each kind no more than these are scored.
    known = Counter(row.kind for row in rows)
    preferences = (queries.read_preference(connection, hit.sequence) for hit in hits["preference"][: ask.limit])
    lessons = (queries.read_lesson(connection, hit.sequence) for hit in hits["lesson"][: ask.limit])
    return {
        "preferences": Matching(
            [preference_facts(found) for found in preferences if found is not None],
            len(hits["preference"]),
            known["preference"] > RECALL_SCORED_MAX,
        ),
        "lessons": Matching(
            [lesson_facts(found) for found in lessons if found is not None],
            len(hits["lesson"]),
            known["lesson"] > RECALL_SCORED_MAX,
        ),
    }
