"""What is known about a topic: preferences, lessons and messages, the best of each, on one page.

The number of entries is shared: each block gets what it has, or as many as the others that have more. Of what is known
for the project asked for, its own stands first; then what belongs to none; nothing of another project.
"""

from typing import Any

import apsw

from convmem.domain import Access, Answer
from convmem.limits import RECALL_CODE_POINTS_MAX, RECALL_HISTORY_MAX
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


async def recall(access: Access, ask: Recall) -> Answer:
    """{preferences[], lessons[], history[], more?}, each best first; `more` counts the preferences and lessons that
    match as well.
    """
    ask, _ = cleaned(ask)
    lists, matching = await access.read(_remembered, ask)
    lists["history"] = await found_in_history(access, ask.topic, min(RECALL_HISTORY_MAX, ask.limit), ask.project)
    counts = shares([len(found) for found in lists.values()], ask.limit)
    shown = {name: found[:count] for (name, found), count in zip(lists.items(), counts, strict=True)}
    facts = fitted(shown, {name: count - len(shown[name]) for name, count in matching.items()})
    more = facts.get("more", {})
    blocks = [Block(f"[{name}]", list(map(QUOTES[name], facts[name])), more.get(name, 0)) for name in shown]
    return Answer(facts, page(INTRO, blocks, RECALL_CODE_POINTS_MAX, shortest=SHORTEST_CODE_POINTS) or NOTHING)


def _remembered(connection: apsw.Connection, ask: Recall) -> tuple[dict[str, list[dict[str, Any]]], dict[str, int]]:
    """The best preferences and lessons as facts, as many of each as are asked for; and how many match."""
    hits = ranked(queries.searched(connection), ask.topic, ask.project)
    preferences = (queries.read_preference(connection, hit.sequence) for hit in hits["preference"][: ask.limit])
    lessons = (queries.read_lesson(connection, hit.sequence) for hit in hits["lesson"][: ask.limit])
    lists = {
        "preferences": [preference_facts(found) for found in preferences if found is not None],
        "lessons": [lesson_facts(found) for found in lessons if found is not None],
    }
    return lists, {"preferences": len(hits["preference"]), "lessons": len(hits["lesson"])}
