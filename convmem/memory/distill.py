"""What a person's captured interactions come to: two sections of the profile, made by counting, without a model.

    usage_stats   how many prompts, tool calls and errors, on which days, with which tools, where
    topics        the words most prompts hold (topics.py)

Only what stays is counted: not what this run prunes. And nothing is said that would read differently an hour later. So
a second run finds what the first one wrote, and writes nothing.

Whoever runs it hands over the messages of each kind by rising sequence, slice by slice: `see` all of them once, then
`see_again` the prompts. Names and sessions are counted in bounded memory, like the words.
"""

import hashlib
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta

import apsw

from convmem.limits import (
    DISTILL_SLICE_MESSAGES,
    DISTINCT_COUNTED_MAX,
    KEYWORDS_MAX,
    NAMES_COUNTED_MAX,
    SECTION_CODE_POINTS_MAX,
    USAGE_ENTRIES_MAX,
    USAGE_ENTRY_CODE_POINTS_MAX,
)
from convmem.memory.model import DISTILLED_SECTIONS, TOPICS, USAGE_STATS
from convmem.memory.prune import is_past
from convmem.memory.topics import Tally, Topics
from convmem.messages import queries
from convmem.messages.model import CAPTURE_KINDS, Message

SECTIONS = DISTILLED_SECTIONS
PROMPT = "prompt"
# What one and many of a kind are called.
NAMED: Mapping[str, tuple[str, str]] = {
    PROMPT: ("prompt", "prompts"),
    "tool_call": ("tool call", "tool calls"),
    "error": ("error", "errors"),
}
_DAY_MS = 24 * 3600 * 1000
_HOUR_MS = 3600 * 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).date()
_LAST_DAY = (date.max - _EPOCH).days
BUSIEST_HOURS = 3


def piece(connection: apsw.Connection, kind: str, after: int, through: int) -> list[Message]:
    """The next captured messages of a kind behind one sequence and up to another, oldest first; empty at the end."""
    where = "WHERE capture_kind = ? AND sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"
    return list(queries.read_messages(connection, where, (kind, after, through, DISTILL_SLICE_MESSAGES)))


class Distinct:
    """How many different texts there were, as far as can be counted."""

    def __init__(self, texts_max: int = DISTINCT_COUNTED_MAX) -> None:
        self._seen: set[int] = set()
        self._texts_max = texts_max

    def add(self, text: str) -> None:
        """One more text, known or not; its hash is remembered."""
        if len(self._seen) < self._texts_max:
            self._seen.add(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()))

    def __str__(self) -> str:
        return f"{len(self._seen):,}" + (" or more" if len(self._seen) >= self._texts_max else "")

    def __len__(self) -> int:
        return len(self._seen)


class Usage:
    """What is counted of all messages that stay."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self._days: Counter[int] = Counter()
        self._hours: Counter[int] = Counter()
        self._sessions = Distinct()
        self._tools, self._directories, self._projects = (Tally(NAMES_COUNTED_MAX) for _ in range(3))

    def add(self, message: Message) -> None:
        """Count a captured message."""
        capture = message.capture
        assert capture is not None
        self.kinds[capture.kind] += 1
        self._sessions.add(message.session_id)
        if capture.kind == PROMPT:
            self._days[min(message.timestamp // _DAY_MS, _LAST_DAY)] += 1
            self._hours[message.timestamp % _DAY_MS // _HOUR_MS] += 1
        named = (self._tools, capture.tool), (self._directories, capture.directory)
        for tally, name in (*named, (self._projects, message.metadata.project)):
            if name is not None and (shown := plain(name)):
                tally.add((shown,))

    def lines(self) -> Iterator[str]:
        """What there is to say, one fact a line; nothing if nothing was captured."""
        if not self.kinds:
            return
        yield f"{count_of_kinds(self.kinds)}, in {self._sessions} session{'s' * (len(self._sessions) != 1)}"
        if self._days:
            yield f"Days with prompts: {len(self._days):,}, {_date(min(self._days))} to {_date(max(self._days))}"
            busiest = sorted(self._hours, key=lambda hour: (-self._hours[hour], hour))[:BUSIEST_HOURS]
            yield f"Busiest hours (UTC): {', '.join(f'{hour:02}' for hour in busiest)}"
        yield from _named("Tools", self._tools, _cut)
        yield from _named("Projects", self._projects, _cut)
        yield from _named("Directories", self._directories, _cut_front)


class Distillation:
    """One run: what was seen so far, and what is to be written and taken away."""

    def __init__(self, before_ms: int) -> None:
        """What was said before `before_ms`, in ms since the epoch, has had its time."""
        self.before_ms = before_ms
        self.pruned: Counter[str] = Counter()
        # The sequences of what is to go: a million of them are eight megabytes.
        self.prunable = array("q")
        self._usage = Usage()
        self._topics = Topics()

    @property
    def counted(self) -> Mapping[str, int]:
        """How many messages of each kind stay."""
        return self._usage.kinds

    def see(self, messages: Iterable[Message]) -> None:
        """Count messages, or find that their time has come."""
        for message in messages:
            assert message.capture is not None
            if is_past(message, self.before_ms):
                self.pruned[message.capture.kind] += 1
                self.prunable.append(message.sequence)
                continue
            self._usage.add(message)
            if message.capture.kind == PROMPT:
                self._topics.learn(message.content)

    def see_again(self, prompts: Iterable[Message]) -> None:
        """Count the words of prompts, once all messages have been seen."""
        for prompt in prompts:
            if not is_past(prompt, self.before_ms):
                self._topics.count(prompt.content)

    def sections(self) -> dict[str, str | None]:
        """The text of each section; None where there is nothing to say."""
        topics = [f"{topic.text}: {topic.prompts:,}" for topic in self._topics.best(KEYWORDS_MAX)]
        head = ["What prompts are about, and how many of them:"] if topics else []
        return {USAGE_STATS: _whole_lines(self._usage.lines()), TOPICS: _whole_lines([*head, *topics])}


def count_of_kinds(kinds: Mapping[str, int]) -> str:
    """3 prompts, 1 tool call, 0 errors."""
    return ", ".join(f"{kinds.get(kind, 0):,} {NAMED[kind][kinds.get(kind, 0) != 1]}" for kind in CAPTURE_KINDS)


def plain(name: str) -> str:
    """A name on one line: without what breaks lines, hides or reverses text."""
    letters = (" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in name)
    return " ".join("".join(letters).split())


def _named(title: str, tally: Tally, cut: Callable[[str], str]) -> Iterator[str]:
    ranked = sorted(tally.counts.items(), key=lambda item: (-item[1], item[0]))[:USAGE_ENTRIES_MAX]
    if ranked:
        yield f"{title}: " + ", ".join(f"{cut(name)} {count:,}" for name, count in ranked)


def _cut(name: str) -> str:
    return name if len(name) <= USAGE_ENTRY_CODE_POINTS_MAX else name[: USAGE_ENTRY_CODE_POINTS_MAX - 1] + "…"


def _cut_front(path: str) -> str:
    """Of a path the end says more."""
    return path if len(path) <= USAGE_ENTRY_CODE_POINTS_MAX else "…" + path[1 - USAGE_ENTRY_CODE_POINTS_MAX :]


def _date(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()


def _whole_lines(lines: Iterable[str]) -> str | None:
    """As many of the lines as a section takes."""
    taken: list[str] = []
    for line in lines:
        if sum(map(len, taken)) + len(taken) + len(line) > SECTION_CODE_POINTS_MAX:
            break
        taken.append(line)
    return "\n".join(taken) or None
