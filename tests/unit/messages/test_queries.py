"""What the index answers, and that no answer costs a walk through everything."""

from typing import Any

import pytest

from convmem.domain import Origin
from convmem.messages import queries
from tests.support.folded import Folded


async def test_a_message_is_read_as_it_was_written(folded: Folded):
    folded.origin = Origin("laptop", "http", "agent/1")
    first = await folded.say("first")
    message_id = await folded.say(
        "a\0é",
        "session\u2028x",
        "system",
        tags=["b", "a,c"],
        summary="s\0",
        project="",
        importance=100,
        tool_call_id="call",
        memory_tier="long",
        memory_kind="summary",
        relations=[{"type": "after", "message_id": first}, {"type": "after", "message_id": first}],
        source_message_ids=[first],
    )
    message = queries.read_message(folded.connection, message_id)
    assert message is not None
    assert (message.content, message.content_bytes, message.session_id) == ("a\0é", 4, "session\u2028x")
    assert message.origin == folded.origin
    assert message.metadata.facts() == {
        "tool_call_id": "call",
        "tags": ["b", "a,c"],
        "memory_tier": "long",
        "memory_kind": "summary",
        "importance": 100,
        "summary": "s\0",
        "relations": [{"type": "after", "message_id": first}] * 2,
        "source_message_ids": [first],
        "project": "",
    }


async def test_what_is_not_there_is_none(folded: Folded):
    nobody = "01HF7YAT00000000000000ZZZZ"
    assert queries.read_message(folded.connection, nobody) is None
    assert queries.read_session_id(folded.connection, nobody) is None
    assert not queries.is_live(folded.connection, nobody)
    assert queries.read_receipt(folded.connection, "local", b"k" * 16) is None


async def test_neighbours_are_of_the_same_session_and_nearest_first(folded: Folded):
    ids = []
    for number in range(6):
        ids.append(await folded.say(str(number)))
        await folded.say("elsewhere", "t")
    message = queries.read_message(folded.connection, ids[3])
    assert message is not None
    before, after = queries.neighbours(folded.connection, message, before=2, after=9)
    assert [one.content for one in before] == ["2", "1"]
    assert [one.content for one in after] == ["4", "5"]
    assert queries.neighbours(folded.connection, message, before=0, after=0) == ([], [])


async def test_edges_are_known_from_both_ends_and_bounded(folded: Folded):
    target = await folded.say("target")
    sources = [
        await folded.say("x", relations=[{"type": name, "message_id": target} for name in "ab"]) for _ in range(2)
    ]
    assert queries.outgoing(folded.connection, sources[0], 9) == [
        (sources[0], "a", target),
        (sources[0], "b", target),
    ]
    assert [edge.from_id for edge in queries.incoming(folded.connection, target, 3)] == [*sources[:1] * 2, sources[1]]
    assert queries.incoming(folded.connection, target, 0) == []


async def test_totals_count_the_living_the_dead_and_the_sessions(folded: Folded):
    assert queries.totals(folded.connection) == (0, 0, 0)
    ids = [await folded.say("x", session, memory_kind=kind) for session in "ab" for kind in ("episode", "semantic")]
    for message_id in ids[:3]:
        await folded.call("delete_message", message_id=message_id)
    assert queries.totals(folded.connection) == (1, 3, 1)


@pytest.mark.parametrize(
    ("ask", "arguments"),
    [
        (queries.read_message, ("x",)),
        (queries.is_live, ("x",)),
        (queries.read_session_id, ("x",)),
        (queries.outgoing, ("x", 5)),
        (queries.incoming, ("x", 5)),
        (queries.read_receipt, ("local", b"k")),
    ],
)
def test_no_question_walks_a_whole_table(ask: Any, arguments: tuple[Any, ...]):
    folded = Folded()
    plans: list[str] = []
    folded.connection.exec_trace = lambda cursor, sql, bindings: plans.append(sql) or True
    ask(folded.connection, *arguments)
    folded.connection.exec_trace = None
    for sql in plans:
        count = sql.count("?")
        steps = folded.connection.execute(f"EXPLAIN QUERY PLAN {sql}", ("x",) * count).fetchall()
        assert not [step for step in steps if str(step[3]).startswith("SCAN")], sql
    assert plans
