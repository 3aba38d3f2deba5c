"""Search finds what is there, not what is not, in bounded replies, and by no other rule than it says: with the tables
of search, with tables that are behind, and without any.
"""

from collections.abc import Callable
from typing import Any

import pytest

from convmem.limits import REPLY_BYTES_DEFAULT, REPLY_BYTES_MAX
from convmem.messages import ranked, scan, search
from convmem.reply_bytes import reply_bytes
from tests.support.folded import Folded
from tests.support.indexed import Indexed
from tests.support.manual_clock import START_MS


class Fed(Indexed):
    """All that is stored is in the tables before a search."""

    async def search(self, query: Callable[..., Any], *arguments: Any) -> Any:
        if query is search._position:
            self.feed()
        return await super().search(query, *arguments)


class HalfFed(Indexed):
    """Every other search begins with tables that know all; in between they fall behind."""

    turn = 0

    async def search(self, query: Callable[..., Any], *arguments: Any) -> Any:
        if query is search._position:
            self.turn += 1
            if self.turn % 2:
                self.feed()
        return await super().search(query, *arguments)


@pytest.fixture(params=[Folded, Indexed, Fed, HalfFed])
def folded(request: pytest.FixtureRequest) -> Folded:
    made: Folded = request.param()
    return made


async def found(folded: Folded, query: str, **arguments: Any) -> Any:
    facts = await folded.call("search_messages", query=query, **arguments)
    assert facts["complete"] is True
    ways = facts["path"].split("+")
    assert ways[0] == "scan" if type(folded) is Folded else "scan" not in ways
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


async def test_exact_hits_come_first_and_the_others_by_relevance(folded: Folded):
    await folded.say("fox", "one", importance=100)
    await folded.say("a red animal: a fox", "two")
    await folded.say("quick red fox", "three")
    await folded.say("foxes, quick and so red", "four")
    results = await found(folded, "quick red fox")
    assert [result["snippet"] for result in results] == [
        "quick red fox",
        "foxes, quick and so red",
        "a red animal: a fox",
        "fox",
    ]
    assert [result["exact"] for result in results] == [True, False, False, False]
    assert await contents(folded, "quick red fox", match="exact") == ["quick red fox"]
    ranked = await found(folded, "quick red fox", match="any", limit=3)
    assert [result["snippet"] for result in ranked][:2] == ["quick red fox", "foxes, quick and so red"]
    assert {result["exact"] for result in ranked} == {False}


async def test_of_equal_hits_by_words_the_important_go_first_then_the_newest(folded: Folded):
    for number in range(12):
        await folded.say("reds", f"session {number}", importance=100 - number if number < 2 else 0)
    results = await found(folded, "red foxes", limit=4)
    assert [result["session_id"] for result in results] == ["session 0", "session 1", "session 11", "session 10"]


async def test_an_answer_is_found_beside_the_words_of_the_question(folded: Folded):
    await folded.say("nothing of that", "elsewhere")
    for content in ("so", "When did Caroline visit the museum in Geneva?", "On a rainy Tuesday.", "I see"):
        await folded.say(content, "talk")
    first, *others = await found(folded, "when did Caroline visit that museum of Geneva")
    assert first["snippet"].startswith("When did")
    (answer,) = [other for other in others if other["snippet"] == "On a rainy Tuesday."]
    assert answer["matched_fields"] == ["context"]
    assert answer["matched_neighbours"] == [first["message_id"]]


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("about oreilly books", "An O'Reilly book."),
        ("please reindex", "Now re-index it."),
        ("the wifi password", "Wi-Fi is down."),
        ("IT department", "I work in it."),
        ("can opener", "The can is open."),
        ("my to-do", "what to do"),
    ],
)
async def test_words_are_found_however_they_are_joined_and_however_little_they_say(query: str, content: str):
    for folded in (Indexed(), Fed()):
        await folded.say(content)
        await folded.say("nothing", "elsewhere")
        assert await contents(folded, query) == [content]


async def test_two_words_of_a_question_show_what_stands_beside_them(folded: Folded):
    for content in ("Where did you plant the tomatoes?", "Behind the shed."):
        await folded.say(content)
    results = await found(folded, "where are the tomatoes planted")
    assert [result["snippet"] for result in results] == ["Where did you plant the tomatoes?", "Behind the shed."]


@pytest.mark.parametrize("query", ["museum", "the museum", "museum in Geneva"])
async def test_who_looks_for_a_word_sees_it_in_every_result(folded: Folded, query: str):
    for content in ("before", "She saw a museum in Geneva.", "after"):
        await folded.say(content)
    assert await contents(folded, query) == ["She saw a museum in Geneva."]


DOCUMENTS = {
    "设备清单(devices) NAS": ["设备", "清单", "NAS", "nas", "devices", "单(", "备清单(dev"],
    "重跑gen-itgc后50条悬空引用清零": ["itgc", "悬空", "50", "c后5", "重", "零"],
    "東京都に住んでいます 雨": ["東京", "住んで", "雨", "す 雨", "都"],
    "ฉันชอบกินข้าวผัดกะเพราที่ตลาดน้ำ": ["ตลาด", "ข้าวผัด", "น้ำ", "น้\u0e4d\u0e32", "ฉ"],
    "ខ្ញុំស្រឡាញ់ភាសាខ្មែរ": ["ភាសា", "ក្មែ".replace("ក", "ខ")],
    "검색 엔진": ["검색", "색 엔", "\u1100\u1165\u11b7", "진"],
    'Ticket POL-358 2026-05-08 file.txt C++ node.js don\'t use "agents" AND OR NOT a^b (x) 100% my_tag C:\\tmp': [
        *("POL-358", "2026-05-08", "don't", "C++", "file.txt", "AND", "NOT", '"agents"', "a^b", "100%", "C:\\tmp"),
        *("(x)", "% m", "_", "^", "\\"),
    ],
    "İİİ key ﬁn ＡＢＣ": ["KEY", "fin", "abc", "i\u0307", "ＫＥＹ"],
    "caf\u0065\u0301 ΣΊΣΥΦΟΣ straße": ["é", "É", "fe", "σίσυφος", "ΣΊΣΥΦΟΣ", "STRASSE", "\u0301"],
    "a\0bcdef after nul \ue000\U000f0123\x03\x1e": ["bcdef", "a\0b", "\0", "\ue000", "\U000f0123", "\x03", "\x1e"],
    "𠀀𠀁 👩‍👩‍👧 שָׁלוֹם हिन्दी": ["𠀀", "👩‍👧", "👧", "שָׁ", "हिन्", "\u200d"],
}
ABSENT = ["雪", "nosuch:x", "content:x", "NEAR(", "{}", "검사", "ราชา", "zz", "é́"]


async def test_each_document_is_found_by_its_parts_and_no_other(folded: Folded):
    of = {await folded.say(content, f"session {place}"): content for place, content in enumerate(DOCUMENTS)}
    for message_id, content in of.items():
        for query in DOCUMENTS[content]:
            results = await found(folded, query, match="exact")
            assert [result["message_id"] for result in results] == [message_id], query
            assert (await found(folded, query))[0]["message_id"] == message_id, query
    for query in ABSENT:
        assert await found(folded, query) == [], query


@pytest.mark.parametrize("field", ["content", "summary", "tags"])
async def test_a_part_of_a_joined_letter_is_found_in_every_field(folded: Folded, field: str):
    value: Any = "ne\u0301e"
    said = {"content": value} if field == "content" else {"content": "x", field: [value] if field == "tags" else value}
    await folded.say(**said)
    assert [result["matched_fields"] for result in await found(folded, "ne")] == [[field]]


async def test_scores_add_up_over_the_fields(folded: Folded):
    await folded.say("red", summary="quick red", tags=["fox"])
    (result,) = await found(folded, "quick red fox", match="any")
    assert all(result["scores"][name] > 0 for name in ("content", "summary", "tags"))
    assert result["scores"]["context"] == 0
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
        {"content": "a word", "project": "p", "tags": ["a_b", "%"]},
        {"content": "b word", "project": "p", "memory_kind": "semantic"},
        {"content": "c word", "role": "system", "importance": 5},
        {"content": "d word", "memory_kind": "semantic", "memory_tier": "long"},
        {"content": "e word", "importance": 9, "tags": ["a_b"]},
        {"content": "f word", "session_id": "t"},
    ]
    for one in said:
        await folded.say(**one)
        folded.clock.pass_ms(1)
    for query in (" word", "words nowhere"):
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


async def test_what_went_before_the_answer_is_not_shown(folded: Folded):
    await folded.say("stays: needle")
    gone = await folded.say("gone: needle")
    changed = await folded.say("changed: needle")
    read = folded.read

    async def late(query: Callable[..., Any], *arguments: Any) -> Any:
        if query is search._answer:
            await folded.call("delete_message", message_id=gone)
            await folded.call("update_message", message_id=changed, content="hay")
        return await read(query, *arguments)

    folded.read = late  # type: ignore[method-assign]
    assert await contents(folded, "needle", match="exact") == ["stays: needle"]


async def test_what_changes_while_a_search_runs_is_found_as_it_was_or_as_it_is(folded: Folded):
    await folded.say("one needle")
    changed = await folded.say("two needles")
    read = folded.read

    async def meanwhile(query: Callable[..., Any], *arguments: Any) -> Any:
        if query in (scan.tail, scan.slice_of_all):
            folded.read = read  # type: ignore[method-assign]
            await folded.call("update_message", message_id=changed, content="a changed needle")
            if isinstance(folded, Indexed):
                folded.feed()
        return await read(query, *arguments)

    folded.read = meanwhile  # type: ignore[method-assign]
    assert sorted(await contents(folded, "needle", match="exact")) == ["a changed needle", "one needle"]


@pytest.mark.parametrize("lost", [search._position, search.exact.find, search._ranked_by_tables])
async def test_lost_tables_are_done_without(lost: Any):
    class Lost(Fed):
        async def search(self, query: Callable[..., Any], *arguments: Any) -> Any:
            return None if query is lost else await super().search(query, *arguments)

    folded = Lost()
    await folded.say("one needle")
    await folded.say("needles")
    facts = await folded.call("search_messages", query="one needle")
    assert [result["snippet"] for result in facts["results"]] == ["one needle", "needles"]
    assert facts["path"] == "scan+ranked"


async def test_common_words_of_long_ago_are_found_row_by_row(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranked, "SEARCH_POSTINGS_MAX", 5)
    folded = Fed()
    await folded.say("the server was deployed")
    folded.clock.pass_ms(1)
    for number in range(40):
        await folded.say(f"server deployed {number}", f"session {number}")
    facts = await folded.call("search_messages", query="deploy servers", until=START_MS)
    assert [result["snippet"] for result in facts["results"]] == ["the server was deployed"]
    assert facts["path"] == "scan+ranked"
    assert (await folded.call("search_messages", query="deploy servers"))["path"] == "index+ranked"


async def test_tables_too_far_behind_are_done_without(monkeypatch: pytest.MonkeyPatch):
    folded = Indexed()
    monkeypatch.setattr(search, "SEARCH_TAIL_CHANGES_MAX", 1)
    await folded.say("one needle")
    assert (await folded.call("search_messages", query="needle", match="exact"))["path"] == "index+tail"
    await folded.say("two needle")
    facts = await folded.call("search_messages", query="needle", match="exact")
    assert (facts["path"], facts["complete"], len(facts["results"])) == ("scan", True, 2)
    monkeypatch.setattr(search, "SEARCH_SCAN_BYTES_MAX", 1)
    facts = await folded.call("search_messages", query="nowhere", match="exact")
    assert facts == {"results": [], "path": "scan", "complete": True}
    monkeypatch.setattr(scan, "SEARCH_SLICE_ROWS", 1)
    facts = await folded.call("search_messages", query="nowhere", match="exact")
    assert facts == {"results": [], "path": "scan", "complete": False, "index_lag": 2}


@pytest.mark.parametrize(
    "query", ['"', "'", "*", "(", "NEAR(", "a^b", "-x", "content:x", "--", ";", "\\", "%", "{}", "\0"]
)
@pytest.mark.parametrize("match", ["auto", "exact", "any"])
async def test_no_query_raises_and_what_is_not_there_is_not_found(folded: Folded, query: str, match: str):
    await folded.say("plain words only", tags=["q", "r"], summary="s")
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


async def test_a_long_search_lets_others_pass(monkeypatch: pytest.MonkeyPatch):
    folded = Folded()
    monkeypatch.setattr(scan, "SEARCH_SLICE_ROWS", 3)
    for number in range(10):
        await folded.say(f"text {number}")
    folded.reads = 0
    assert await contents(folded, "text", limit=100, match="exact") == [f"text {number}" for number in range(9, -1, -1)]
    assert folded.reads == 4 + 1
    monkeypatch.setattr(scan, "SEARCH_SLICE_BYTES", 1)
    folded.reads = 0
    assert len(await contents(folded, "text", limit=100, match="exact")) == 10
    assert folded.reads == 10 + 1


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
