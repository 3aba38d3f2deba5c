"""Where a text holds a query: any substring, any script, no syntax."""

import pytest

from convmem.limits import MATCH_RANGES_MAX, SNIPPET_CODE_POINTS_MAX
from convmem.messages import terms
from convmem.messages.matching import Excerpt, Question, excerpt, searched

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


def held(query: str, content: str) -> bool:
    return bool(Question(query).held(searched(content, None, None, ())))


def shown(content: str, query: str) -> Excerpt:
    return excerpt(content, Question(query), terms.asked(query))


@pytest.mark.parametrize("query", PUNCTUATED)
def test_punctuation_is_text(query: str):
    assert held(query, TICKET)


@pytest.mark.parametrize("query", NOWHERE)
def test_what_is_not_there_is_not_found(query: str):
    assert not held(query, TICKET)


@pytest.mark.parametrize(("content", "query"), [(content, query) for content, queries in SCRIPTS for query in queries])
def test_parts_of_any_script_are_found(content: str, query: str):
    assert held(query, content)


def test_each_field_answers_for_itself():
    fields = searched("a red fox", None, "Red", ("FOX", "red fox", "one red fox"))
    assert Question("red fox").held(fields) == ("content", "tags")


def test_tags_are_not_one_text():
    assert Question("a\0b").held(searched("", None, None, ("a", "b"))) == ()


def test_ranges_count_code_points_of_the_original():
    cut = shown("İİİ key ﬁn ＡＢＣ", "KEY")
    assert (cut.start, cut.ranges) == (0, [(4, 7)])


def test_a_snippet_surrounds_the_match_and_has_its_length():
    content = "x" * 1_000 + "needle" + "y" * 1_000
    cut = shown(content, "NEEDLE")
    assert len(cut.text) == SNIPPET_CODE_POINTS_MAX
    assert cut.ranges == [(1_000, 1_006)]
    assert content[cut.start : cut.start + len(cut.text)] == cut.text
    assert "needle" in cut.text


@pytest.mark.parametrize("place", [0, 5, 290, 300, 995, 1_694])
def test_a_snippet_is_full_wherever_the_match_is(place: int):
    content = "x" * place + "needle" + "x" * (1_694 - place)
    cut = shown(content, "needle")
    assert "needle" in cut.text
    assert len(cut.text) == SNIPPET_CODE_POINTS_MAX


def test_a_query_longer_than_a_snippet_is_shown_from_its_start():
    query = "q" * 1_000
    cut = shown("x" * 500 + query, query)
    assert (cut.start, cut.ranges) == (500, [(500, 1_500)])


def test_a_snippet_shows_where_most_words_are():
    content = "red " + "x" * 600 + " the red foxes are quick " + "y" * 600 + " fox"
    cut = shown(content, "quick red fox")
    assert "the red foxes are quick" in cut.text
    assert sorted(content[start:end] for start, end in cut.ranges) == ["foxes", "quick", "red"]


def test_words_of_scripts_without_spaces_are_shown_too():
    content = "今日は大雨です。明日も雨が降るでしょう。"
    cut = shown(content, "明日の大雨")
    assert [content[start:end] for start, end in cut.ranges] == ["大雨", "明日"]


def test_a_part_of_a_joined_letter_is_shown_where_it_stands():
    assert shown("cafe\u0301", "e").ranges == [(3, 4)]


def test_without_a_match_the_snippet_is_the_beginning():
    assert shown("x" * 400, "needle") == ("x" * 300, 0, [])
    assert excerpt("a needle", Question("needle x"), None) == ("a needle", 0, [])


def test_ranges_are_bounded_apart_and_rising():
    assert len(shown("a" * 5_000, "a").ranges) == MATCH_RANGES_MAX
    cut = shown("red fox " * 200, "fox then red")
    assert 1 < len(cut.ranges) <= MATCH_RANGES_MAX
    assert all(first[1] < second[0] for first, second in zip(cut.ranges, cut.ranges[1:], strict=False))
