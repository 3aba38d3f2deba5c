"""Filters narrow by the row; their tokens never exclude what the row would let through."""

from typing import Any

import apsw
import pytest

from convmem.messages import filters
from convmem.messages.filters import CONDITIONS, WITH_TOKENS, selection, token, tokens_asked, tokens_of
from convmem.messages.inputs import CaptureEvent, SearchCaptured, SearchMessages
from convmem.messages.search_tables import CREATE
from tests.support.folded import Folded

EVERY_FILTER: dict[str, Any] = {
    "session_id": "s",
    "project": "p",
    "role": "user",
    "kind": "semantic",
    "tier": "long",
    "min_importance": 5,
    "since": 1,
    "until": 2**62,
    "tag": "t",
    "captured_kind": "prompt",
    "unassigned": True,
}


def selected(folded: Folded, **arguments: Any) -> list[int]:
    conditions, bindings = selection(SearchCaptured(query="x", **arguments))
    rows = folded.connection.execute(f"SELECT m.sequence FROM messages_message AS m WHERE {conditions}", bindings)
    return [sequence for (sequence,) in rows]


ONLY_CAPTURED = {"captured_kind", "unassigned"}
OF_A_MESSAGE = [name for name in EVERY_FILTER if name not in ONLY_CAPTURED]


@pytest.mark.parametrize("names", [(), *((name,) for name in OF_A_MESSAGE), tuple(OF_A_MESSAGE)])
async def test_conditions_let_through_what_fits_every_filter_that_is_given(folded: Folded, names: tuple[str, ...]):
    metadata = {"project": "p", "memory_kind": "semantic", "memory_tier": "long", "importance": 5, "tags": ["t", "u"]}
    await folded.say("fits", **metadata)
    await folded.say("fits nothing", session_id="other", role="system", tags=["tt"])
    asked = {name: EVERY_FILTER[name] for name in names}
    only_the_first = [name for name in names if name not in ("since", "until")]
    assert sorted(selected(folded, **asked)) == ([1] if only_the_first else [1, 2])


async def test_what_hooks_captured_and_what_is_of_no_project_is_told_apart(folded: Folded):
    await folded.say("written", project="p")
    for number, kind in enumerate(("prompt", "error")):
        folded.commit(CaptureEvent(event_id=str(number), kind=kind, session_id="s", content=kind, project=kind))
    await folded.say("of no project")
    await folded.say("of a project without a name", project="")
    assert selected(folded, captured_kind="prompt") == [2]
    assert selected(folded, captured_kind="error") == [3]
    assert selected(folded, unassigned=True) == [4]
    assert selected(folded, unassigned=True, captured_kind="prompt") == []


def test_every_filter_of_the_search_has_a_condition():
    given = set(SearchCaptured.model_fields) - {"query", "match", "limit", "context_before", "context_after"}
    assert given == set(CONDITIONS) | {"tag", "unassigned"} == set(EVERY_FILTER)
    assert given - set(SearchMessages.model_fields) == ONLY_CAPTURED, "no caller of the tool can set these"
    assert set(WITH_TOKENS) < given


def test_a_search_asks_for_tokens_that_a_message_has_which_fits():
    row = {"session_id": "s", "project": None, "role": "user", "kind": "semantic", "tier": "mid", "captured_kind": None}
    assert set(tokens_asked(SearchMessages(query="x"))) == set()
    assert set(tokens_asked(SearchMessages(query="x", session_id="s", role="user"))) <= set(tokens_of(row))
    assert not set(tokens_asked(SearchMessages(query="x", project="p"))) & set(tokens_of(row))
    assert not set(tokens_asked(SearchCaptured(query="x", captured_kind="prompt"))) & set(tokens_of(row))
    assert set(tokens_asked(SearchCaptured(query="x", unassigned=True))) <= set(tokens_of(row))
    assert not set(tokens_asked(SearchCaptured(query="x", unassigned=True))) & set(tokens_of({**row, "project": ""}))


def test_the_same_value_of_two_filters_has_two_tokens():
    assert len({token(name, "user") for name in WITH_TOKENS}) == len(WITH_TOKENS)


@pytest.mark.parametrize("table", ["messages_word", "messages_gram"])
def test_a_token_is_looked_up_as_one_whatever_stands_around_it(table: str):
    connection = apsw.Connection(":memory:")
    connection.execute(CREATE)
    values = [(name, str(value)) for value in range(300) for name in WITH_TOKENS]
    width = len(WITH_TOKENS)
    gap = " " if table == "messages_word" else ""
    column = "other" if table == "messages_word" else "body"
    for number in range(300):
        of_message = [token(name, value) for name, value in values[number * width : (number + 1) * width]]
        connection.execute(f"INSERT INTO {table} (rowid, {column}) VALUES (?, ?)", (number, gap.join(of_message)))
    for place, (name, value) in enumerate(values):
        query = f"SELECT rowid FROM {table} WHERE {table} MATCH ?"
        found = [rowid for (rowid,) in connection.execute(query, (f'"{token(name, value)}"',))]
        assert found == [place // width]


def test_tokens_are_private_use_of_plane_15_and_of_a_block_for_each_filter():
    blocks = {
        name: {ord(letter) >> 12 for value in map(str, range(50)) for letter in token(name, value)}
        for name in WITH_TOKENS
    }
    assert all(len(block) == 1 for block in blocks.values())
    assert len(set.union(*blocks.values())) == len(WITH_TOKENS)
    first = filters._FIRST_CODE_POINT
    assert all(first <= ord(letter) <= 0xFFFFD for name in WITH_TOKENS for letter in token(name, "x"))
