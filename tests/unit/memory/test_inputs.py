"""What callers may ask: bounds, leniencies, and how a refusal names what is wrong."""

from typing import Any

import pytest

from convmem.errors import Invalid
from convmem.inputs import checked
from convmem.memory import inputs
from convmem.memory.model import CATEGORIES, INTERACTION_KINDS, SOURCES, TYPES
from tests.support.folded import refused
from tests.support.remembered import LESSON, PREFERENCE


@pytest.mark.parametrize(
    ("kind", "arguments", "field"),
    [
        (inputs.Remember, {}, "category"),
        (inputs.Remember, PREFERENCE | {"category": "food"}, "category"),
        (inputs.Remember, PREFERENCE | {"key": " "}, "key"),
        (inputs.Remember, PREFERENCE | {"key": "a\0"}, "key"),
        (inputs.Remember, PREFERENCE | {"key": "a" * 201}, "key"),
        (inputs.Remember, PREFERENCE | {"value": ""}, "value"),
        (inputs.Remember, PREFERENCE | {"value": 4}, "value"),
        (inputs.Remember, PREFERENCE | {"value": "a" * 2_001}, "value"),
        (inputs.Remember, PREFERENCE | {"source": "heard"}, "source"),
        (inputs.Remember, PREFERENCE | {"project": "a\0"}, "project"),
        (inputs.Remember, PREFERENCE | {"confidence": 1}, "confidence"),
        (inputs.SaveLesson, LESSON | {"mistake": "a" * 1_001}, "mistake"),
        (inputs.SaveLesson, LESSON | {"correction": "\n"}, "correction"),
        (inputs.SaveLesson, {"situation": "x", "mistake": "y"}, "correction"),
        (inputs.Forget, {}, "target_id"),
        (inputs.Forget, {"target_id": "x"}, "target_id"),
        (inputs.Forget, {"target_id": "1", "type": "message"}, "type"),
        (inputs.WriteSection, {"section": "A", "content": "x"}, "section"),
        (inputs.WriteSection, {"section": "a", "content": "x" * 4_001}, "content"),
        (inputs.DeleteSection, {"section": ""}, "section"),
        (inputs.Recall, {"topic": " "}, "topic"),
        (inputs.Recall, {"topic": "x" * 501}, "topic"),
        (inputs.Recall, {"topic": "x", "limit": 0}, "limit"),
        (inputs.Recall, {"topic": "x", "limit": 51}, "limit"),
        (inputs.GetProfile, {"limit": 1}, "limit"),
        (inputs.SearchHistory, {"query": ""}, "query"),
        (inputs.SearchHistory, {"query": "x", "limit": 51}, "limit"),
        (inputs.MemoryStats, {"project": "p"}, "project"),
        (inputs.GetRecentInteractions, {"limit": 101}, "limit"),
        (inputs.GetRecentInteractions, {"kind": "file"}, "kind"),
        (inputs.ExportMemory, {"filename": "../x.json"}, "filename"),
        (inputs.ExportMemory, {"include_interactions": "yes"}, "include_interactions"),
        (inputs.ExportMemory, {"includeInteractions": "yes"}, "include_interactions"),
        (inputs.ExportMemory, {"include_interactions": True, "includeInteractions": True}, "includeInteractions"),
    ],
)
def test_what_is_wrong_is_refused_by_name(kind: Any, arguments: dict[str, Any], field: str):
    assert refused(kind, **arguments) == f"VALIDATION_ERROR {field}"


def test_defaults_are_these():
    assert checked(inputs.Recall, {"topic": "x"}).limit == 8
    assert checked(inputs.SearchHistory, {"query": "x"}).limit == 10
    assert checked(inputs.GetRecentInteractions, {}).limit == 20
    assert checked(inputs.ExportMemory, {}).include_interactions is False


def test_a_limit_may_come_as_a_text():
    assert checked(inputs.Recall, {"topic": "x", "limit": "50"}).limit == 50


@pytest.mark.parametrize("kind", [inputs.Remember, inputs.SaveLesson, inputs.Recall, inputs.GetProfile])
def test_an_empty_project_is_none(kind: Any):
    given = PREFERENCE if kind is inputs.Remember else LESSON if kind is inputs.SaveLesson else {}
    given = given | ({"topic": "x"} if kind is inputs.Recall else {})
    for empty in ("", "  ", None):
        assert checked(kind, given | {"project": empty}).project is None
    assert checked(kind, given | {"project": " p"}).project == " p"


def test_texts_are_taken_exactly_as_they_come():
    asked = checked(inputs.Remember, PREFERENCE | {"key": " Key ", "value": "a\0\n "})
    assert (asked.key, asked.value) == (" Key ", "a\0\n ")


@pytest.mark.parametrize(
    ("given", "included"),
    [
        ({"include_interactions": True}, True),
        ({"includeInteractions": True}, True),
        ({"includeInteractions": None}, False),
        ({"includeInteractions": False, "filename": "a.json"}, False),
    ],
)
def test_interactions_are_included_by_either_name(given: dict[str, Any], included: bool):
    assert checked(inputs.ExportMemory, given).include_interactions is included


def test_the_other_name_is_in_no_schema():
    assert set(inputs.ExportMemory.model_json_schema()["properties"]) == {"include_interactions", "filename"}


def test_what_is_listed_is_accepted():
    for category in CATEGORIES:
        for source in SOURCES:
            assert checked(inputs.Remember, PREFERENCE | {"category": category, "source": source}).source == source
    assert [checked(inputs.Forget, {"target_id": 1, "type": kind}).type for kind in TYPES] == list(TYPES)
    for kind in INTERACTION_KINDS:
        assert checked(inputs.GetRecentInteractions, {"kind": kind}).kind == kind


def test_a_command_says_about_how_large_it_is():
    texts = {"value": "é" * 2_000, "mistake": "é" * 1_000, "content": "é" * 4_000}
    assert checked(inputs.Remember, PREFERENCE | {"value": texts["value"]}).size_bytes > 4_000
    assert checked(inputs.SaveLesson, LESSON | {"mistake": texts["mistake"]}).size_bytes > 2_000
    assert checked(inputs.WriteSection, {"section": "a", "content": texts["content"]}).size_bytes > 8_000
    assert 0 < checked(inputs.Forget, {"target_id": 1}).size_bytes < 4_000


def test_a_refusal_says_what_to_do_in_words_of_the_interface():
    with pytest.raises(Invalid) as refusal:
        checked(inputs.Forget, {"target_id": "the first one"})
    assert refusal.value.message == "target_id must be a number, or an id: a ULID of 26 characters"
