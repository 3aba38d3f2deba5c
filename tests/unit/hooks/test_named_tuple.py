"""A class made by our named tuple is told from one made by the real one by nobody who uses it."""

import typing
from typing import Any

import pytest

from convmem.hooks.named_tuple import NamedTuple


class Ours(NamedTuple):
    name: str
    size: int = 7

    def doubled(self) -> Any:
        return self._replace(size=self.size * 2)


class Theirs(typing.NamedTuple):
    name: str
    size: int = 7

    def doubled(self) -> Any:
        return self._replace(size=self.size * 2)


@pytest.mark.parametrize(
    ("given", "named"),
    [(("a",), {}), (("a", 1), {}), ((), {"name": "a"}), (("a",), {"size": 0}), ((), {"size": 1, "name": ""})],
)
def test_the_same_is_made_of_the_same(given: tuple[Any, ...], named: dict[str, Any]):
    ours, theirs = Ours(*given, **named), Theirs(*given, **named)
    assert tuple(ours) == tuple(theirs)
    assert (ours.name, ours.size) == (theirs.name, theirs.size)
    assert ours._asdict() == theirs._asdict()
    assert tuple(ours.doubled()) == tuple(theirs.doubled())
    assert type(ours.doubled()) is Ours
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert (Ours._fields, hash(ours)) == (Theirs._fields, hash(theirs))


@pytest.mark.parametrize(
    ("given", "named"),
    [((), {}), (("a", 1, 2), {}), (("a",), {"name": "b"}), (("a",), {"other": 1}), ((), {"size": 1})],
)
def test_the_same_is_refused(given: tuple[Any, ...], named: dict[str, Any]):
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError):
            kind(*given, **named)


def test_a_field_cannot_be_set():
    with pytest.raises(AttributeError):
        Ours("a").name = "b"  # type: ignore[misc]
