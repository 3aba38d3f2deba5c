"""Trees: one way through first, the rest behind it in the order of the tree, each node once whatever the file says."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from convmem.importers.trees import walked


def shown(parents: dict[str, str | None], leaf: str | None = None, times: dict[str, int] | None = None) -> list[str]:
    found = walked(list(parents), parents, {}, leaf, lambda node: (times or {}).get(node))
    return [f"{step.node}*" if step.is_branch else step.node for step in found]


TREE: dict[str, str | None] = {"r": None, "a": "r", "b": "a", "c": "a", "d": "c", "e": "b"}


def test_the_way_to_the_leaf_comes_first_and_the_rest_in_the_order_of_the_tree():
    assert shown(TREE, "d") == ["r", "a", "c", "d", "b*", "e*"]
    assert shown(TREE, "e") == ["r", "a", "b", "e", "c*", "d*"]
    assert shown(TREE, "a") == ["r", "a", "b*", "e*", "c*", "d*"]


def test_without_a_leaf_it_is_the_newest():
    assert shown(TREE, times={"e": 9, "d": 3})[:4] == ["r", "a", "b", "e"]
    assert shown(TREE, "nowhere", times={"e": 1, "d": 3})[:4] == ["r", "a", "c", "d"]
    assert shown(TREE)[-1] == "d*", "of equals the last one of the file"


def test_children_come_as_the_file_says():
    parents = {"r": None, "a": "r", "b": "r", "c": "r", "d": "r"}
    found = walked(list(parents), parents, {"r": ["c", "a", "b", "x"]}, "d", lambda node: None)
    assert [step.node for step in found] == ["r", "d", "c", "a", "b"]


def test_a_chain_of_any_depth_and_a_circle_end():
    chain = {str(number): str(number - 1) if number else None for number in range(20_000)}
    assert shown(chain, "19999") == list(chain)
    assert sorted(shown({"a": "b", "b": "a", "c": "c"}, "a")) == ["a", "b", "c*"]
    assert shown({}) == []


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.sampled_from("abcdefghx")), st.sampled_from("abxz"))
def test_every_node_is_there_once(parents: dict[str, str | None], leaf: str):
    found = walked(list(parents), parents, {}, leaf, lambda node: None)
    assert sorted(step.node for step in found) == sorted(parents)
    on_way = [step.node for step in found if not step.is_branch]
    assert [step.is_branch for step in found] == sorted(step.is_branch for step in found)
    assert all(parents[node] == before for before, node in pairwise(on_way))
