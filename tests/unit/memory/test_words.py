"""words.py: texts cut as a reader would cut them, in every script, with ICU and without."""

import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.limits import KEYWORDS_MAX
from convmem.memory.topics import Topics
from convmem.memory.words import Word, cut, dictionary, readable, words
from tests.support.prompts import prompts

MIXED = "a1.-_'\u2019 กข์่ำ数据库のひらカタカナー😀\u0301\u200dé한글हिन्दी\0\n[]:"


@pytest.fixture
def without_icu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """ICU cannot be imported."""
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    dictionary.cache_clear()
    yield
    dictionary.cache_clear()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Fix the login page", "Fix the login page"),
        ("getUserName() in docker-compose.yml", "getUserName in docker-compose.yml"),
        ("main.py, user_id and __init__", "main.py user_id and init"),
        ("C++, C# or F#; not i++ nor x#", "C++ C# or F# not i nor x"),
        ("don't, it’s", "don't it’s"),
        ("see https://example.com/a?b=c#d. ok", "see ok"),
        ("the key [REDACTED:api_key] is gone", "the key is gone"),
        ("cut at the end [REDACTED:ap", "cut at the end"),
        ("हिन्दी में लिखो", "हिन्दी में लिखो"),
        ("검색 결과를 보여줘", "검색 결과를 보여줘"),
        ("ｆｕｌｌ ｶﾀｶﾅ", "full カタカナ"),
        ("e\u0301tude", "étude"),
        ("", ""),
        ("…!? 😀", ""),
    ],
)
def test_scripts_with_spaces_are_cut_at_them_and_names_of_programs_stay_whole(text: str, found: str):
    assert " ".join(words(text)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ค้นหาภาษาไทยได้เร็วขึ้น", "ค้นหา ภาษา ไทย ได้ เร็ว ขึ้น"),
        ("ทำงานกับคอนเทนเนอร์docker", "ทำงาน กับ คอนเทนเนอร์ docker"),
        ("请优化查询性能", "请 优 化 查询 性能"),
        ("請檢查設定", "請 檢查 設定"),
        ("検索のパフォーマンスを改善", "検索 の パフォーマンス を 改善"),
        ("リファクタリングして", "リファクタリング し て"),
        ("ログイン・テスト", "ログイン テスト"),
    ],
)
def test_scripts_without_spaces_are_cut_by_the_dictionary_and_katakana_stays_whole(text: str, found: str):
    assert " ".join(words(text)) == found


@pytest.mark.usefixtures("without_icu")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("数据库 ok 水", "数据库 ok 水"),
        ("我的数据库迁移超时", "我 的 数据 据库 库迁 迁移 移超 超时"),
        ("検索のテスト", "検索 の テスト"),
        ("ช่วยแก้ระบบค้นหา", "ช่วย แก้ระบบค้นหา"),
        ("ค้นหาภาษาไทยช้า", "ค้น ้นห นหา หาภ าภา ภาษ าษา ษาไ าไท ไทย ทยช ยช้ ช้า"),
    ],
)
def test_without_icu_runs_fall_apart_at_stop_words_and_then_into_grams(text: str, found: str):
    assert dictionary() is None
    assert " ".join(words(text)) == found


@pytest.mark.usefixtures("without_icu")
def test_without_icu_the_topics_are_poorer_but_mostly_the_same():
    topics = Topics()
    for prompt in (texts := list(prompts(2_000))):
        topics.learn(prompt)
    for prompt in texts:
        topics.count(prompt)
    best = {topic.text for topic in topics.best(KEYWORDS_MAX)}
    assert {"docker", "database", "login", "データベース", "เข้าสู่ระบบ"} <= best, best


def test_words_know_who_stands_beside_them():
    text = readable("unit test, 数据库 ok\nbye")
    unit, test, data, store, ok, bye = cut(text)
    assert test.follows(unit, text)
    assert store.follows(data, text)
    assert ok.follows(store, text)
    assert not data.follows(test, text), "a comma stands between them"
    assert not bye.follows(ok, text), "a line ends between them"


@pytest.mark.parametrize("between", ["https://example.com", "[REDACTED:token]"])
def test_nothing_is_a_neighbour_across_what_is_no_word(between: str):
    text = readable(f"one {between} two")
    one, two = cut(text)
    assert not two.follows(one, text)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(alphabet=MIXED, max_size=60))
def test_every_word_stands_where_it_says_and_none_overlaps_another(text: str):
    shown = readable(text)
    end = 0
    for word in cut(shown):
        assert word == Word(shown[word.start : word.end], word.start, word.end)
        assert word.text
        assert word.start >= end
        end = word.end


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(alphabet=MIXED, max_size=60))
def test_without_icu_the_same_letters_are_in_words(text: str):
    with_it = {at for word in cut(readable(text)) for at in range(word.start, word.end)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "icu4py.breakers", None)
        dictionary.cache_clear()
        without = {at for word in cut(readable(text)) for at in range(word.start, word.end)}
    dictionary.cache_clear()
    assert with_it == without


def test_a_long_text_of_joiners_is_cut_in_no_time():
    assert list(words("a" + "._-" * 200_000)) == ["a"]
    assert len(list(words("a_" * 100_000))) == 1
