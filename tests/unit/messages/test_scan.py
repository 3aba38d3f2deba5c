"""Row by row: in slices by an index, each message once, and what the tables do not know yet all at once."""

from typing import Any

import pytest

from convmem.limits import SEARCH_SLICE_ROWS
from convmem.messages import scan, terms
from convmem.messages.inputs import SearchMessages
from convmem.messages.matching import Question
from convmem.messages.scan import Seen, Wanted
from tests.support.folded import Folded


def wanted(query: str, **more: Any) -> Wanted:
    ask = SearchMessages(query=query, **more)
    asked = None if ask.match == "exact" else terms.asked(query)
    return Wanted(ask, Question(query), asked if asked and asked.terms else None)


def scanned(folded: Folded, wanted: Wanted) -> Seen:
    seen = Seen()
    while not seen.is_done:
        scan.slice_of_all(folded.connection, wanted, seen)
    return seen


async def test_every_message_is_looked_at_once_whatever_the_slices(folded: Folded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scan, "SEARCH_SLICE_ROWS", 3)
    for number in range(10):
        await folded.say(f"text {number}")
    seen = scanned(folded, wanted("text"))
    assert [hit.sequence for hit in seen.exact] == list(range(10, 0, -1))
    assert seen.rows == 10


async def test_exact_hits_end_it_when_there_are_enough(folded: Folded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scan, "SEARCH_SLICE_ROWS", 20)
    for number in range(200):
        await folded.say(f"text {number}")
    seen = scanned(folded, wanted("text"))
    assert [hit.sequence for hit in seen.exact] == list(range(200, 150, -1))
    assert seen.rows == 60


async def test_what_the_whole_store_says_of_words_is_counted_on_the_way(folded: Folded):
    for content in ("red fox", "red, red", "a fox", "neither"):
        await folded.say(content, tags=["Foxes"] if content == "a fox" else [])
    seen = scanned(folded, wanted("quick foxes reds", match="any"))
    asked = terms.asked("quick foxes reds")
    assert {asked.terms[place]: count for place, count in seen.frequencies.items()} == {"fox": 2, "red": 2}
    assert (seen.rows, seen.words["rows"]) == (4, 3)
    assert sorted(seen.sequences) == [1, 2, 3]


async def test_of_very_many_those_that_hold_the_most_words_are_kept(folded: Folded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scan, "SEARCH_CANDIDATES_MAX", 3)
    for content in ("red fox", "red", "red", "red", "fox and red", "red"):
        await folded.say(content)
    seen = scanned(folded, wanted("a fox that is red"))
    assert sorted(seen.sequences) == [1, 5, 6]


async def test_the_tail_is_what_was_written_or_changed_after_the_watermark(folded: Folded):
    first = await folded.say("one needle")
    for content in ("two needle", "three", "four needle"):
        await folded.say(content)
    watermark = folded.sequence
    await folded.say("five needle")
    await folded.call("update_message", message_id=first, content="first needle")
    seen = scan.tail(folded.connection, wanted("needle"), watermark)
    assert seen.is_done
    assert sorted(hit.sequence for hit in seen.exact) == [1, 5]


async def test_the_tail_holds_more_exact_hits_than_a_search_would_rank(folded: Folded):
    for number in range(120):
        await folded.say(f"text {number}")
    assert len(scan.tail(folded.connection, wanted("text"), 0).exact) == 120


async def test_a_tail_too_large_to_be_looked_through_is_said_to_be(folded: Folded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scan, "SEARCH_SCAN_BYTES_MAX", 10)
    await folded.say("needle")
    assert scan.tail(folded.connection, wanted("needle"), 0).is_done
    await folded.say("needle")
    assert not scan.tail(folded.connection, wanted("needle"), 0).is_done


@pytest.mark.parametrize(
    "arguments",
    [{}, {"session_id": "s"}, {"session_id": "s", "kind": "summary", "project": "p"}, {"tag": "t", "session_id": "s"}],
)
def test_a_slice_is_found_by_an_index_that_goes_by_sequence(arguments: dict[str, Any]):
    connection = Folded().connection
    statements: list[tuple[str, Any]] = []
    connection.exec_trace = lambda cursor, sql, bindings: statements.append((sql, bindings)) or True
    looked_for, seen = wanted("x", **arguments), Seen()
    scan._least_of_slice(connection, looked_for.ask, seen)
    source, sequence, conditions, bindings = scan._source(looked_for.ask)
    within = f"{conditions} AND {sequence} >= 1 AND {sequence} < 9"
    list(scan._candidates(connection, looked_for, source, within, sequence, bindings))
    connection.exec_trace = None
    assert len(statements) == 2
    for sql, bound in statements:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", bound).fetchall()
        assert not [step for step in plan if "SCAN" in str(step[3]) or "TEMP" in str(step[3])], sql


def test_the_tail_is_found_by_an_index_that_goes_by_change():
    connection = Folded().connection
    statements: list[tuple[str, Any]] = []
    connection.exec_trace = lambda cursor, sql, bindings: statements.append((sql, bindings)) or True
    scan.tail(connection, wanted("x", tag="t", session_id="s"), 0)
    connection.exec_trace = None
    for sql, bound in statements:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", bound).fetchall()
        assert any("messages_by_change" in str(step[3]) for step in plan), sql


def test_a_slice_is_bounded():
    assert SEARCH_SLICE_ROWS < 10_000
