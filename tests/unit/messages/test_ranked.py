"""The best messages are found by what they and their neighbours say, whatever the tables believe, within a budget."""

from typing import Any

import apsw
import pytest

from convmem.messages import ranked, terms
from convmem.messages.inputs import SearchMessages
from convmem.messages.ranked import Hit, Statistics, around, candidates, rescore, statistics
from tests.support.indexed import Indexed
from tests.support.manual_clock import START_MS

SOME = Statistics(1_000, 10.0, (10,) * 50)


@pytest.fixture
def indexed() -> Indexed:
    return Indexed()


async def say(indexed: Indexed, *contents: str, **more: Any) -> None:
    for content in contents:
        await indexed.say(content, **more)


def chosen(indexed: Indexed, query: str, **filters: Any) -> list[int]:
    indexed.feed()
    asked = terms.asked(query)
    ask = SearchMessages(query=query, **filters)
    return candidates(indexed.connection, ask, asked, statistics(indexed.connection, asked)).sequences


def hits(indexed: Indexed, query: str, sequences: list[int] | None = None, **filters: Any) -> list[Hit]:
    """The best of all messages, or of these."""
    asked = terms.asked(query)
    known = statistics(indexed.connection, asked)
    ask = SearchMessages(query=query, **filters)
    if sequences is None:
        sequences = candidates(indexed.connection, ask, asked, known).sequences
    return rescore(indexed.connection, ask, asked, known, sequences, ask.limit)


def found(indexed: Indexed, query: str, **filters: Any) -> list[int]:
    indexed.feed()
    return [hit.sequence for hit in hits(indexed, query, **filters)]


async def test_more_and_rarer_words_of_the_query_go_first(indexed: Indexed):
    for number, content in enumerate(("fox", "red", "red red", "a red fox", "red", "nothing")):
        await indexed.say(content, session_id=f"s{number}")
    assert found(indexed, "what red foxes?")[:2] == [4, 1]
    assert found(indexed, "absent") == []
    assert found(indexed, "()") == []


async def test_a_summary_and_tags_count_more_than_the_content(indexed: Indexed):
    await indexed.say("fox", "s1")
    await indexed.say("x", "s2", summary="Fox")
    await indexed.say("x", "s3", tags=["other", "fox"])
    indexed.feed()
    best = hits(indexed, "fox")
    assert [hit.sequence for hit in best] == [3, 2, 1]
    assert [[name for name, score in hit.scores.items() if score] for hit in best] == [
        ["tags"],
        ["summary"],
        ["content"],
    ]


async def test_the_scores_are_those_of_the_fields_and_add_up_exactly(indexed: Indexed):
    await say(indexed, "red fox", "blue")
    await indexed.say("fox fox", summary="red", tags=["fox", "quick"])
    indexed.feed()
    for hit in hits(indexed, "quick red fox"):
        assert list(hit.scores) == ["content", "summary", "tags", "context"]
        assert hit.score == sum(hit.scores.values()) > 0


async def test_a_message_is_found_by_what_stands_two_before_and_after_it_in_its_session(indexed: Indexed):
    await say(indexed, "far", "second", "first")
    await say(indexed, "elsewhere", session_id="t")
    await say(indexed, "fox", "first", "second", "far")
    indexed.feed()
    best = hits(indexed, "fox")
    assert [hit.sequence for hit in best] == [5, 6, 3, 7, 2]
    assert [hit.neighbours for hit in best] == [(), (5,), (5,), (5,), (5,)]
    assert best[1].scores == {"content": 0.0, "summary": 0.0, "tags": 0.0, "context": best[1].score}


async def test_importance_then_the_newer_message_breaks_ties(indexed: Indexed):
    for number, importance in enumerate((0, 50, 0, 50)):
        await indexed.say("fox", f"s{number}", importance=importance)
    assert found(indexed, "fox") == [4, 2, 3, 1]
    assert found(indexed, "fox", limit=2) == [4, 2]


async def test_when_and_by_whom_raises_what_matches_and_finds_nothing_alone(indexed: Indexed):
    await indexed.say("fox", "s1", role="user")
    indexed.clock.pass_ms(100 * 24 * 3600 * 1000)
    await indexed.say("fox", "s2", role="assistant")
    await indexed.say("bird", "s3", role="system")
    assert found(indexed, "fox in November") == [1, 2]
    assert found(indexed, "fox in February") == [2, 1]
    assert found(indexed, "fox of the user") == [1, 2]
    assert found(indexed, "system 2024") == []


FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({"session_id": "t"}, [6]),
    ({"project": "p"}, [1]),
    ({"role": "system"}, [2]),
    ({"kind": "semantic"}, [3]),
    ({"tier": "long"}, [3]),
    ({"tag": "a_b"}, [1, 4]),
    ({"min_importance": 5}, [2, 4]),
    ({"since": START_MS + 4}, [5, 6]),
    ({"until": START_MS + 1}, [1, 2]),
    ({"tag": "a_b", "role": "user", "min_importance": 5}, [4]),
]


@pytest.mark.parametrize(("filters", "left"), FILTERS)
async def test_filters_narrow_what_is_chosen_and_what_is_scored(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, filters: dict[str, Any], left: list[int]
):
    said: list[dict[str, Any]] = [
        {"project": "p", "tags": ["a_b"]},
        {"role": "system", "importance": 5},
        {"memory_kind": "semantic", "memory_tier": "long"},
        {"importance": 9, "tags": ["a_b"]},
        {},
        {"session_id": "t"},
    ]
    for one in said:
        await indexed.say("fox", **one)
        indexed.clock.pass_ms(1)
    indexed.feed()
    assert sorted(found(indexed, "fox", **filters)) == left
    assert sorted(hit.sequence for hit in hits(indexed, "fox", [1, 2, 3, 4, 5, 6], **filters)) == left
    monkeypatch.setattr(ranked, "SEARCH_BEST_ROWS_WITH_NEIGHBOURS", 0)
    assert sorted(chosen(indexed, "fox", **filters)) == left


async def test_a_filter_without_token_does_not_lose_what_is_worse_than_all_it_excludes(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ranked, "SEARCH_BEST_ROWS", 2)
    monkeypatch.setattr(ranked, "PROMISING", 1)
    for number in range(20):
        await indexed.say("red fox", f"s{number}")
    await indexed.say("fox and a lot of other words", "t", importance=5)
    assert found(indexed, "red fox", min_importance=5, limit=2) == [21]


async def test_what_the_tables_say_wrongly_is_not_believed(indexed: Indexed):
    ids = [await indexed.say(content, session_id) for session_id, content in (("s", "fox"), ("t", "fox"), ("u", "fox"))]
    indexed.feed()
    await indexed.call("update_message", message_id=ids[0], content="bird")
    await indexed.call("delete_message", message_id=ids[1])
    assert [hit.sequence for hit in hits(indexed, "fox")] == [3]
    assert [hit.sequence for hit in hits(indexed, "bird", [1, 2, 3, 99])] == [1]


async def test_rows_alone_are_enough_to_score(indexed: Indexed):
    await say(indexed, "red fox", "bird", "fox")
    indexed.lose_tables()
    indexed.connection.execute("DETACH search")
    ask = SearchMessages(query="fox")
    best = rescore(indexed.connection, ask, terms.asked("fox"), SOME, [1, 2, 3], 2)
    assert [hit.sequence for hit in best] == [3, 1]
    assert rescore(indexed.connection, ask, terms.asked("fox"), SOME, [], 2) == []


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("東京の天気は", "今日の東京は雨です"),
        ("กินข้าวที่ไหน", "วันนี้กินข้าวผัด"),
        ("어디 한국", "한국어 공부"),
        ("getUserName?", "call get_user_name here"),
        ("🟡 what", "a 🟡 b"),
        ("C++ or C#", "we use C++"),
        ("مرحبا بكم", "مَرْحَبًا"),
    ],
)
async def test_every_script_is_found_by_part_of_the_query(indexed: Indexed, query: str, content: str):
    await indexed.say("something else", "s")
    await indexed.say(content, "t")
    assert found(indexed, query) == [2]


async def test_letters_that_most_of_the_found_hold_say_little(indexed: Indexed):
    await indexed.say("東京 晴空", "s")
    for number in range(20):
        await indexed.say("東京 天 地 人 山 川", f"s{number}")
    assert found(indexed, "東京 晴空 天地人山川")[0] == 1


@pytest.mark.parametrize(
    "query",
    ['"', "'; --", "AND", "NEAR(", "content:fox", "-x", "^a*", "{}", "\\", "x\x00y", "\ufffe", "𠀀" * 200, "a " * 500],
)
async def test_no_query_is_an_error(indexed: Indexed, query: str):
    await say(indexed, query, "other")
    assert (1 in found(indexed, query)) == bool(terms.asked(query).terms)


async def test_an_empty_store_has_no_answer(indexed: Indexed):
    assert statistics(indexed.connection, terms.asked("red fox")) == Statistics(0, 0.0, (0, 0))
    assert found(indexed, "red fox") == []


async def test_frequencies_are_counted_up_to_a_bound_and_estimated_beyond(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ranked, "SEARCH_FREQUENCY_COUNTED_MAX", 10)
    for number in range(100):
        await indexed.say(
            "red fox" if number % 4 == 0 else "red" if number == 99 else "bird", tags=["fox"] * (number == 1)
        )
    indexed.feed()
    fox, absent = statistics(indexed.connection, terms.asked("fox absent")).frequencies
    assert abs(fox - 26) <= 4
    assert absent == 0
    known = statistics(indexed.connection, terms.asked("november 東京"))
    assert (known.documents, known.frequencies) == (100, (0, 0, 0, 0))


def lookups(indexed: Indexed) -> list[str]:
    """What the word table is asked for from now on."""
    matches: list[str] = []

    def note(_: apsw.Cursor, statement: str, bindings: Any) -> bool:
        if isinstance(bindings, dict) and "match" in bindings:
            matches.append(bindings["match"])
        return True

    indexed.connection.exec_trace = note
    return matches


async def test_common_words_do_not_choose_but_bring_in_the_newest_that_hold_nearly_all(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ranked, "SEARCH_POSTINGS_MAX", 4)
    monkeypatch.setattr(ranked, "SEARCH_BEST_ROWS_WITH_NEIGHBOURS", 0)
    for number in range(10):
        await indexed.say("red" if number % 2 else "fox", f"s{number}")
    await indexed.say("quick", "t")
    await indexed.say("red fox", "u")
    indexed.feed()
    matches = lookups(indexed)
    assert set(chosen(indexed, "quick red fox")) == {11, 12}
    assert all("OR" not in match for match in matches)
    assert [match for match in matches if " AND " not in match] == ['"quick"', '{summary tags} : "quick"']
    assert 12 in chosen(indexed, "red fox")


async def test_of_common_words_that_never_stand_together_the_rarer_chooses(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ranked, "SEARCH_POSTINGS_MAX", 2)
    monkeypatch.setattr(ranked, "SEARCH_NEARLY_ALL_ROWS", 2)
    monkeypatch.setattr(ranked, "SEARCH_BEST_ROWS_WITH_NEIGHBOURS", 0)
    for number, content in enumerate(("red", "fox", "red", "fox", "red", "fox", "fox")):
        await indexed.say(content, f"s{number}")
    assert chosen(indexed, "red fox") == [5, 3]


async def test_a_long_query_is_answered_by_its_rarest_words(indexed: Indexed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranked, "CHOOSING_TERMS_MAX", 2)
    await say(indexed, "one two three", "one two", "one")
    indexed.feed()
    matches = lookups(indexed)
    chosen(indexed, "one two three")
    assert {match for match in matches if " AND " not in match and ":" not in match} == {'"three"', '"two"'}


async def test_a_word_in_a_tag_promises_more(indexed: Indexed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranked, "SEARCH_BEST_ROWS", 1)
    monkeypatch.setattr(ranked, "PROMISING", 1)
    await indexed.say("fox", "s", tags=["fox"])
    for number in range(10):
        await indexed.say("fox", f"s{number}")
    assert chosen(indexed, "fox", limit=1)[0] == 1


async def test_a_long_message_promises_less(indexed: Indexed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranked, "SEARCH_BEST_ROWS_WITH_NEIGHBOURS", 0)
    await indexed.say("fox", "s")
    await indexed.say("fox " + "word " * 1_000, "t")
    assert chosen(indexed, "fox") == [1, 2]


async def test_where_there_is_too_much_text_only_its_beginning_is_read(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ranked, "SEARCH_RANKED_CODE_POINTS_MAX", 100)
    monkeypatch.setattr(ranked, "LONG_TEXT_CODE_POINTS_MAX", 20)
    for session_id in "st":
        await indexed.say("word " * 18 + "fox", session_id)
    await indexed.say("fox " + "word " * 18, "u")
    await indexed.say("beside it", "t")
    indexed.feed()
    assert [hit.sequence for hit in hits(indexed, "fox", [1, 2, 3, 4])] == [3, 1]


async def test_the_messages_beside_are_those_of_the_session(indexed: Indexed):
    await say(indexed, "1", "2", "3")
    await say(indexed, "4", session_id="t")
    await say(indexed, "5", "6")
    assert list(around(indexed.connection, [3])) == [2, 5, 1, 6]
    assert list(around(indexed.connection, [4, 1])) == [2, 3]
    assert list(around(indexed.connection, [])) == []


async def test_of_common_words_the_few_messages_that_a_filter_passes_are_all_candidates(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ranked, "SEARCH_POSTINGS_MAX", 5)
    await say(indexed, "the server was deployed", "deployed a server", project="old")
    for number in range(40):
        await indexed.say(f"server deployed {number}", f"session {number}")
    assert sorted(chosen(indexed, "deploy servers", project="old")) == [1, 2]


async def test_what_no_token_tells_is_said_to_be_passed_over(indexed: Indexed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranked, "SEARCH_POSTINGS_MAX", 5)
    await say(indexed, "the server was deployed")
    indexed.clock.pass_ms(1)
    for number in range(40):
        await indexed.say(f"server deployed {number}", f"session {number}")
    indexed.feed()
    asked = terms.asked("deploy servers")
    for filters, is_sure in (({}, True), ({"role": "user"}, True), ({"until": START_MS}, False)):
        ask = SearchMessages(query="deploy servers", **filters)
        known = statistics(indexed.connection, asked)
        assert candidates(indexed.connection, ask, asked, known).is_sure is is_sure
    monkeypatch.setattr(ranked, "SEARCH_POSTINGS_MAX", 5_000)
    assert candidates(indexed.connection, ask, asked, known).is_sure
