"""ordering: targets stand first as far as there is such an order, and nothing else is moved for nothing."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from convmem.importers.ordering import targets_first

NAMES = "abcdef"
GRAPHS = st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from([*NAMES, "nobody"]), max_size=4))


def reachable(graph: dict[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    todo = list(graph.get(start, ()))
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(graph.get(name, ()))
    return found


@given(GRAPHS, st.permutations(NAMES))
def test_a_target_stands_first_unless_both_are_in_one_circle(graph: dict[str, list[str]], names: list[str]):
    order = targets_first(names, graph)
    assert sorted(order) == sorted(names)
    for name in names:
        for target in set(graph.get(name, ())) & set(names):
            if name not in reachable(graph, target):
                assert order.index(target) < order.index(name)
            else:
                assert (order.index(target) < order.index(name)) == (names.index(target) < names.index(name))


def test_what_points_at_nothing_stays_where_it_was_given():
    for names in permutations("abc"):
        assert targets_first(names, {}) == list(names)


def test_a_chain_may_be_longer_than_the_stack_is_deep():
    names = [str(number) for number in range(50_000)]
    chain = {name: [str(int(name) + 1)] for name in names}
    assert targets_first(names, chain) == names[::-1]
