"""What a store has given out: its last id and its last number. The next ones are above both, whatever is deleted.

Ids are counted where the store made them, never where a record brought one along: 7ZZZ… is a legal ULID and would end
the series. A number is local to its store, so that every event that holds one was given it here.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from convmem.domain import Domain, Event


class Made(NamedTuple):
    """The greatest of each: an empty text and 0 before the first."""

    last_id: str = ""
    last_number: int = 0

    def raised(self, other: "Made") -> "Made":
        """The greater of each."""
        return Made(max(self.last_id, other.last_id), max(self.last_number, other.last_number))


class Maker:
    """Knows where the events of these domains hold an id or a number that the store made."""

    def __init__(self, domains: Sequence[Domain]) -> None:
        self._ids = {kind: made for domain in domains for kind, made in domain.made_ids.items()}
        self._numbers = {kind: made for domain in domains for kind, made in domain.made_numbers.items()}

    def ids(self, events: Iterable[Event]) -> list[str]:
        """The ids in these events that the store made."""
        return [self._ids[type(event)](event) for event in events if type(event) in self._ids]

    def numbers(self, events: Iterable[Event]) -> list[int]:
        """The numbers in these events."""
        found = (self._numbers[type(event)](event) for event in events if type(event) in self._numbers)
        return [number for number in found if number]

    def of(self, events: Sequence[Event]) -> Made:
        """The greatest of each in these events."""
        return Made(max(self.ids(events), default=""), max(self.numbers(events), default=0))
