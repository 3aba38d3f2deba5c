"""memory/cleaning: no secret reaches the writer, names stay unlike each other, bounds hold."""

import pytest

from convmem.inputs import checked
from convmem.memory import cleaning
from convmem.memory.cleaning import cleaned
from convmem.memory.inputs import (
    DeleteSection,
    ExportMemory,
    Forget,
    GetProfile,
    GetRecentInteractions,
    MemoryStats,
    ReadSection,
    Recall,
    Remember,
    SaveLesson,
    SearchHistory,
    WriteSection,
)

SECRET = "sk-proj-FAKE0000000000000000000000"
# What is only compared with what is stored, and what is no free text.
NOT_CLEANED = {"topic", "query", "target_id", "section", "filename", "replaces"}
INPUTS = (
    *(Remember, SaveLesson, WriteSection, DeleteSection, ReadSection, Recall, GetProfile, SearchHistory, Forget),
    *(MemoryStats, GetRecentInteractions, ExportMemory),
)


def test_every_text_of_every_input_is_cleaned_or_said_to_need_it_not():
    texts = {
        name
        for kind in INPUTS
        for name, field in kind.model_fields.items()
        if "str" in str(field.annotation) and "Literal" not in str(field.annotation)
    }
    assert texts == set(cleaning.CLEAN) | NOT_CLEANED


@pytest.mark.parametrize("name", ["key", "value", "project"])
def test_a_secret_is_taken_out_and_the_rest_stays(name: str):
    texts = {"key": "indent", "value": "four spaces", "project": "shop"}
    ask = checked(Remember, {"category": "other", **texts, name: f"before {SECRET} behind"})
    clean, had_secret = cleaned(ask)
    assert had_secret
    assert SECRET not in clean.model_dump_json()
    assert getattr(clean, name).startswith("before [REDACTED:")
    for other in texts.keys() - {name}:
        assert getattr(clean, other) == texts[other]


@pytest.mark.parametrize("name", ["situation", "mistake", "correction"])
def test_a_lesson_loses_its_secrets_too(name: str):
    texts = {"situation": "at work", "mistake": "was lazy", "correction": "be quick", name: f"password={SECRET}"}
    clean, had_secret = cleaned(checked(SaveLesson, texts))
    assert had_secret
    assert SECRET not in clean.model_dump_json()


def test_what_holds_no_secret_is_the_same_ask():
    ask = checked(Remember, {"category": "other", "key": "the token", "value": "see docs"})
    assert cleaned(ask) == (ask, False)
    assert cleaned(ask)[0] is ask


def test_two_names_that_differ_in_a_secret_alone_are_one_and_no_hash_tells_of_it():
    asks = [checked(GetProfile, {"project": f"token={SECRET}{number}"}) for number in (1, 2)]
    first, second = (cleaned(ask)[0].project for ask in asks)
    assert first == second == "token=[REDACTED:api_key]"


def test_a_text_that_a_placeholder_makes_too_long_is_cut_and_says_so():
    value = ("pwd=a " * 400)[:1_980] + " LAST WORDS"
    clean, _ = cleaned(checked(Remember, {"category": "other", "key": "k", "value": value}))
    assert (len(clean.value) <= 2_000, clean.value[-1]) == (True, "…")
    whole = "pwd=a " + "x" * 1_900 + " LAST WORDS"
    clean, _ = cleaned(checked(Remember, {"category": "other", "key": "k", "value": whole}))
    assert clean.value.endswith(" LAST WORDS")


def test_cleaned_texts_keep_their_bounds():
    many = "ghp_" + "a" * 36
    texts = {
        "category": "other",
        "key": ("pwd=a " * 40)[:200],
        "value": ("pwd=a " * 400)[:2_000],
        "project": ("pwd=a " * 60)[:256],
    }
    clean, had_secret = cleaned(checked(Remember, texts))
    assert had_secret
    assert checked(Remember, clean.model_dump(exclude_none=True)) == clean
    section, _ = cleaned(checked(WriteSection, {"section": "notes", "content": f"{many}\n" * 97}))
    assert len(section.content) <= 4_000
    assert many not in section.content
