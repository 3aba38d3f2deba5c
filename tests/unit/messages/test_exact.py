"""The tables of search find every message that holds a query, newest first, without looking at much more than that."""

from collections.abc import Iterator
from typing import Any

import apsw
import pytest

from convmem.messages import exact
from convmem.messages.exact import NEWEST, Found, find
from convmem.messages.inputs import SearchMessages
from convmem.messages.matching import Question
from tests.support.indexed import Indexed
from tests.support.manual_clock import START_MS


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Indexed]:
    """No message is so new, and no session so small, that it is looked at without the tables."""
    monkeypatch.setattr(exact, "SEARCH_NEWEST_ROWS", 1)
    monkeypatch.setattr(exact, "SEARCH_NEWEST_ROWS_A_HIT", 1)
    monkeypatch.setattr(exact, "SEARCH_FEW_ROWS", 0)
    index = Indexed()
    yield index
    index.prove()


def visit(indexed: Indexed, query: str, *, before: int = NEWEST, hits_max: int = 50, **filters: Any) -> Found:
    ask = SearchMessages(query=query, **filters)
    return find(indexed.connection, ask, Question(query), indexed.watermark, hits_max, before)


def visits(indexed: Indexed, query: str, **arguments: Any) -> list[Found]:
    """All visits of one search."""
    found = [visit(indexed, query, **arguments)]
    while found[-1].rest == "tables":
        found.append(visit(indexed, query, before=found[-1].before, **arguments))
    return found


def sequences(indexed: Indexed, query: str, **arguments: Any) -> list[int]:
    return [hit.sequence for found in visits(indexed, query, **arguments) for hit in found.hits]


def looked_at(indexed: Indexed, query: str, **arguments: Any) -> int:
    """How many rows a search decides on."""
    count = 0

    def note(row: Any) -> Any:
        nonlocal count
        count += len(row) == 3
        return row

    indexed.connection.row_trace = lambda cursor, row: note(row)
    visits(indexed, query, **arguments)
    indexed.connection.row_trace = None
    return count


SAID = [
    'Ticket POL-358 node.js C++ "agents" a^b (x) 100% my_tag C:\\tmp don\'t',
    "設備清單(devices) NAS 邰，邰",
    "東京都に住んでいます 雨。APIの設定",
    "검색 엔진 go é C",
    "ฉันชอบกินข้าวผัดกะเพราที่ตลาดน้ำ",
    "ខ្ញុំស្រឡាញ់ភាសាខ្មែរ",
    "cafe\u0301 まか\u3099きは\u309aむ \u1112\u1161\u11ab\u1100\u1173\u11af",
    "a\0bcdef \ufffe \U0010fffe \U000f0000 \x03\x03 \x1e",
    "ΟΔΟΣ İstanbul Straße ﬃ ＡＢＣ ﾊﾟ",
    "שָׁלוֹם العربية हिन्दी 👨\u200d👩\u200d👧",
]


@pytest.mark.parametrize("number", range(len(SAID)))
async def test_every_part_of_a_text_is_found_folded_or_not(indexed: Indexed, number: int):
    for text in SAID:
        await indexed.say(text)
    indexed.feed()
    text = SAID[number]
    for start in range(len(text)):
        for length in (1, 2, 3, 5, 12, len(text)):
            part = text[start : start + length]
            expected = [place for place in range(len(SAID), 0, -1) if holds(part, SAID[place - 1])]
            assert number + 1 in expected
            assert sequences(indexed, part) == expected, part


def holds(query: str, text: str) -> bool:
    question = Question(query)
    return question.folded in Question(text).folded or query in text


@pytest.mark.parametrize(
    "query", ["kraken", "雪", "雪山", "q", "qq", "zz9", "の雪", "q雪", "\u0302", "\U0010ffff", "😀"]
)
async def test_what_is_nowhere_is_not_found(indexed: Indexed, query: str):
    for text in SAID:
        await indexed.say(text)
    indexed.feed()
    assert sequences(indexed, query) == []


SYNTAX = [
    '"',
    '""',
    "'",
    "*",
    '"*',
    "(",
    ")",
    "NEAR(a b)",
    "a^b",
    "-x",
    "content:x",
    "{content}:x",
    "+",
    "--",
    ";",
    "\\",
]
STRANGE = ["\0", "\0\0\0", "a\0b", "\ufffe", "\uffff\uffff", "\U0010ffff", "\x03", "\x03\x03", "\x03\x03\x03", "\x1e"]
LONG = ["日" * 341, "日本" * 170, "a" * 1024, "ab" * 512, "é " * 341, "e\u0301" * 341, "\0" * 1024, "\U0010ffff" * 256]


@pytest.mark.parametrize("query", [*SYNTAX, "AND", "OR", "a AND b", "NOT", *STRANGE, *LONG])
async def test_no_query_raises_and_every_query_is_only_text(indexed: Indexed, query: str):
    await indexed.say("a b content x")
    indexed.feed()
    assert sequences(indexed, query) == []
    await indexed.say(f"before {query} behind")
    await indexed.say(f"日{query}本")
    indexed.feed()
    assert sequences(indexed, query) == [3, 2]


async def test_the_newest_come_first_and_no_more_than_are_asked_for(indexed: Indexed):
    for number in range(12):
        await indexed.say(f"text {number}", importance=number % 3)
    indexed.feed()
    found = visit(indexed, "text", hits_max=5)
    assert [(hit.fields, hit.importance, hit.sequence) for hit in found.hits] == [
        (1, 2, 12),
        (1, 1, 11),
        (1, 0, 10),
        (1, 2, 9),
        (1, 1, 8),
    ]
    assert (found.before, found.rest) == (8, "none")


async def test_a_hit_counts_the_fields_that_hold_the_query(indexed: Indexed):
    await indexed.say("nothing", summary="The Kraken", tags=["sea", "kraken"])
    indexed.feed()
    assert visit(indexed, "KRAKEN").hits == [(2, 0, 1)]


@pytest.mark.parametrize("query", ["comm", "設定", "の設", "n共", "共"])
async def test_a_search_ends_when_there_are_hits_enough(indexed: Indexed, query: str):
    for _ in range(200):
        await indexed.say("common設定 の設 n共")
    indexed.feed()
    assert looked_at(indexed, query, hits_max=10) <= 11


@pytest.mark.parametrize("query", ["needle", "針山", "の針", "針", "n針", "針n", "ぬ", "😀", "😀!", "e\u0301\u0323"])
async def test_what_is_rare_is_found_without_looking_at_the_others(indexed: Indexed, query: str):
    for number in range(100):
        await indexed.say(f"text {number} の設定、need the pin 山は n山 e\u0301")
        if number == 10:
            await indexed.say(f"x {query} y")
    indexed.feed()
    assert looked_at(indexed, query) <= 4
    assert sequences(indexed, query) == [12]


@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("query", ["sea\0sky", "one\0sea", "a\0s"])
async def test_fields_are_not_read_across(indexed: Indexed, monkeypatch: pytest.MonkeyPatch, query: str, few: int):
    monkeypatch.setattr(exact, "SEARCH_FEW_ROWS", few)
    await indexed.say("text", summary="one", tags=["sea", "sky"])
    indexed.feed()
    assert sequences(indexed, query, session_id="s") == []


async def test_changed_and_deleted_text_is_not_found_even_where_the_tables_know_it(indexed: Indexed):
    first, second, _ = await indexed.say("old word"), await indexed.say("old 設定"), await indexed.say("old")
    indexed.feed()
    await indexed.call("update_message", message_id=first, content="new")
    await indexed.call("delete_message", message_id=second)
    for query in ("old", "word", "設定", "w", "設"):
        assert sequences(indexed, query) == ([3] if query == "old" else [])


async def test_what_changed_after_the_watermark_is_left_to_the_caller(indexed: Indexed):
    first = await indexed.say("text")
    indexed.feed()
    await indexed.say("text")
    await indexed.call("update_message", message_id=first, content="text again")
    assert sequences(indexed, "text") == []
    indexed.feed()
    assert sequences(indexed, "text") == [2, 1]


@pytest.mark.parametrize("query", ["text", "設定", "e", "字"])
async def test_a_search_goes_on_below_where_a_visit_ended(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, query: str
):
    for _ in range(10):
        await indexed.say("text 設定 字")
    indexed.feed()
    monkeypatch.setattr(exact, "SEARCH_SLICE_ROWS", 3)
    found = visits(indexed, query)
    assert [hit.sequence for one in found for hit in one.hits] == list(range(10, 0, -1))
    assert len(found) >= 4
    assert [one.rest for one in found] == ["tables"] * (len(found) - 1) + ["none"]


async def test_a_visit_ends_after_so_many_bytes(indexed: Indexed, monkeypatch: pytest.MonkeyPatch):
    for _ in range(6):
        await indexed.say("text " * 10)
    indexed.feed()
    monkeypatch.setattr(exact, "SEARCH_SLICE_BYTES", 100)
    assert [len(found.hits) for found in visits(indexed, "text")] == [2, 2, 2, 0]


FILTERED = [
    ({}, "abcdef"),
    ({"session_id": "t"}, "f"),
    ({"project": "p"}, "ab"),
    ({"role": "system"}, "c"),
    ({"kind": "semantic"}, "bd"),
    ({"tier": "long"}, "d"),
    ({"tag": "a_b"}, "ae"),
    ({"min_importance": 5}, "ce"),
    ({"since": START_MS + 4}, "ef"),
    ({"until": START_MS + 1}, "ab"),
    ({"project": "p", "kind": "semantic"}, "b"),
    ({"tag": "a_b", "project": "p", "session_id": "s", "role": "user"}, "a"),
]


@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("query", ["ext ", "設", "t", "、é", "\u0301"])
@pytest.mark.parametrize(("filters", "left"), FILTERED)
async def test_filters_narrow(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, filters: dict[str, Any], left: str, query: str, few: int
):
    monkeypatch.setattr(exact, "SEARCH_FEW_ROWS", few)
    said: list[dict[str, Any]] = [
        {"project": "p", "tags": ["a_b", "%"]},
        {"project": "p", "memory_kind": "semantic"},
        {"role": "system", "importance": 5},
        {"memory_kind": "semantic", "memory_tier": "long"},
        {"importance": 9, "tags": ["a_b"]},
        {"session_id": "t"},
    ]
    for one in said:
        await indexed.say("text 設定、e\u0301", **one)
        indexed.clock.pass_ms(1)
    indexed.feed()
    assert sequences(indexed, query, **filters) == ["_abcdef".index(name) for name in reversed(left)]


async def test_filters_let_the_tables_skip_what_they_exclude(indexed: Indexed):
    for number in range(50):
        await indexed.say("text", session_id=f"s{number % 25}", project=f"p{number}", role="user")
    indexed.feed()
    assert looked_at(indexed, "text", session_id="s3") == 2
    assert looked_at(indexed, "text", project="p7") == 1
    assert looked_at(indexed, "text", role="system") == 0


@pytest.mark.parametrize("filters", [{"session_id": "few"}, {"tag": "few"}])
async def test_few_messages_are_looked_through_without_the_tables(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, filters: dict[str, Any]
):
    for number in range(30):
        await indexed.say("text", session_id="few" if number % 10 == 0 else "many", tags=["few"] * (number % 10 == 0))
    indexed.feed()
    indexed.connection.execute("DETACH search")
    monkeypatch.setattr(exact, "SEARCH_FEW_ROWS", 3)
    ask = SearchMessages(query="text", **filters)
    found = find(indexed.connection, ask, Question("text"), 30, 50)
    assert [hit.sequence for hit in found.hits] == [21, 11, 1]
    monkeypatch.setattr(exact, "SEARCH_FEW_ROWS", 2)
    with pytest.raises(apsw.SQLError):
        find(indexed.connection, ask, Question("text"), 30, 50)


@pytest.mark.parametrize("query", ["x", "xy", "雨"])
async def test_little_text_is_first_looked_for_in_the_newest_messages(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, query: str
):
    for _ in range(20):
        await indexed.say("xy 雨")
    indexed.feed()
    indexed.connection.execute("DETACH search")
    monkeypatch.setattr(exact, "SEARCH_NEWEST_ROWS", 10)
    found = find(indexed.connection, SearchMessages(query=query), Question(query), 20, 10)
    assert [hit.sequence for hit in found.hits] == list(range(20, 10, -1))


async def test_looking_through_the_newest_goes_on_while_it_brings_hits(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
):
    for number in range(40):
        await indexed.say("x" if number >= 20 else "y")
    indexed.feed()
    monkeypatch.setattr(exact, "SEARCH_NEWEST_ROWS", 5)
    assert visit(indexed, "x", hits_max=30).before == 36
    monkeypatch.setattr(exact, "SEARCH_NEWEST_ROWS_A_HIT", 2)
    found = visit(indexed, "x", hits_max=30)
    assert (len(found.hits), found.before, found.rest) == (20, 1, "tables")


async def test_letters_that_begin_too_many_grams_are_left_to_whoever_looks_at_all_rows(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
):
    for letter in "abcdefgh":
        await indexed.say(f"x{letter}")
    await indexed.say("nothing")
    indexed.feed()
    monkeypatch.setattr(exact, "SEARCH_BEGUN_GRAMS_MAX", 8)
    assert sequences(indexed, "x") == list(range(8, 0, -1))
    monkeypatch.setattr(exact, "SEARCH_BEGUN_GRAMS_MAX", 7)
    assert visits(indexed, "x") == [Found([], 9, "tables"), Found([], 9, "rows")]


async def test_damaged_tables_raise_and_are_no_reason_to_find_nothing(indexed: Indexed):
    await indexed.say("some text 設定")
    indexed.feed()
    indexed.damage()
    for query in ("text", "設定"):
        with pytest.raises(apsw.Error):
            visits(indexed, query)


@pytest.mark.parametrize("query", ["needle", "設定", "設", "n設", "の\u0065\u0301", "\u1112\u1161\u11ab", "x", "xy"])
@pytest.mark.parametrize("filters", [{}, {"session_id": "s"}, {"tag": "t"}, {"project": "p", "since": 1}])
@pytest.mark.parametrize("few", [0, 100])
async def test_no_table_is_read_to_its_end_or_sorted(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, query: str, filters: dict[str, Any], few: int
):
    monkeypatch.setattr(exact, "SEARCH_FEW_ROWS", few)
    await indexed.say("any", tags=["t"], project="p")
    indexed.feed()
    statements: list[tuple[str, Any]] = []
    indexed.connection.exec_trace = lambda cursor, sql, bindings: statements.append((sql, bindings)) or True
    visits(indexed, query, **filters)
    indexed.connection.exec_trace = None
    for sql, bindings in statements:
        plan = indexed.connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()
        steps = [str(step) for *_, step in plan]
        assert not [step for step in steps if "TEMP B-TREE" in step or step in ("SCAN m", "SCAN messages_message")], sql
        assert not [step for step in steps if "VIRTUAL TABLE" in step and step.endswith("INDEX 0:")], sql
