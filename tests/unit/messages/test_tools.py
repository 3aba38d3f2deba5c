"""The seven tools as clients see them, and health that answers whatever happens."""

import msgspec
import pytest

from convmem.catalog import Catalog
from convmem.errors import Busy, Stopping, StoreFailed
from convmem.messages import DOMAIN
from convmem.messages.inputs import VIEWS
from convmem.messages.tools import TOOLS
from convmem.messages.tools import VIEWS as HANDLED
from tests.support.folded import Folded

# Name, scope, reads only, destructive, idempotent: contract, letter by letter.
EXPECTED = [
    ("write_message", "write", False, False, False),
    ("update_message", "write", False, True, True),
    ("read_messages", "read", True, False, True),
    ("search_messages", "read", True, False, True),
    ("delete_message", "write", False, True, True),
    ("rebuild_index", "admin", False, False, True),
    ("get_system_health", "read", True, False, True),
]
# What the three of the small profile may cost together, as compact JSON; five more tools share 9,000 bytes with them.
THREE_TOOLS_BYTES_MAX = 5_600


def test_the_tools_are_these_with_these_hints():
    assert [(tool.name, tool.scope, tool.reads_only, tool.destructive, tool.idempotent) for tool in TOOLS] == EXPECTED


def test_every_view_has_its_handler():
    assert set(HANDLED) == set(VIEWS)


def test_search_states_its_folding_rule():
    description = {tool.name: tool.description for tool in TOOLS}["search_messages"]
    assert "NFKC and case folding" in description


def test_the_tools_of_the_small_profile_are_small():
    schemas = Catalog([DOMAIN]).schemas
    sizes = 0
    for tool in TOOLS:
        if tool.name in {"write_message", "read_messages", "search_messages"}:
            hints = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
            shown = {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": schemas[tool.name],
                "annotations": hints,
            }
            sizes += len(msgspec.json.encode(shown))
    assert sizes <= THREE_TOOLS_BYTES_MAX


async def test_health_joins_the_daemon_s_facts_and_the_index_s_counts():
    folded = Folded(health_facts={"status": "degraded", "reasons": ["x"]})
    message_id = await folded.say("x")
    await folded.say("y", "t")
    await folded.call("delete_message", message_id=message_id)
    assert await folded.call("get_system_health") == {
        "status": "degraded",
        "reasons": ["x"],
        "live": 1,
        "deleted": 1,
        "sessions": 1,
    }


@pytest.mark.parametrize(
    "failure", [Busy("rebuilding", retry_after_ms=1), Stopping("stopping", retry_after_ms=1), StoreFailed("poisoned")]
)
async def test_health_answers_while_the_index_cannot_be_read(failure: Exception):
    folded = Folded(failure=failure)
    assert await folded.call("get_system_health") == {"status": "ok"}


async def test_other_reads_are_refused_meanwhile():
    folded = Folded(failure=Busy("rebuilding", retry_after_ms=1))
    for name, arguments in (("read_messages", {"view": "sessions"}), ("search_messages", {"query": "x"})):
        with pytest.raises(Busy):
            await folded.call(name, **arguments)


async def test_a_rebuild_is_the_stores_answer():
    assert await Folded().call("rebuild_index") == {"rebuilt": False}


async def test_answers_are_facts_that_json_can_hold(folded: Folded):
    message_id = await folded.say("a\0\u2028", relations=None, tags=["x"])
    calls = [
        ("read_messages", {"view": "history", "session_id": "s"}),
        ("read_messages", {"view": "context", "message_id": message_id}),
        ("read_messages", {"view": "sessions"}),
        ("read_messages", {"view": "export"}),
        ("search_messages", {"query": "a"}),
        ("update_message", {"message_id": message_id, "content": "b"}),
        ("delete_message", {"message_id": message_id}),
    ]
    for name, arguments in calls:
        facts = await folded.call(name, **arguments)
        assert msgspec.json.decode(msgspec.json.encode(facts)) == facts
