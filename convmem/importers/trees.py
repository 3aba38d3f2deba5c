"""Conversations that are trees: the way from the first message to the last one first, then what is not on it.

Every turn that was edited or asked again begins a branch. Who reads a conversation reads one way through it; the rest
is kept behind it, in the order of the tree, and never between. Files may hold circles and chains of any depth, so
nothing here recurses, and no node is met twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """A node, and whether it is off the way."""

    node: str
    is_branch: bool


def walked(
    nodes: Sequence[str],
    parents: Mapping[str, str | None],
    children: Mapping[str, Sequence[str]],
    leaf: str | None,
    time_of: Callable[[str], int | None],
) -> list[Step]:
    """All nodes, the way to `leaf` first. Without one that is there it is the way to the newest node that has no
    children, of equals to the last one.

    `parents` lead up; `children` say in which order nodes of one parent come, the others come as in `nodes`.
    """
    below: dict[str | None, list[str]] = {}
    for node in nodes:
        parent = parents.get(node)
        below.setdefault(parent if parent in parents else None, []).append(node)
    for parent, known in below.items():
        places = {child: place for place, child in enumerate(children.get(parent or "", ()))}
        known.sort(key=lambda child, places=places: places.get(child, len(places)))  # type: ignore[misc]
    if leaf is None or leaf not in parents:
        leaf = _newest(nodes, below, time_of)
    way = list(_way(leaf, parents))
    is_on_way = set(way)
    others = [node for node in _down(nodes, below) if node not in is_on_way]
    return [*(Step(node, is_branch=False) for node in way), *(Step(node, is_branch=True) for node in others)]


def _newest(
    nodes: Sequence[str], below: Mapping[str | None, Sequence[str]], time_of: Callable[[str], int | None]
) -> str | None:
    """Without any node that has no children all of them stand in circles: then the last one."""
    leaves = [node for node in nodes if node not in below]
    newest: tuple[int, int] = (-1, -1)
    found = nodes[-1] if nodes else None
    for place, node in enumerate(leaves):
        rank = (time_of(node) or 0, place)
        if rank > newest:
            newest, found = rank, node
    return found


def _way(leaf: str | None, parents: Mapping[str, str | None]) -> Iterator[str]:
    """From the first node down to this one."""
    way: dict[str, None] = {}
    node = leaf
    while node is not None and node in parents and node not in way:
        way[node] = None
        node = parents[node]
    return reversed(list(way))


def _down(nodes: Sequence[str], below: Mapping[str | None, Sequence[str]]) -> Iterator[str]:
    """Every node, parents before children; those in circles, to which no way leads, behind the others."""
    met: set[str] = set()
    waiting = list(reversed(below.get(None, ())))
    rest = iter(nodes)
    while True:
        while waiting:
            node = waiting.pop()
            if node not in met:
                met.add(node)
                yield node
                waiting += reversed(below.get(node, ()))
        left = next((node for node in rest if node not in met), None)
        if left is None:
            return
        waiting.append(left)
