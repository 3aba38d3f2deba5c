"""A named tuple for a process that has no time: what `typing.NamedTuple` makes of the same class, as far as it is used.

Importing `typing` takes a quarter of the time that a hook has beyond the start of the interpreter, and each class that
it makes takes a part of a millisecond more, since its methods are compiled from text. A type checker is shown the real
one, so the modules read as all others do:

    TYPE_CHECKING = False
    if TYPE_CHECKING:
        from typing import NamedTuple
    else:
        from convmem.hooks.named_tuple import NamedTuple

`TYPE_CHECKING` is a name that type checkers know, wherever it comes from.
"""

from __future__ import annotations

from operator import itemgetter


class NamedTuple(tuple[object, ...]):
    """The base of a class whose annotations name its fields; what a class says of a field is its default."""

    __slots__ = ()
    _fields: tuple[str, ...]
    _defaults: dict[str, object]

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)
        cls._defaults = {name: vars(cls)[name] for name in cls._fields if name in vars(cls)}
        for index, name in enumerate(cls._fields):
            setattr(cls, name, property(itemgetter(index)))

    def __new__(cls, *given: object, **named: object) -> NamedTuple:
        left = cls._fields[len(given) :]
        values = cls._defaults | named
        if len(given) > len(cls._fields) or not named.keys() <= set(left) or not values.keys() >= set(left):
            raise TypeError(f"{cls.__name__} takes {', '.join(cls._fields)}")
        return tuple.__new__(cls, (*given, *(values[name] for name in left)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

    def _asdict(self) -> dict[str, object]:
        return dict(zip(self._fields, self, strict=True))

    def _replace(self, **named: object) -> NamedTuple:
        return type(self)(**(self._asdict() | named))
