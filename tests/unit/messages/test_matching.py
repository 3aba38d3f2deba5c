"""Where a text holds a query: any substring, any script, no syntax."""

import pytest

from convmem.limits import MATCH_RANGES_MAX, SEARCH_WORDS_MAX, SNIPPET_CODE_POINTS_MAX
from convmem.messages.matching import Question, excerpt, searched

TICKET = 'Ticket POL-358 2026-05-08 file.txt C++ node.js don\'t use "agents" AND OR NOT a^b (x) 100% my_tag C:\\tmp'
PUNCTUATED = ["POL-358", "2026-05-08", "don't", "C++", "file.txt", "AND", "NOT", '"agents"', "a^b", "100%", "C:\\tmp"]
NOWHERE = ["nosuch:x", "content:x", "-x", "--", ";", "{}", "NEAR(", "*", "雪"]
SCRIPTS = [
    ("设备清单(devices) NAS", ["设备", "清单", "nas", "devices", "单("]),
    ("重跑gen-itgc后50条悬空引用清零", ["itgc", "悬空", "50", "c后5"]),
    ("東京都に住んでいます 雨", ["東京", "住んで", "雨", "す 雨"]),
    ("ฉันชอบกินข้าวผัดกะเพราที่ตลาดน้ำ", ["ตลาด", "ข้าวผัด", "น้ำ", "น้\u0e4d\u0e32"]),
    ("ខ្ញុំស្រឡាញ់ភាសាខ្មែរ", ["ភាសា"]),
    ("검색 엔진", ["검색", "색 엔", "\u1100\u1165\u11b7"]),
    ("caf\u0065\u0301 É", ["é", "É", "e", "\u0301", "fe"]),
    ("a\0bcdef after nul", ["bcdef", "a\0b", "\0"]),
]


def exact(query: str, content: str) -> bool:
    return bool(Question(query, "exact").match(searched(content, None, None, ())).exact)


def words(query: str, content: str) -> set[str]:
    found = Question(query, "any").match(searched(content, None, None, ())).words
    return set().union(*found.values())


@pytest.mark.parametrize("query", PUNCTUATED)
def test_punctuation_is_text(query: str):
    assert exact(query, TICKET)
    assert words(query, TICKET)


@pytest.mark.parametrize("query", NOWHERE)
def test_what_is_not_there_is_not_found(query: str):
    assert not exact(query, TICKET)
    assert not words(query, TICKET)


@pytest.mark.parametrize(("content", "query"), [(content, query) for content, queries in SCRIPTS for query in queries])
def test_parts_of_any_script_are_found(content: str, query: str):
    assert exact(query, content)


@pytest.mark.parametrize(
    ("query", "content", "found"),
    [
        ("cat", "category", set()),
        ("cat", "a cat.", {"cat"}),
        ("cat", "my_cat", {"cat"}),
        ("cat", "猫cat猫", {"cat"}),
        ("cat", "caté, écat", set()),
        ("кот", "который кот", {"кот"}),
        ("кот", "который", set()),
        ("deploy", "we deployed", {"deploy"}),
        ("deploy", "redeploy", set()),
        ("雨 雪", "大雨です", {"雨"}),
        ("ตลาด", "ที่ตลาดน้ำ", {"ตลาด"}),
        ("검색", "검색은", {"검색"}),
        ("The THE the", "the", {"the"}),
        ("   ", "a   b", set()),
    ],
)
def test_a_word_is_found_where_its_script_says_it_begins(query: str, content: str, found: set[str]):
    assert words(query, content) == found


def test_a_query_of_one_word_asks_nothing_more_by_words():
    assert Question("Deploy", "auto").words == []
    assert [word.text for word in Question(" Deploy", "auto").words] == ["deploy"]
    assert [word.text for word in Question("Deploy", "any").words] == ["deploy"]
    assert Question("two words", "exact").words == []


def test_a_query_of_very_many_words_is_looked_at_up_to_a_bound():
    assert len(Question(" ".join(map(str, range(300))), "any").words) == SEARCH_WORDS_MAX


def test_each_field_answers_for_itself():
    match = Question("red fox", "auto").match(searched("a red fox", None, "Red", ("FOX", "red fox")))
    assert match.exact == ("content", "tags")
    assert match.words == {"content": {"red", "fox"}, "summary": {"red"}, "tags": {"red", "fox"}}
    assert match.word_count == 2


def test_tags_are_not_one_text():
    assert not Question("a\0b", "exact").match(searched("", None, None, ("a", "b"))).exact


def test_ranges_count_code_points_of_the_original():
    cut = excerpt("İİİ key ﬁn ＡＢＣ", Question("KEY", "exact"))
    assert (cut.start, cut.ranges) == (0, [(4, 7)])


def test_a_snippet_surrounds_the_match_and_has_its_length():
    content = "x" * 1_000 + "needle" + "y" * 1_000
    cut = excerpt(content, Question("NEEDLE", "auto"))
    assert len(cut.text) == SNIPPET_CODE_POINTS_MAX
    assert cut.ranges == [(1_000, 1_006)]
    assert content[cut.start : cut.start + len(cut.text)] == cut.text
    assert "needle" in cut.text


@pytest.mark.parametrize("place", [0, 5, 290, 300, 995, 1_694])
def test_a_snippet_is_full_wherever_the_match_is(place: int):
    content = "x" * place + "needle" + "x" * (1_694 - place)
    cut = excerpt(content, Question("needle", "auto"))
    assert "needle" in cut.text
    assert len(cut.text) == SNIPPET_CODE_POINTS_MAX


def test_a_query_longer_than_a_snippet_is_shown_from_its_start():
    query = "q" * 1_000
    cut = excerpt("x" * 500 + query, Question(query, "exact"))
    assert (cut.start, cut.ranges) == (500, [(500, 1_500)])


def test_a_snippet_shows_where_most_words_are():
    content = "red " + "x" * 600 + " the red fox is quick " + "y" * 600 + " fox"
    cut = excerpt(content, Question("quick red fox", "any"))
    assert "the red fox is quick" in cut.text
    assert sorted(content[start:end] for start, end in cut.ranges) == ["fox", "quick", "red"]


def test_a_part_of_a_joined_letter_is_shown_where_it_stands():
    cut = excerpt("cafe\u0301", Question("e", "exact"))
    assert cut.ranges == [(3, 4)]


def test_without_a_match_the_snippet_is_the_beginning():
    assert excerpt("x" * 400, Question("needle", "auto")) == ("x" * 300, 0, [])


def test_ranges_are_bounded_apart_and_rising():
    cut = excerpt("a" * 5_000, Question("a", "exact"))
    assert len(cut.ranges) == MATCH_RANGES_MAX
    cut = excerpt("aaab aab", Question("aa aab", "any"))
    assert cut.ranges == sorted(cut.ranges)
    assert all(first[1] <= second[0] for first, second in zip(cut.ranges, cut.ranges[1:], strict=False))
