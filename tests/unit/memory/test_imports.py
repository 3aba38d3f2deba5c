"""What another program's file says of the user: once, with its own time, newer over older, and never back by itself."""

from typing import Any

import pytest

from convmem.errors import Invalid
from convmem.memory import queries
from convmem.memory.imports import ImportLesson, ImportPreference, ImportSection
from convmem.memory.model import FIRST_CONFIDENCE
from tests.support.remembered import BOTH, LESSON, PREFERENCE, Remembered, folded_from, violations

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "preference": (ImportPreference, PREFERENCE),
    "lesson": (ImportLesson, LESSON),
    "section": (ImportSection, {"section": "about", "content": "lives in Bangkok"}),
}


def taken_in(store: Remembered, kind: str, **more: Any) -> dict[str, Any]:
    command, given = KINDS[kind]
    return store._commit(command, {"at": 1_000} | given | more)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_stored_once_with_the_time_of_its_file(kind: str):
    store = Remembered()
    assert taken_in(store, kind)["outcome"] == "stored"
    log = len(store.log)
    for at in (1_000, 5_000, None):
        assert taken_in(store, kind, at=at)["outcome"] == "same"
    assert len(store.log) == log
    (kept,) = store.live()
    assert kept.at_ms == 1_000
    store.prove()


def test_a_preference_has_what_its_file_says():
    store = Remembered()
    taken_in(store, "preference", confidence=0.85, source="inferred", project=" ")
    (found,) = queries.preferences(store.connection)
    assert (found.confidence, found.source, found.project) == (0.85, "inferred", None)
    assert (found.created_at, found.updated_at) == (1_000, 1_000)
    taken_in(store, "preference", key="other")
    assert {one.confidence for one in queries.preferences(store.connection)} == {0.85, FIRST_CONFIDENCE}


@pytest.mark.parametrize(("kind", "field"), [("preference", "value"), ("section", "content")])
def test_the_newer_of_two_stays(kind: str, field: str):
    store = Remembered()
    taken_in(store, kind, at=2_000)
    for at, outcome in ((1_000, "same"), (None, "same"), (3_000, "updated"), (3_000, "same")):
        assert taken_in(store, kind, at=at, **{field: "another"})["outcome"] == outcome
    store.prove()
    if kind == "preference":
        (found,) = queries.preferences(store.connection)
        assert (found.value, found.previous_value, found.updated_at) == ("another", PREFERENCE["value"], 3_000)


def test_what_was_stated_here_is_newer_than_an_old_file():
    store = Remembered()
    store.remember(value="tabs")
    assert taken_in(store, "preference")["outcome"] == "same"
    (found,) = queries.preferences(store.connection)
    assert found.value == "tabs"


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_forgotten_stays_away_also_behind_a_compaction(kind: str):
    store = Remembered()
    answer = taken_in(store, kind)
    store.delete_section("about") if kind == "section" else store.forget(answer["id"])
    assert taken_in(store, kind) == {"outcome": "stays_deleted"}
    store.connection = folded_from(list(BOTH.live(store.connection)))
    assert taken_in(store, kind)["outcome"] == "stays_deleted"
    assert taken_in(store, kind, resurrect=True)["outcome"] == "stored"
    assert taken_in(store, kind)["outcome"] == "same"
    assert violations(store.connection) == []


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("preference", {"confidence": 1.5}),
        ("preference", {"category": "none"}),
        ("preference", {"key": ""}),
        ("lesson", {"mistake": "   "}),
        ("section", {"section": "topics"}),
        ("section", {"section": "Not A Name"}),
        ("section", {"at": -1}),
    ],
)
def test_what_cannot_be_kept_is_refused(kind: str, wrong: dict[str, Any]):
    with pytest.raises(Invalid):
        taken_in(Remembered(), kind, **wrong)
