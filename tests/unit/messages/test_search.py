"""Search finds what is there, not what is not, in bounded replies, and by no other rule than it says."""

from typing import Any

import pytest

from convmem.limits import REPLY_BYTES_DEFAULT, REPLY_BYTES_MAX, SEARCH_SLICE_ROWS
from convmem.messages import search
from convmem.messages.inputs import SearchMessages
from convmem.messages.matching import Question
from convmem.messages.replies import reply_bytes
from tests.support.folded import Folded
from tests.support.manual_clock import START_MS


async def found(folded: Folded, query: str, **arguments: Any) -> Any:
    facts = await folded.call("search_messages", query=query, **arguments)
    assert (facts["path"], facts["complete"]) == ("scan", True)
    return facts["results"]


async def contents(folded: Folded, query: str, **arguments: Any) -> list[str]:
    return [result["snippet"] for result in await found(folded, query, **arguments)]


async def test_a_result_is_the_message_with_a_snippet_instead_of_its_content(folded: Folded):
    message_id = await folded.say("İİİ key ﬁn ＡＢＣ", tags=["t"])
    (result,) = await found(folded, "KEY")
    assert result == {
        "message_id": message_id,
        "session_id": "s",
        "timestamp": START_MS,
        "updated_at": START_MS,
        "revision": 1,
        "sequence": "1",
        "role": "user",
        "snippet": "İİİ key ﬁn ＡＢＣ",
        "snippet_start": 0,
        "match_ranges": [[4, 7]],
        "total_bytes": len("İİİ key ﬁn ＡＢＣ".encode()),
        "metadata": {
            "tags": ["t"],
            "memory_tier": "mid",
            "memory_kind": "conversation",
            "importance": 0,
            "relations": [],
            "source_message_ids": [],
        },
        "origin": {"device": "local", "transport": "test"},
        "score": 1.0,
        "scores": {"content": 1.0, "summary": 0.0, "tags": 0.0, "context": 0.0},
        "matched_fields": ["content"],
        "exact": True,
    }


async def test_exact_hits_come_newest_first_and_importance_goes_before(folded: Folded):
    for number, importance in enumerate((0, 50, 0, 50, 100)):
        await folded.say(f"deploy {number}", importance=importance)
    assert await contents(folded, "deploy") == ["deploy 4", "deploy 3", "deploy 1", "deploy 2", "deploy 0"]
    assert await contents(folded, "deploy", limit=2) == ["deploy 4", "deploy 3"]


async def test_importance_counts_within_the_newest_fifty_exact_hits(folded: Folded):
    await folded.say("deploy old and important", importance=100)
    for number in range(50):
        await folded.say(f"deploy {number}")
    assert await contents(folded, "deploy", limit=1) == ["deploy 49"]
    assert (await contents(folded, "deploy", limit=51))[0] == "deploy old and important"


async def test_summary_and_tags_are_searched_and_say_so(folded: Folded):
    await folded.say("nothing", summary="The Kraken", tags=["sea", "kraken"])
    (result,) = await found(folded, "KRAKEN")
    assert result["matched_fields"] == ["summary", "tags"]
    assert (result["score"], result["match_ranges"], result["snippet"]) == (2.0, [], "nothing")


async def test_by_words_more_words_go_before_fewer_and_exact_before_all(folded: Folded):
    await folded.say("fox", importance=100)
    await folded.say("a red animal: a fox")
    await folded.say("quick red fox")
    await folded.say("fox, quick and so red")
    results = await found(folded, "quick red fox")
    assert [result["snippet"] for result in results] == [
        "quick red fox",
        "fox, quick and so red",
        "a red animal: a fox",
        "fox",
    ]
    assert [result["exact"] for result in results] == [True, False, False, False]
    assert [result["score"] for result in results] == [1.0, 1.0, 2 / 3, 1 / 3]
    assert await contents(folded, "quick red fox", match="exact") == ["quick red fox"]
    assert len(await contents(folded, "quick red fox", match="any", limit=3)) == 3


async def test_of_many_equal_hits_by_words_the_best_are_kept(folded: Folded):
    for number in range(12):
        await folded.say(f"red {number}", importance=100 - number if number < 2 else 0)
    assert await contents(folded, "red fox", limit=4) == ["red 0", "red 1", "red 11", "red 10"]


@pytest.mark.parametrize("field", ["content", "summary", "tags"])
async def test_a_part_of_a_joined_letter_is_found_in_every_field(folded: Folded, field: str):
    value: Any = "ne\u0301e"
    said = {"content": value} if field == "content" else {"content": "x", field: [value] if field == "tags" else value}
    await folded.say(**said)
    assert [result["matched_fields"] for result in await found(folded, "ne")] == [[field]]


async def test_scores_add_up_over_the_fields(folded: Folded):
    await folded.say("red", summary="quick red", tags=["fox"])
    (result,) = await found(folded, "quick red fox", match="any")
    assert result["scores"] == {"content": 1 / 3, "summary": 1 / 3, "tags": 1 / 3, "context": 0.0}
    assert result["score"] == sum(result["scores"].values())
    assert result["matched_fields"] == ["content", "summary", "tags"]


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ({}, "abcdef"),
        ({"session_id": "t"}, "f"),
        ({"project": "p"}, "ab"),
        ({"role": "system"}, "c"),
        ({"kind": "semantic"}, "bd"),
        ({"tier": "long"}, "d"),
        ({"tag": "a_b"}, "ae"),
        ({"tag": "axb"}, ""),
        ({"min_importance": 5}, "ce"),
        ({"since": START_MS + 4}, "ef"),
        ({"until": START_MS + 1}, "ab"),
        ({"since": START_MS + 1, "until": START_MS + 2}, "bc"),
        ({"project": "p", "kind": "semantic"}, "b"),
        ({"tag": "a_b", "project": "p", "session_id": "s", "role": "user"}, "a"),
    ],
)
async def test_filters_narrow(folded: Folded, arguments: dict[str, Any], left: str):
    said: list[dict[str, Any]] = [
        {"content": "a x", "project": "p", "tags": ["a_b", "%"]},
        {"content": "b x", "project": "p", "memory_kind": "semantic"},
        {"content": "c x", "role": "system", "importance": 5},
        {"content": "d x", "memory_kind": "semantic", "memory_tier": "long"},
        {"content": "e x", "importance": 9, "tags": ["a_b"]},
        {"content": "f x", "session_id": "t"},
    ]
    for one in said:
        await folded.say(**one)
        folded.clock.pass_ms(1)
    for query in (" x", "x nowhere"):
        assert "".join(sorted(text[0] for text in await contents(folded, query, **arguments))) == left


async def test_neighbours_come_in_the_session_s_order_and_short(folded: Folded):
    for text in ("1", "2" * 400, "needle", "4", "5"):
        await folded.say(text)
    (result,) = await found(folded, "needle", context_before=2, context_after=1)
    assert result["before"][0]["content"] == "1"
    assert result["before"][1]["content_preview"] == "2" * 300
    assert result["before"][1]["total_bytes"] == 400
    assert [message["content"] for message in result["after"]] == ["4"]
    assert "before" not in (await found(folded, "needle"))[0]


async def test_changed_and_deleted_text_is_not_found_any_more(folded: Folded):
    first, second = await folded.say("old É words"), await folded.say("old É words too")
    await folded.call("update_message", message_id=first, content="new ü")
    await folded.call("delete_message", message_id=second)
    assert await contents(folded, "old") == []
    assert await contents(folded, "É") == []
    assert await contents(folded, "NEW Ü") == ["new ü"]


async def test_what_went_between_scan_and_answer_is_not_shown(folded: Folded):
    await folded.say("stays: needle")
    gone = await folded.say("gone: needle")
    changed = await folded.say("changed: needle")
    ask, seen = SearchMessages(query="needle"), search.Found()
    question = Question("needle", "auto")
    search.scan(folded.connection, ask, question, seen)
    await folded.call("delete_message", message_id=gone)
    await folded.call("update_message", message_id=changed, content="hay")
    facts = search.results(folded.connection, ask, question, seen)
    assert [result["snippet"] for result in facts["results"]] == ["stays: needle"]


@pytest.mark.parametrize(
    "query", ['"', "'", "*", "(", "NEAR(", "a^b", "-x", "content:x", "--", ";", "\\", "%", "{}", "\0"]
)
@pytest.mark.parametrize("match", ["auto", "exact", "any"])
async def test_no_query_raises_and_what_is_not_there_is_not_found(folded: Folded, query: str, match: str):
    await folded.say("plain words only", tags=["a", "b"], summary="s")
    assert await found(folded, query, match=match) == []
    await folded.say(f"here: {query}!")
    assert len(await found(folded, query, match="exact")) == 1


@pytest.mark.parametrize("query", [" ", "  \t\n", "\u3000"])
async def test_a_query_of_spaces_is_a_substring_like_any_other(folded: Folded, query: str):
    await folded.say("without")
    assert await found(folded, query) == []
    await folded.say(f"with{query}it")
    assert len(await found(folded, query)) == 1
    assert await found(folded, query, match="any") == []


async def test_a_long_search_lets_others_pass(folded: Folded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(search, "SEARCH_SLICE_ROWS", 3)
    for number in range(10):
        await folded.say(f"text {number}")
    folded.reads = 0
    assert await contents(folded, "text", limit=100) == [f"text {number}" for number in reversed(range(10))]
    assert folded.reads == 4 + 1
    monkeypatch.setattr(search, "SEARCH_SLICE_BYTES", 1)
    folded.reads = 0
    assert len(await contents(folded, "text", limit=100)) == 10
    assert folded.reads == 10 + 1


async def test_a_store_too_large_to_be_scanned_is_said_to_be(folded: Folded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(search, "SEARCH_SLICE_ROWS", 2)
    monkeypatch.setattr(search, "SEARCH_SCAN_BYTES_MAX", 10)
    for number in range(6):
        await folded.say(f"text {number}")
    facts = await folded.call("search_messages", query="nowhere")
    assert facts == {"results": [], "path": "scan", "complete": False}


async def test_enough_exact_hits_end_the_scan(folded: Folded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(search, "SEARCH_SLICE_ROWS", 20)
    for number in range(200):
        await folded.say(f"text {number}")
    folded.reads = 0
    await found(folded, "text")
    assert folded.reads == 3 + 1


async def test_default_replies_stay_small_and_all_results_are_shown_without_their_largest_metadata(folded: Folded):
    for _ in range(12):
        await folded.say("needle " + "日" * 5_000, summary="\x01" * 4_096, tags=[str(n) * 64 for n in range(32)])
    facts = await folded.call("search_messages", query="needle")
    assert reply_bytes(facts) <= REPLY_BYTES_DEFAULT
    assert len(facts["results"]) == 10
    assert all(result["omitted"][0]["field"] == "metadata.summary" for result in facts["results"])


async def test_what_does_not_fit_is_said_to_be_left_out(folded: Folded):
    for _ in range(10):
        await folded.say("needle" + "\x01" * 400, "\x01" * 256)
    facts = await folded.call("search_messages", query="needle")
    assert reply_bytes(facts) <= REPLY_BYTES_DEFAULT
    assert facts["truncated"] is True
    assert 5 < len(facts["results"]) < 10
    assert len((await folded.call("search_messages", query="needle", limit=100))["results"]) == 10


@pytest.mark.slow
async def test_the_largest_reply_stays_under_the_ceiling():
    folded = Folded()
    for _ in range(140):
        await folded.say("needle" + "\x01" * 400, "\x01" * 256, summary="\x01" * 4_096)
    ask = {"query": "needle", "limit": 100, "context_before": 10, "context_after": 10}
    facts = await folded.call("search_messages", **ask)
    assert reply_bytes(facts) <= REPLY_BYTES_MAX
    assert facts["results"]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"session_id": "s"}, {"session_id": "s", "kind": "summary", "project": "p"}, {"tag": "t", "session_id": "s"}],
)
def test_a_slice_is_found_by_an_index_that_goes_by_sequence(arguments: dict[str, Any]):
    connection = Folded().connection
    statements: list[tuple[str, Any]] = []
    connection.exec_trace = lambda cursor, sql, bindings: statements.append((sql, bindings)) or True
    seen = search.Found()
    ask = SearchMessages(query="x", **arguments)
    selection = search._selection(ask)
    search._least_of_slice(connection, selection, seen)
    list(search._candidates(connection, selection, Question("x", "auto"), least=1, before=9))
    connection.exec_trace = None
    assert len(statements) == 2
    for sql, bindings in statements:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()
        assert not [step for step in plan if "SCAN" in str(step[3]) or "TEMP" in str(step[3])], sql


def test_a_slice_is_bounded():
    assert SEARCH_SLICE_ROWS < 10_000
