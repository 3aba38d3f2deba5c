"""memory/ranking: any term in any script finds a record, the best first."""

import pytest

from convmem.memory.queries import Searched
from convmem.memory.ranking import ranked
from convmem.text import fold


def preference(sequence: int, key: str, value: str, project: str | None = None) -> Searched:
    return Searched("preference", sequence, project, f"{fold(key)}\0{fold(value)}")


def lesson(sequence: int, *texts: str, project: str | None = None) -> Searched:
    return Searched("lesson", sequence, project, "\0".join(map(fold, texts)))


ROWS = [
    preference(1, "indent", "four spaces in Python, tabs in Go"),
    preference(2, "editor", "uses Neovim with getUserName-style identifiers"),
    preference(3, "language", "ตอบเป็นภาษาไทยเสมอ"),
    preference(4, "言語", "コメントは日本語で書く。データベースはPostgreSQL"),
    preference(5, "语言", "用中文写提交信息"),
    preference(6, "답변", "짧게 대답해 주세요"),
    preference(7, "mood", "likes 🚀 and 👨‍👩‍👧 in messages"),
    lesson(8, "Deploying to production", "the database was migrated twice", "run migrations behind a lock"),
    lesson(9, "Writing C++ for the parser", "forgot x_y_z in Makefile", "call get_user_name first"),
    lesson(10, "x", "y", "z"),
]


def found(topic: str, rows: list[Searched] | None = None, project: str | None = None) -> list[int]:
    """Sequences of preferences, then of lessons, each best first."""
    hits = ranked(ROWS if rows is None else rows, topic, project)
    return [hit.sequence for kind in ("preference", "lesson") for hit in hits[kind]]


@pytest.mark.parametrize(
    ("topic", "sequences"),
    [
        ("spaces", [1]),
        ("space", [1]),
        ("How do I indent Python?", [1]),
        ("PYTHON", [1]),
        ("migrating databases", [8]),
        ("getusername", [2, 9]),
        ("user name", [2, 9]),
        ("username", [2]),
        ("erNam", [2]),
        ("get_user_name", [2, 9]),
        ("ภาษาไทย", [3]),
        ("ตอบภาษาอะไร", [3]),
        ("ไท", [3]),
        ("日本語", [4]),
        ("日本語でコメントを書いて", [4]),
        ("データ", [4]),
        ("postgresql", [4]),
        ("提交", [5]),
        ("写", [5]),
        ("대답", [6]),
        ("짧게", [6]),
        ("🚀", [7]),
        ("👨‍👩‍👧", [7]),
        ("C++", [9]),
        ("x_y_z", [9]),
        ("ｉｎｄｅｎｔ", [1]),
        ("kubernetes", []),
        ("???", []),
        ("猫", []),
    ],
)
def test_a_record_is_found_by_any_of_its_words_in_any_script(topic: str, sequences: list[int]):
    hits = found(topic)
    assert hits[: len(sequences)] == sequences
    assert sequences or hits == []


@pytest.mark.parametrize("topic", ["x", "z", "🚀", "写", "ท", "go"])
def test_one_or_two_characters_find_what_holds_them(topic: str):
    holding = {row.sequence for row in ROWS if fold(topic) in row.folded}
    assert holding
    assert set(found(topic)) == holding


def test_any_substring_of_any_record_finds_it():
    for row in ROWS:
        for text in row.folded.split("\0"):
            for start in range(len(text)):
                topic = text[start : start + 5]
                if topic.strip():
                    assert row.sequence in found(topic), (row, topic)


def test_the_topic_as_it_stands_beats_more_single_words():
    rows = [
        preference(1, "a", "the lock of the write ahead, and ahead of the write a log, write ahead write ahead"),
        preference(
            2, "b", "the write-ahead log stays off in all of the many small tables that nobody has looked at for years"
        ),
    ]
    assert found("write-ahead log", rows) == [2, 1]


def test_a_rare_word_says_more_than_a_common_one_and_a_key_more_than_a_value():
    rows = [preference(number, "style", "short python answers") for number in range(1, 30)]
    rows += [preference(30, "style", "flake"), preference(31, "flake", "style")]
    assert found("python flake", rows)[:2] == [31, 30]


def test_a_word_inside_another_counts_less_than_the_word():
    rows = [
        preference(1, "a", "multithreaded code"),
        preference(2, "b", "thread safety"),
        preference(3, "c", "nothing"),
    ]
    assert found("thread pools", rows) == [2, 1]
    assert found("pools of a thread", rows) == [2, 1]


def test_words_that_say_nothing_count_only_where_nothing_else_is_found():
    rows = [preference(1, "a", "to be or not to be"), preference(2, "b", "the question")]
    assert found("the question", rows) == [2]
    assert found("or not", rows) == [1]
    assert found("not to worry", rows) == [1]


def test_the_newest_of_equals_comes_first():
    assert found("tabs", [preference(number, "indent", "tabs") for number in (3, 1, 2)]) == [3, 2, 1]


def test_a_project_s_own_come_first_and_those_of_others_never():
    rows = [
        preference(1, "indent", "tabs tabs tabs", "shop"),
        preference(2, "indent", "tabs"),
        preference(3, "indent", "tabs and tabs and tabs", "clock"),
        lesson(4, "tabs", "were", "mixed", project="clock"),
        lesson(5, "tabs in makefiles", "were", "spaces", project="shop"),
    ]
    assert found("tabs", rows, "shop") == [1, 2, 5]
    assert found("tabs", rows, "garden") == [2]
    assert sorted(found("tabs", rows)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("topic", ["\u3000", "\u00ad", "'", "…", "\u200d", "(" * 500, "a" * 500, "的" * 500])
def test_an_odd_topic_is_only_text(topic: str):
    assert len(found(topic)) <= len(ROWS)


def test_vowels_that_may_be_left_out_do_not_hide_a_word():
    rows = [preference(1, "language", "מְדַבֵּר עִבְרִית"), preference(2, "language", "العَرَبِيَّة")]
    assert found("עברית", rows) == [1]
    assert found("العربية", rows) == [2]


def test_thousands_of_records_that_hold_the_topic_are_all_counted_though_few_are_looked_at_closely():
    rows = [preference(number, f"key {number}", "prefers python over perl") for number in range(5_000)]
    assert len(ranked(rows, "python perl")["preference"]) == 64
    assert found("key 4999", rows)[0] == 4_999


@pytest.mark.parametrize("kind", ["preference", "lesson"])
def test_the_one_that_is_meant_is_found_among_hundreds_that_begin_like_it(kind: str):
    make = {
        "preference": lambda number, text: preference(number, "note", text),
        "lesson": lambda number, text: lesson(number, text, "m", "c"),
    }[kind]
    numbered = [make(number, f"rule{number} says JIRA-{number} and v{number}") for number in range(1, 400)]
    for topic, number in (("rule7 deploy", 7), ("fix JIRA-7", 7), ("v3 v3", 3), ("rule11 v11", 11)):
        assert found(topic, numbered)[0] == number, topic
    alike = [make(1, "run the test twice"), *(make(number, f"tesla {number}") for number in range(2, 400))]
    assert found("a test please", alike)[0] == 1
    joined = [make(1, "東京の天気"), *(make(number, f"東北の雪 {number}") for number in range(2, 400))]
    assert found("東京は", joined)[0] == 1
    thai = [make(1, "ตลาดน้ำ"), *(make(number, f"ตลก {number}") for number in range(2, 400))]
    assert found("ไปตลาด", thai)[0] == 1
