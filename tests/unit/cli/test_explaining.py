"""cli/explaining: scores that add up as shown, and every stage of a search by a plain name."""

import ast
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convmem.cli.explaining import STAGES, of_result, of_search, score_of
from tests.support.source import PACKAGE, tree

FIELDS = ("content", "summary", "tags", "context")
SCORES = st.lists(st.floats(min_value=0, max_value=1000), min_size=4, max_size=4)


def result(*scores: float, **more: Any) -> dict[str, Any]:
    by_field = dict(zip(FIELDS, scores, strict=True))
    matched = [name for name, score in by_field.items() if score]
    return {"score": sum(scores), "scores": by_field, "matched_fields": matched, "exact": False} | more


@given(SCORES)
def test_the_parts_of_a_score_add_up_as_they_are_shown(scores: list[float]):
    found = result(*scores)
    _, sentence = next(of_result(found))
    whole, _, parts = sentence.partition(" = ")
    shown = {name: Decimal(part) for name, part in (part.split(" ") for part in parts.split(" + "))}
    assert sum(shown.values()) == Decimal(whole) == Decimal(score_of(found))
    for name, part in shown.items():
        assert abs(float(part) - found["scores"][name]) < 0.03


def test_a_result_says_where_it_matched_and_which_neighbours_did():
    assert list(of_result(result(0, 0, 1.5, 0.25, matched_neighbours=["01A", "01B"]))) == [
        ("score", "1.75 = content 0.00 + summary 0.00 + tags 1.50 + context 0.25"),
        ("matched", "ranked, in tags, context"),
        ("neighbours", "01A 01B"),
    ]
    assert list(of_result(result(1, 0, 1, 0, exact=True)))[1:] == [("matched", "exact, in content, tags")]


def test_visits_of_one_name_are_one_stage_in_the_order_of_the_first():
    stages = [("find", 1.04), ("tail", 0.5), ("find", 2.0), ("find", 0.02)]
    assert list(of_search({"path": "index+tail"}, stages)) == [
        ("path", "index+tail"),
        ("stage", "exact, by the tables: 3.1 ms in 3 visits"),
        ("stage", "what the tables do not know yet: 0.5 ms"),
        ("stage", "together: 3.6 ms"),
    ]


def test_a_stage_of_a_newer_daemon_is_shown_by_the_name_it_gives():
    assert ("stage", "meaning: 1.0 ms") in list(of_search({"path": "index"}, [("meaning", 1.0)]))


def test_a_daemon_that_tells_no_stages_is_explained_without():
    assert list(of_search({"path": "scan"}, [])) == [("path", "scan")]


def test_every_query_of_the_search_has_a_plain_name_and_no_name_is_left_over():
    visited = {
        node.args[0].attr if isinstance(node.args[0], ast.Attribute) else node.args[0].id
        for node in ast.walk(tree(PACKAGE / "messages" / "search.py"))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"access.read", "access.search"}
        if isinstance(node.args[0], ast.Attribute | ast.Name)
    }
    assert visited == set(STAGES)
    assert len(set(STAGES.values())) == len(STAGES)


@pytest.mark.parametrize("score", [0.005, 1, 12.345, 1e6])
def test_a_score_is_shown_in_hundredths(score: float):
    assert score_of({"score": score}) == f"{round(score * 100) / 100:.2f}"
