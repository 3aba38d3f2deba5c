"""What an import has done, in numbers and in words: of all, and of each conversation.

Nothing that was read is left out of it: each record has an outcome, and what did not become a record is named with the
reason.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from convmem.errors import Stopping
from convmem.importers.model import Entry, Notes
from convmem.limits import BUSY_RETRY_MS

# The outcomes of a record, in the order in which they are told.
OUTCOMES = ("stored", "updated", "same", "stays_deleted", "refused")
TITLE_CODE_POINTS_MAX = 200


@dataclass
class Conversation:
    """One conversation: how many records were read, how many of them were not wanted, and the outcomes."""

    format: str
    where: str
    title: str | None
    read: int = 0
    left_out: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def facts(self) -> dict[str, Any]:
        """The same for programs."""
        title = {} if self.title is None else {"title": self.title[:TITLE_CODE_POINTS_MAX]}
        named = {"format": self.format, "where": self.where, **title, "read": self.read, "left_out": self.left_out}
        return {**named, **{outcome: self.outcomes[outcome] for outcome in OUTCOMES}}


@dataclass
class Report:
    """All of it."""

    notes: Notes = field(default_factory=Notes)
    conversations: list[Conversation] = field(default_factory=list)
    links_missing: int = 0
    is_stopped: bool = False

    def stop(self) -> None:
        """Nothing more is to be read. May be called on any thread."""
        self.is_stopped = True

    def refuse_if_stopped(self) -> None:
        """Stopping once nothing more is to be read; asked for each source and each record."""
        if self.is_stopped:
            raise Stopping("the import was ended", retry_after_ms=BUSY_RETRY_MS)

    def begin(self, format_: str, entry: Entry) -> Conversation:
        """A conversation whose records come now."""
        self.conversations.append(Conversation(format_, entry.where, entry.title))
        return self.conversations[-1]

    def note(self, conversation: Conversation, record: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
        """What came of a record."""
        conversation.outcomes[outcome["outcome"]] += 1
        self.links_missing += outcome.get("links_missing", 0)
        if outcome["outcome"] == "refused":
            which = record.get("id") or record.get("key") or record.get("section") or record["type"]
            self.notes.skip(f"{conversation.where}: {which}", f"{outcome['code']}: {outcome['message']}")

    @property
    def is_partial(self) -> bool:
        """True if something that should have become a record did not."""
        return self.notes.skipped_count > 0

    def facts(self, *, with_conversations: bool) -> dict[str, Any]:
        """The same for programs."""
        total: Counter[str] = Counter()
        for one in self.conversations:
            total += one.outcomes
        notes = self.notes
        facts: dict[str, Any] = {
            "formats": dict(Counter(one.format for one in self.conversations)),
            "conversations": len(self.conversations),
            "read": sum(one.read for one in self.conversations),
            "left_out": sum(one.left_out for one in self.conversations),
            **{outcome: total[outcome] for outcome in OUTCOMES},
            "links_missing": self.links_missing,
            "skipped": notes.skipped_count,
            "skipped_list": [one._asdict() for one in notes.skipped],
            "passed_over": dict(notes.passed_over),
            "kept_raw": dict(notes.unknown),
        }
        if with_conversations:
            facts["conversation_list"] = [one.facts() for one in self.conversations]
        return facts
