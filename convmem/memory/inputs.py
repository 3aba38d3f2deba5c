"""What a caller may ask of memory: checked once, here, so that everything behind it can rely on it.

An empty project is no project: models fill optional arguments with empty texts. The descriptions are short because a
model reads them with every turn.
"""

from typing import Annotated, Any

from pydantic import Field, model_validator

from convmem.inputs import Input
from convmem.limits import HISTORY_HITS_DEFAULT, INTERACTIONS_LIMIT_DEFAULT, RECALL_LIMIT_DEFAULT
from convmem.memory import fields
from convmem.memory.model import Category, InteractionKind, Source, Type

OptionalProject = Annotated[fields.Project | None, fields.ABSENT_IF_BLANK]


class Remember(Input):
    """Store a preference, or state a known one again."""

    category: Category = Field(description="Its kind.")
    key: fields.Key = Field(description="What it is about; same key updates.")
    value: fields.Value = Field(description="What the user prefers.")
    project: OptionalProject = Field(default=None, description="Its project.")
    source: Source | None = Field(default=None, description="Default explicit.")

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + len(self.value.encode())


class SaveLesson(Input):
    """Store what was learned from a mistake."""

    situation: fields.LessonText = Field(description="When it applies.")
    mistake: fields.LessonText = Field(description="What went wrong.")
    correction: fields.LessonText = Field(description="What to do instead.")
    project: OptionalProject = Field(default=None, description="Its project.")

    @property
    def size_bytes(self) -> int:
        texts = (self.situation, self.mistake, self.correction)
        return super().size_bytes + sum(len(text.encode()) for text in texts)


class Forget(Input):
    """Take a preference, a lesson or a captured message away."""

    target_id: fields.TargetId = Field(description="Number or id.")
    type: Type | None = Field(default=None, description="Guard: its type.")

    @property
    def number(self) -> int | None:
        """The number that is meant, or None for an id; an id may consist of digits alone, but it is longer."""
        return int(self.target_id) if fields.NUMBER.fullmatch(self.target_id) else None


class WriteSection(Input):
    """Write a section of the profile, whole."""

    section: fields.SectionName = Field(description="Its name: a-z, 0-9, _; max 64.")
    content: fields.Content = Field(description="Its text.")
    replaces: str | None = Field(default=None, description="SHA-256 of the text it replaces, of an empty one if none.")

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + len(self.content.encode())


class DeleteSection(Input):
    """Take a section of the profile away."""

    section: fields.SectionName = Field(description="Its name.")


class ReadSection(Input):
    """Read a section of the profile, whole."""

    section: fields.SectionName = Field(description="Its name.")


class Recall(Input):
    """Find what is known about a topic."""

    topic: fields.Topic = Field(description="Plain words.")
    limit: fields.RecallLimit = Field(default=RECALL_LIMIT_DEFAULT, description="Entries in all.")
    project: OptionalProject = Field(default=None, description="This project's first.")


class GetProfile(Input):
    """Read the profile of the user."""

    project: OptionalProject = Field(default=None, description="This project's first.")


class SearchHistory(Input):
    """Find what the user asked before."""

    query: fields.Topic = Field(description="Plain text.")
    limit: fields.HistoryLimit = Field(default=HISTORY_HITS_DEFAULT, description="How many.")
    project: OptionalProject = Field(default=None, description="Filter.")


class MemoryStats(Input):
    """How much is remembered."""


class GetRecentInteractions(Input):
    """Read what hooks captured last."""

    limit: fields.InteractionsLimit = Field(default=INTERACTIONS_LIMIT_DEFAULT, description="How many.")
    kind: InteractionKind | None = Field(default=None, description="Filter.")


class ExportMemory(Input):
    """Write what is remembered to a file."""

    include_interactions: bool = Field(default=False, description="Also what hooks captured.")
    filename: fields.FileName | None = Field(default=None, description="NAME.json; default made from the time.")

    @model_validator(mode="before")
    @classmethod
    def _other_spelling(cls, given: Any) -> Any:
        """includeInteractions is the same argument; both at once are refused as two."""
        if not isinstance(given, dict) or "includeInteractions" not in given or "include_interactions" in given:
            return given
        renamed = {name: value for name, value in given.items() if name != "includeInteractions"}
        included = given["includeInteractions"]
        return renamed if included is None else {**renamed, "include_interactions": included}
