"""What hooks captured last: prompts, calls of tools, errors; the newest first, each on one line."""

from collections.abc import Mapping
from typing import Any

import apsw

from convmem.domain import Access, Answer
from convmem.limits import INTERACTION_CODE_POINTS_MAX, INTERACTIONS_CODE_POINTS_MAX
from convmem.memory.fitting import fitted
from convmem.memory.inputs import GetRecentInteractions
from convmem.messages.queries import capture_totals, captured
from convmem.profile_text import INTRO, part
from convmem.quoting import Block, Quote, moment, origin, page

NOTHING = "No interaction has been captured."
SHORTEST_CODE_POINTS = 60


async def get_recent_interactions(access: Access, ask: GetRecentInteractions) -> Answer:
    """{interactions[{number, message_id, kind, timestamp, session_id, project?, tool?, status?, directory?, content,
    origin}], more?}, newest first, and `more` counts those before; a longer content is `content_preview` and
    `total_bytes`.
    """
    found, count = await access.read(_captured, ask)
    older = {"interactions": count - len(found)}
    facts = fitted({"interactions": found}, older, code_points_max=INTERACTION_CODE_POINTS_MAX)
    more = facts.get("more", {}).get("interactions", 0)
    block = Block("[interactions]", list(map(_quote, facts["interactions"])), more)
    text = page(INTRO, [block], INTERACTIONS_CODE_POINTS_MAX, shortest=SHORTEST_CODE_POINTS)
    return Answer(facts, text or NOTHING)


def _captured(connection: apsw.Connection, ask: GetRecentInteractions) -> tuple[list[dict[str, Any]], int]:
    """The newest as facts, and how many there are in all."""
    newest = captured(connection, kind=ask.kind, limit=ask.limit)
    found = [interaction_facts(message.facts()) for message in newest]
    if len(found) < ask.limit:
        return found, len(found)
    totals = capture_totals(connection)
    return found, sum(totals.values()) if ask.kind is None else totals[ask.kind]


def interaction_facts(message: Mapping[str, Any]) -> dict[str, Any]:
    """What memory shows of a captured message, for programs."""
    capture = message["capture"]
    facts = {
        "number": message["number"],
        "message_id": message["message_id"],
        "kind": capture["kind"],
        "timestamp": message["timestamp"],
        "session_id": message["session_id"],
        "project": message["metadata"].get("project"),
        **{name: capture.get(name) for name in ("tool", "status", "directory")},
        "content": message["content"],
        "origin": message["origin"],
    }
    return {name: value for name, value in facts.items() if value is not None}


def _quote(facts: Mapping[str, Any]) -> Quote:
    where = origin(facts, "project", "tool", "status")
    return Quote(
        f"[{facts['number']}] {moment(facts['timestamp'], 'seconds')} [{facts['kind']}] {where}", part(facts, "content")
    )
