"""What was said, as memory shows it: messages found by the search of messages, each by a short part around the match.

`search_history` sees only what users asked, as hooks captured it; `recall` sees all messages.
"""

from collections.abc import Mapping
from typing import Any

from convmem.domain import Access, Answer
from convmem.limits import (
    HISTORY_CODE_POINTS_MAX,
    HISTORY_SNIPPET_CODE_POINTS_MAX,
    QUERY_BYTES_MAX,
)
from convmem.memory.cleaning import cleaned
from convmem.memory.fitting import fitted
from convmem.memory.inputs import SearchHistory
from convmem.messages.search import SearchCaptured, search
from convmem.profile_text import INTRO
from convmem.quoting import ELLIPSIS, Block, Part, Quote, moment, origin, page, rest, start
from convmem.text import cut_to_bytes

BEFORE_MATCH_CODE_POINTS = 24
NOTHING = "Nothing was found in the history of prompts."
SHORTEST_CODE_POINTS = 60


async def search_history(access: Access, ask: SearchHistory) -> Answer:
    """{history[{message_id, number, kind, session_id, timestamp, role, project?, snippet, snippet_start, total_bytes,
    origin}], complete, more?, at_least?}, best first. `more` counts those that match as well, as far as was looked:
    `at_least` names its lists that may be longer.
    """
    ask, _ = cleaned(ask)
    found = await _searched(access, ask.query, ask.limit + 1, project=ask.project, captured_kind="prompt")
    results = found["results"]
    shown = [history_facts(result) for result in results[: ask.limit]]
    facts = fitted({"history": shown}, {"history": len(results) - len(shown)})
    # One more than asked for is there, and nobody has looked for others behind it.
    is_at_least = len(results) > ask.limit
    more = facts.get("more", {}).get("history", 0)
    block = Block("[history]", list(map(history_quote, facts["history"])), more, is_at_least)
    text = page(INTRO, [block], HISTORY_CODE_POINTS_MAX, shortest=SHORTEST_CODE_POINTS)
    least = {"at_least": ["history"]} if is_at_least else {}
    return Answer({**facts, **least, "complete": found["complete"]}, text or NOTHING)


async def found_in_history(
    access: Access, topic: str, limit: int, project: str | None
) -> tuple[list[dict[str, Any]], bool]:
    """The messages of all kinds that match best, as facts, and whether others may match; the project's own first, then
    those of none, if there is one.
    """
    found = await _searched(access, topic, limit, project=project)
    results, is_whole = found["results"], found["complete"] and "truncated" not in found
    if project is not None and len(results) < limit:
        found = await _searched(access, topic, limit - len(results), unassigned=True)
        results += found["results"]
        is_whole = is_whole and found["complete"] and "truncated" not in found
    return [history_facts(result) for result in results], len(results) == limit or not is_whole


async def _searched(access: Access, query: str, limit: int, **filters: str | bool | None) -> dict[str, Any]:
    given = {name: value for name, value in filters.items() if value is not None}
    ask = SearchCaptured.model_validate({"query": cut_to_bytes(query, QUERY_BYTES_MAX), "limit": limit, **given})
    return await search(access, ask)


def history_facts(result: Mapping[str, Any]) -> dict[str, Any]:
    """What memory shows of a message that was found, for programs."""
    snippet, snippet_start = _around_match(result)
    facts = {
        "message_id": result["message_id"],
        "number": result.get("number"),
        "kind": result.get("capture", {}).get("kind"),
        "session_id": result["session_id"],
        "timestamp": result["timestamp"],
        "role": result["role"],
        "project": result["metadata"].get("project"),
        "snippet": snippet,
        "snippet_start": snippet_start,
        "total_bytes": result["total_bytes"],
        "origin": result["origin"],
    }
    return {name: value for name, value in facts.items() if value is not None}


def _around_match(result: Mapping[str, Any]) -> tuple[str, int]:
    """A part of the snippet that begins shortly before the first match, and where in the text it begins."""
    snippet, begin = result["snippet"], result["snippet_start"]
    match = min((first for first, _ in result["match_ranges"]), default=begin) - begin
    skipped = min(match - BEFORE_MATCH_CODE_POINTS, len(snippet) - HISTORY_SNIPPET_CODE_POINTS_MAX)
    shown = rest(snippet, max(0, skipped))
    return start(shown, HISTORY_SNIPPET_CODE_POINTS_MAX), begin + len(snippet) - len(shown)


def history_quote(facts: Mapping[str, Any]) -> Quote:
    """A message that was found, on one line: by its number if a hook captured it, else by its id."""
    named, said = facts.get("number", facts["message_id"]), facts.get("kind", facts["role"])
    snippet, begin = facts["snippet"], facts["snippet_start"]
    # Where it begins inside the text, only a snippet that is shorter than it may be surely reaches the end.
    is_cut = len(snippet) >= HISTORY_SNIPPET_CODE_POINTS_MAX if begin else len(snippet.encode()) < facts["total_bytes"]
    head = f"[{named}] {moment(facts['timestamp'])} [{said}] {origin(facts)}"
    return Quote(head, Part(snippet, ELLIPSIS if begin else "", is_cut=is_cut))
