"""An order in which a link finds what it points at: targets stand before those that point at them.

The idea: those that point at each other in a circle are one (a strongly connected component, Tarjan 1972). Between such
there is always an order, inside of one there is none, and they keep the order that they were given in.

Rejected: to take what is ready, and the first one where nothing is. It may stand before a circle and not in it, and its
link be lost for nothing.
"""

from collections.abc import Iterator, Mapping, Sequence


def targets_first(names: Sequence[str], targets: Mapping[str, Sequence[str]]) -> list[str]:
    """The names, each behind those that it points at as far as there is such an order; else as they were given."""
    given = {name: place for place, name in enumerate(names)}
    return [name for circle in _circles(given, targets) for name in sorted(circle, key=given.__getitem__)]


def _circles(given: Mapping[str, int], targets: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Those that point at each other, together; most are alone. What they point at comes before them."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    is_waiting: set[str] = set()
    for first in given:
        path = [] if first in numbers else [(first, iter(targets.get(first, ())))]
        while path:
            name, others = path[-1]
            if name not in numbers:
                numbers[name] = lowest[name] = len(numbers)
                waiting.append(name)
                is_waiting.add(name)
            for other in others:
                if other not in given:
                    continue
                if other not in numbers:
                    path.append((other, iter(targets.get(other, ()))))
                    break
                if other in is_waiting:
                    lowest[name] = min(lowest[name], numbers[other])
            else:
                path.pop()
                if path:
                    before = path[-1][0]
                    lowest[before] = min(lowest[before], lowest[name])
                if lowest[name] == numbers[name]:
                    circle = [waiting.pop()]
                    while circle[-1] != name:
                        circle.append(waiting.pop())
                    is_waiting.difference_update(circle)
                    yield circle
