"""stop_words.py: lists a reviewer can read, and what must be in them and what must not."""

import pytest

from convmem.memory.stop_words import LANGUAGES, stop_words
from convmem.text import fold


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_list_is_sorted_and_says_each_word_once(language: str):
    words = LANGUAGES[language].split()
    assert words == sorted(words)
    assert len({fold(word) for word in words}) == len(words) > 300


def test_english_words_are_written_without_apostrophes():
    assert all(word.isascii() and word.isalpha() for word in LANGUAGES["English"].split())


def test_they_are_compared_folded():
    assert all(fold(word) == word for word in stop_words())
    assert fold("ทำ") in stop_words()


@pytest.mark.parametrize(
    "words",
    [
        "the a is are and of to please fix make add what how you i it dont",
        "ที่ และ ของ ใน การ ความ ครับ ค่ะ ช่วย หน่อย ให้ ได้ ไม่ ทำ แก้ อย่างไร",
        "的 了 是 在 和 我 我们 请 帮我 这个 什么 怎么 一下 问题",
        "請 幫我 這個 什麼 怎麼 們 為什麼 問題 沒有",
        "の は が を に へ と で も です ます する した ください この それ お願い",
    ],
)
def test_particles_and_the_words_of_asking_are_there(words: str):
    assert set(map(fold, words.split())) <= stop_words()


@pytest.mark.parametrize(
    "words",
    [
        "database docker login test search backup cache payment file server user",
        "ฐานข้อมูล ค้นหา ระบบ เอกสาร ภาษา ไทย ข้อมูล ไฟล์",
        "数据库 搜索 登录 测试 缓存 備份 資料庫 用户",
        "データベース 検索 設定 テスト 翻訳 在庫",
    ],
)
def test_what_things_are_called_is_not(words: str):
    assert stop_words().isdisjoint(map(fold, words.split()))
