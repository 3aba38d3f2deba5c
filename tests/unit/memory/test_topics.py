"""topics.py: what prompts are about, as a reader would name it; counted once a prompt, in bounded memory."""

from collections.abc import Iterable
from random import Random

import pytest

from convmem.limits import KEYWORD_CODE_POINTS_MAX, KEYWORD_WORDS_MAX, KEYWORDS_MAX
from convmem.memory.topics import Tally, Topics, is_topic
from tests.support.prompts import prompts


def found(texts: Iterable[str], topics: Topics | None = None, topics_max: int = 100) -> dict[str, int]:
    texts, topics = list(texts), topics or Topics()
    for text in texts:
        topics.learn(text)
    for text in texts:
        topics.count(text)
    return {topic.text: topic.prompts for topic in topics.best(topics_max)}


@pytest.mark.parametrize(
    "word",
    [
        *(
            "docker",
            "Docker",
            "getUserName",
            "docker-compose",
            "C++",
            "c#",
            "tests",
            "utf-8",
            "sha256",
            "k8s",
            "s3",
            "2fa",
        ),
        *("python3.11", "facade", "decade", "oauth2", "base64", "ipv6", "x86_64", "i18n", "b2b", "main.py", "user_id"),
        *("ค้นหา", "ฐานข้อมูล", "数据", "資料庫", "データベース", "検索", "支払い", "りんご", "검색", "étude"),
    ],
)
def test_what_a_reader_would_name_is_a_topic(word: str):
    assert is_topic(word)


@pytest.mark.parametrize(
    "word",
    [
        *(
            "12",
            "1,000",
            "3.14",
            "๑๒",
            "１２",
            "٣٤",
            "三十",
            "一百",
            "½",
            "2026-01-31",
            "12:30",
            "10ms",
            "5MB",
            "1st",
            "100%",
        ),
        *(
            "v1.2.3",
            "v2",
            "3.11.7",
            "1.0.0rc1",
            "2026-01-31T10:00:00Z",
            "0x1f",
            "a1b2c3d",
            "9f86d081884c7d659a2feaa0c55ad015",
        ),
        *(
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "550e8400-e29b-41d4-a716-446655440000",
            "tok4nAb12Cd34Ef56Gh",
            "[REDACTED:api_key]",
        ),
        *("a", "x", "水", "ก", "の", "é", ""),
        *("the", "The", "THE", "please", "fix", "Fixing", "fixed", "don't", "don’t", "using", "issues", "bug's"),
        *("ช่วย", "ครับ", "และ", "请", "我们", "什么", "這個", "ください", "です", "について", "教え", "ている"),
        *("กต์", "ด็", "すく", "書い", "忘了", "x" * (KEYWORD_CODE_POINTS_MAX + 1)),
    ],
)
def test_numbers_ids_particles_requests_and_pieces_are_none(word: str):
    assert not is_topic(word)


def test_a_word_is_counted_once_a_prompt_and_in_one_form():
    texts = ["Docker docker DOCKER", "docker", "docker", "two tests", "a test", "the tests"]
    assert found(texts) == {"docker": 3, "tests": 3}


def test_what_is_written_most_often_is_shown():
    assert found(["Redis", "Redis", "redis"]) == {"Redis": 3}
    assert found(["the user's", "a user's", "user"]) == {"user": 3}


def test_of_the_same_number_the_order_is_by_text_and_always_the_same():
    texts = ["zebra apple", "mango apple zebra", "mango"]
    assert list(found(texts)) == list(found(texts[::-1])) == ["apple", "mango", "zebra"]


def test_best_gives_the_most_frequent_ones():
    texts = ["apple", "apple pear", "apple, pear, fig"]
    assert found(texts, topics_max=2) == {"apple": 3, "pear": 2}


@pytest.mark.parametrize(
    ("texts", "whole", "pieces"),
    [
        (["数据库迁移", "备份数据库", "数据库坏了"], "数据库", ("数据", "库")),
        (["优化首页", "性能要优化", "优化搜索"], "优化", ("优", "化")),
        (["缓存", "页面", "清缓存", "缓存满了"], "缓存", ("缓", "存")),
        (["ย้ายฐานข้อมูล", "ฐานข้อมูลล่ม", "สำรองฐานข้อมูล"], "ฐานข้อมูล", ("ฐาน", "ข้อมูล")),
        (["run unit tests", "a unit test", "the unit tests fail"], "unit tests", ("unit", "tests")),
    ],
)
def test_words_that_always_stand_together_are_one(texts: list[str], whole: str, pieces: tuple[str, ...]):
    topics = found(texts)
    assert topics[whole] == 3
    assert topics.keys().isdisjoint(pieces)


def test_a_word_between_spaces_that_also_stands_alone_counts_wherever_it_stands():
    topics = found(["docker compose up"] * 3 + ["docker image"] + ["docker is slow"] * 3)
    assert (topics["docker"], topics["docker compose"]) == (7, 3)
    assert "compose" not in topics


def test_a_name_in_latin_letters_counts_wherever_it_is_written_to_its_neighbour():
    topics = found(["docker容器坏了", "看docker容器", "docker容器"] + ["docker"] * 3)
    assert (topics["docker"], topics["docker容器"]) == (6, 3)


def test_words_that_only_sometimes_stand_together_stay_apart():
    topics = found(["login page"] * 3 + ["login"] * 5 + ["page"] * 5)
    assert (topics["login"], topics["page"]) == (8, 8)
    assert "login page" not in topics


def test_a_rare_follower_does_not_take_a_common_word_along():
    topics = found([f"parser of {number % 3}" for number in range(300)] + ["parser zebra"] * 3)
    assert topics == {"parser": 303, "zebra": 3}


def test_stop_words_commas_and_line_ends_part_what_is_said():
    for between in (" the ", ", ", "\n", " [REDACTED:x] "):
        topics = found([f"parser{between}zebra"] * 5)
        assert topics == {"parser": 5, "zebra": 5}, between


def test_a_compound_has_so_many_words_at_most():
    topics = found(["alpha bravo charlie delta echo foxtrot"] * 5)
    assert {len(text.split()) for text in topics} <= set(range(1, KEYWORD_WORDS_MAX + 1))
    assert topics["alpha bravo charlie delta"] == 5


def test_secrets_that_were_taken_out_and_addresses_are_no_topics():
    assert found(["my [REDACTED:github_token] of https://github.com/someone/thing for parser"] * 3) == {"parser": 3}


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (5_000, "docker database login search upload payment ค้นหา เข้าสู่ระบบ ฐานข้อมูล データベース ログイン 登录 搜索"),
        (500, "docker database login search upload ค้นหา"),
    ],
)
def test_of_prompts_in_four_languages_the_best_topics_are_those_a_reader_names(count: int, expected: str):
    best = list(found(prompts(count), topics_max=KEYWORDS_MAX))
    assert set(expected.split()) <= set(best), best
    assert all(is_topic(text) for text in best)


def test_what_is_counted_is_bounded_and_what_is_frequent_survives():
    chance = Random(5)
    texts = [f"docker w{chance.randrange(10**6):x}q w{chance.randrange(10**6):x}q" for _ in range(3_000)]
    topics = found(texts, Topics(texts_max=100))
    assert topics["docker"] == 3_000
    assert len(topics) <= 101


@pytest.mark.parametrize("letter", ["z", "a", "1", ".", "-", "1.", "rc", "0x", "\u0e40", "t1"])
def test_a_word_that_nearly_is_a_number_is_looked_at_in_no_time(letter: str):
    for word in ("1" + letter * 39 + "!", letter * 39 + "q", "v1" + letter * 38 + "~"):
        is_topic(word[:KEYWORD_CODE_POINTS_MAX])
    assert not is_topic(letter * 1_000_000)


def test_a_tally_forgets_the_rarer_half_and_never_counts_too_high():
    tally = Tally(3)
    for text in ("a", "b", "a", "c", "a", "b", "d"):
        tally.add((text,))
    assert tally.counts == {"a": 3, "b": 2}
    tally.add(("d",))
    assert tally.counts["d"] == 1
