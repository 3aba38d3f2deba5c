"""Whatever is remembered, forgotten, compacted and opened again: the index is the fold of its log, agrees with plain
dictionaries, gives no number twice, and comes back whole from a file.
"""

from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convmem.errors import ConvmemError, Invalid, NotFound
from convmem.inputs import checked
from convmem.limits import PROFILE_SECTIONS_MAX
from convmem.memory import queries
from convmem.memory.fields import is_blank
from convmem.memory.inputs import DeleteSection, Forget, Remember, SaveLesson, WriteSection
from convmem.memory.model import SOURCES
from convmem.messages import queries as messages
from convmem.messages.fingerprints import mark
from convmem.messages.inputs import CaptureEvent
from convmem.messages.model import Message
from convmem.transfer.intake import Plan
from tests.support.folded import tables
from tests.support.manual_clock import ManualClock
from tests.support.remembered import BOTH, exported, folded_from, taken, violations
from tests.support.stores import open_store
from tests.support.texts import texts

pytestmark = pytest.mark.slow

visible = texts.filter(lambda text: not is_blank(text))
few = st.sampled_from(["a", "A", "é", "e\u0301", "🟡\0", "x\u2028y"])
keys = st.sampled_from(["k", "K", "k ", "ключ"])
projects = st.sampled_from([None, None, "p", "q"])
categories = st.sampled_from(["other", "language"])
sections = st.sampled_from(["goals", "style", "usage_stats"])
numbers = st.integers(0, 12)
types = st.none() | st.sampled_from(["preference", "lesson", "interaction"])
remembered = st.tuples(
    st.just("remember"), categories, keys, few | visible, projects, st.none() | st.sampled_from(SOURCES)
)
learned = st.tuples(st.just("learn"), few, few | visible, few, projects)
forgotten = st.tuples(st.just("forget"), numbers, types, st.booleans())
written = st.tuples(st.just("write"), sections, few | visible)
deleted = st.tuples(st.just("delete"), sections)
captured = st.tuples(st.just("capture"), few | visible)
moved = st.tuples(st.just("move"), st.integers(-5_000, 5_000))
said = st.one_of(remembered, remembered, remembered, learned, forgotten, forgotten, written, deleted, captured, moved)
steps = st.lists(said | st.sampled_from([("compact",), ("reopen",), ("rebuild",)]), max_size=25)
histories = st.lists(said, max_size=12)


class Model:
    """The same rules on dictionaries, beside a store with nothing above it."""

    def __init__(self, dice: int = 7) -> None:
        self.opened = open_store(domain=BOTH, clock=ManualClock(bits=dice))
        self.preferences: dict[Any, dict[str, Any]] = {}
        self.lessons: dict[Any, dict[str, Any]] = {}
        self.sections: dict[str, str] = {}
        self.captured: dict[int, str] = {}
        self.ids: dict[int, str] = {}
        self.events = 0

    @property
    def connection(self) -> apsw.Connection:
        return self.opened.connection

    def commit(self, kind: Any, /, **arguments: Any) -> Any:
        (answer,) = self.opened.commit(checked(kind, arguments))
        return answer

    def named(self, answer: Any, record_id: str) -> int:
        """The number of something new: above every one that was ever given, and so is its id."""
        number = int(answer["number"])
        assert number == max(self.ids, default=0) + 1
        assert record_id > max(self.ids.values(), default="")
        self.ids[number] = record_id
        return number

    def remember(self, category: str, key: str, value: str, project: str | None, source: str | None) -> None:
        answer = self.commit(Remember, category=category, key=key, value=value, project=project, source=source)
        name = (project, category, key)
        known = self.preferences.get(name)
        if known is None:
            number = self.named(answer, answer["id"])
            self.preferences[name] = {"number": number, "value": value, "tenths": 5, "source": source or "explicit"}
            self.preferences[name]["previous"] = None
        elif known["value"] == value:
            known |= {"tenths": min(10, known["tenths"] + 1), "source": source or known["source"]}
        else:
            source = "inferred" if source == "inferred" else "corrected"
            known |= {"previous": known["value"], "value": value, "tenths": 5, "source": source}
        expected = self.preferences[name]
        assert (answer["number"], answer["confidence"]) == (expected["number"], expected["tenths"] / 10)
        assert (answer["value"], answer["source"]) == (value, expected["source"])
        assert answer.get("previous_value") == expected["previous"]

    def learn(self, situation: str, mistake: str, correction: str, project: str | None) -> None:
        said = {"situation": situation, "mistake": mistake, "correction": correction}
        answer = self.commit(SaveLesson, **said, project=project)
        name = (project, *said.values())
        if name in self.lessons:
            assert answer == self.lessons[name] | {"replayed": True}
        else:
            self.named(answer, answer["id"])
            self.lessons[name] = answer

    def forget(self, number: int, guard: str | None, by_id: bool) -> None:
        target = self.ids.get(number, "7" + "Z" * 25) if by_id else str(number)
        answer = self.commit(Forget, target_id=target, type=guard)
        there = {known["number"]: ("preference", name) for name, known in self.preferences.items()}
        there |= {known["number"]: ("lesson", name) for name, known in self.lessons.items()}
        there |= {known: ("interaction", known) for known in self.captured}
        if number not in there:
            assert answer == {"removed": []}
            return
        kind, name = there[number]
        if guard not in (None, kind):
            assert isinstance(answer, Invalid)
            return
        ((removed),) = answer["removed"]
        assert (removed["type"], removed["number"], removed["id"]) == (kind, number, self.ids[number])
        by_kind: dict[str, Any] = {
            "preference": self.preferences,
            "lesson": self.lessons,
            "interaction": self.captured,
        }
        del by_kind[kind][name]

    def write(self, section: str, content: str) -> None:
        answer = self.commit(WriteSection, section=section, content=content)
        assert answer["changed"] == ([] if self.sections.get(section) == content else ["content"])
        self.sections[section] = content

    def delete(self, section: str) -> None:
        answer = self.commit(DeleteSection, section=section)
        assert isinstance(answer, NotFound) is (section not in self.sections)
        self.sections.pop(section, None)

    def capture(self, content: str) -> None:
        self.events += 1
        event = {"event_id": str(self.events), "kind": "prompt", "session_id": str(self.events), "content": content}
        answer = self.commit(CaptureEvent, **event)
        self.captured[self.named(answer, answer["message_id"])] = content

    def move(self, elapsed_ms: int) -> None:
        self.opened.clock.pass_ms(elapsed_ms)

    def compact(self) -> None:
        before = list(BOTH.live(self.connection))
        self.opened.compact()
        assert list(BOTH.live(self.connection)) == before
        assert not any(BOTH.waste(self.connection))

    def reopen(self) -> None:
        """As after a crash: the log and an index that may be behind."""
        disk, clock, log = self.opened.disk, self.opened.clock, self.opened.store.log
        image = self.opened.shelf.image(log.generation)
        self.opened = open_store(disk, index={log.generation: image}, clock=clock, domain=BOTH)

    def rebuild(self) -> None:
        """With no index at all: what is there is what the log says."""
        before = tables(self.connection)
        self.opened = open_store(self.opened.disk, clock=self.opened.clock, domain=BOTH)
        assert own(tables(self.connection)) == own(before)

    def prove(self) -> None:
        assert self.opened.check() == []
        found = {
            (one.project, one.category, one.key): {
                "number": one.number,
                "value": one.value,
                "tenths": round(one.confidence * 10),
                "source": one.source,
                "previous": one.previous_value,
            }
            for one in queries.preferences(self.connection)
        }
        assert found == self.preferences
        lessons = {(one.project, one.situation, one.mistake, one.correction): one.number for one in self.all_lessons()}
        assert lessons == {name: known["number"] for name, known in self.lessons.items()}
        assert {one.section: one.content for one in queries.sections(self.connection)} == self.sections
        seen = messages.captured(self.connection, kind=None, limit=100)
        assert {one.number: one.content for one in seen} == self.captured
        for one in queries.preferences(self.connection):
            assert one.updated_at >= one.created_at
            assert one.changed_sequence >= one.sequence

    def all_lessons(self) -> list[Any]:
        return list(queries.lessons(self.connection))


def own(every: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The rows of the two domains, without those of the store itself."""
    return {name: rows for name, rows in every.items() if name.startswith(("memory_", "messages_"))}


def played(history: list[Any], dice: int = 7) -> Model:
    """A store with this history, each answer held against the dictionaries."""
    model = Model(dice)
    for name, *arguments in history:
        getattr(model, name)(*arguments)
    return model


@given(steps)
@settings(derandomize=True, max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_memory_is_what_the_rules_say_whatever_happens_to_its_store(history: list[Any]) -> None:
    model = played(history)
    model.prove()
    model.rebuild()
    model.prove()


@given(first=histories, meanwhile=histories, afterwards=histories)
@settings(derandomize=True, max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_said_while_a_store_is_compacted_is_there_afterwards(
    first: list[Any], meanwhile: list[Any], afterwards: list[Any]
) -> None:
    model = played(first)
    rewrite = model.opened.rewrite()
    rewrite.prepare()
    for name, *arguments in meanwhile:
        getattr(model, name)(*arguments)
    rewrite.finish(model.opened.store)
    rewrite.clean()
    for name, *arguments in afterwards:
        getattr(model, name)(*arguments)
    model.prove()


@given(histories)
@settings(derandomize=True, max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_export_import_export_is_the_same_file(history: list[Any]) -> None:
    model = played(history)
    data = exported(model.connection)
    plan, records = taken(data, through=7, last=100)
    index = folded_from(records)
    assert plan == Plan(new=data.count(b"\n") - 1, unchanged=0, overwritten=0)
    assert violations(index) == []
    assert exported(index) == data
    given_numbers = [one for kept in records for one in [getattr(kept.event, "number", None)] if one is not None]
    assert given_numbers == list(range(101, 101 + len(model.preferences) + len(model.lessons) + len(model.captured)))
    assert fingerprints(index) == {mark_of(one) for one in messages.captured(model.connection, kind=None, limit=100)}
    assert own(tables(folded_from(list(BOTH.live(index))))) == own(tables(index)), "a compaction changes nothing"
    # And into the store that it came from: nothing is new, nothing differs.
    again, same = taken(data, model.connection, through=len(history))
    assert again == Plan(new=0, unchanged=plan.new, overwritten=0)
    assert [kept.event for kept in same] == [kept.event for kept in BOTH.live(model.connection)]


@given(histories, histories)
@settings(derandomize=True, max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_two_memories_meet_and_every_record_is_there_once(mine: list[Any], theirs: list[Any]) -> None:
    model, other = played(mine), played(theirs, dice=1 << 70)
    plan, records = taken(exported(other.connection), model.connection, "overwrite", through=100, last=100)
    index = folded_from(records)
    assert violations(index) == []
    seen = {mark_of(one) for one in messages.captured(other.connection, kind=None, limit=100)}
    assert fingerprints(index) == fingerprints(model.connection) | seen
    ((gone,),) = model.connection.execute("SELECT count(*) FROM memory_forgotten")
    assert len(records) == BOTH.records(model.connection) + plan.new + len(fingerprints(index)) + gone
    assert own(tables(folded_from(list(BOTH.live(index))))) == own(tables(index)), "a compaction changes nothing"
    names = {(one.project, one.category, one.key): one for one in queries.preferences(index)}
    assert set(names) == set(model.preferences) | set(other.preferences)
    for name, one in names.items():
        side = other if name in other.preferences else model
        assert one.value == side.preferences[name]["value"]
        if name in model.preferences:
            assert one.number == model.preferences[name]["number"]
    captured = list(messages.captured(index, kind=None, limit=100))
    assert len(captured) == len(model.captured) + len(other.captured)
    every: list[Any] = [*queries.preferences(index), *queries.lessons(index), *captured]
    assert len({one.number for one in every}) == len(every)
    ids = [one.id for one in (*queries.preference_ids(index), *queries.lesson_ids(index))]
    ids += [one.message_id for one in captured]
    assert len(set(ids)) == len(ids)


def fingerprints(connection: apsw.Connection) -> set[Any]:
    """Which events the store knows, whatever became of their messages."""
    return set(connection.execute("SELECT session, event FROM messages_fingerprint"))


def mark_of(message: Message) -> tuple[bytes, bytes]:
    """What the event of a captured message is known by."""
    assert message.capture is not None
    left = mark(message.session_id, message.capture.event_id, message.capture.kind, message.content)
    return left.session, left.event


def test_a_profile_is_full_before_and_after_a_compaction() -> None:
    model = Model()
    for number in range(PROFILE_SECTIONS_MAX):
        model.write(f"s{number}", "x")
    model.compact()
    answer = model.commit(WriteSection, section="more", content="x")
    assert isinstance(answer, ConvmemError)
    model.delete("s3")
    model.write("more", "x")


def test_text_that_was_forgotten_is_in_no_byte_of_the_log_after_a_compaction() -> None:
    model = Model()
    hidden = ("HIDDEN-VALUE", "HIDDEN-BEFORE", "HIDDEN-LESSON", "HIDDEN-SECTION", "HIDDEN-OLD", "HIDDEN-KEY")
    model.remember("other", "HIDDEN-KEY", "HIDDEN-VALUE", None, None)
    model.remember("other", "kept", "HIDDEN-BEFORE", None, None)
    model.remember("other", "kept", "between", None, None)
    model.remember("other", "kept", "now", None, None)
    model.learn("s", "HIDDEN-LESSON", "c", None)
    model.write("goals", "HIDDEN-SECTION")
    model.write("style", "HIDDEN-OLD")
    model.write("style", "now")
    model.forget(1, None, False)
    model.forget(3, None, False)
    model.delete("goals")
    assert all(text.encode() in model.opened.log() for text in hidden)
    model.compact()
    image = model.opened.shelf.image(model.opened.store.log.generation)
    for text in hidden:
        assert text.encode() not in model.opened.log()
        assert text.encode() not in image
        assert text.lower().encode() not in image
    assert b"between" in model.opened.log(), "the value before the present one is part of the preference"
    model.prove()
