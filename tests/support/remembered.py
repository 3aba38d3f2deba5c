"""The domains of messages and memory without a store: what folded.py does for the one, for both with one counter."""

from typing import Any

import apsw
import msgspec

from convmem import memory, messages
from convmem.domain import Domain, Event, Kept, Place, Waste
from convmem.inputs import checked
from convmem.memory.inputs import DeleteSection, Forget, Remember, SaveLesson, WriteSection
from convmem.messages.imports import ImportMessage
from convmem.messages.inputs import CaptureEvent, DeleteMessage, WriteMessage
from convmem.store.compaction import live
from convmem.transfer.export import export
from convmem.transfer.intake import Intake, Plan, Policy
from convmem.transfer.scan import scan
from tests.support.filed import file
from tests.support.folded import Folded, empty_index
from tests.support.manual_clock import START_MS

DOMAINS = [messages.DOMAIN, memory.DOMAIN]
DECIDERS = {kind: decide for domain in DOMAINS for kind, decide in domain.deciders.items()}
APPLIERS = {kind: apply for domain in DOMAINS for kind, apply in domain.appliers.items()}
TAGS = {str(kind.__struct_config__.tag): kind for kind in APPLIERS}

# Both as one, for what takes a single domain.
BOTH = Domain(
    name="both",
    create="".join(domain.create for domain in DOMAINS),
    deciders=DECIDERS,
    appliers=APPLIERS,
    made_ids={kind: made for domain in DOMAINS for kind, made in domain.made_ids.items()},
    made_numbers={kind: made for domain in DOMAINS for kind, made in domain.made_numbers.items()},
    live=lambda connection: live(connection, DOMAINS),
    records=lambda connection: sum(domain.records(connection) for domain in DOMAINS),
    record_types=tuple(kind for domain in DOMAINS for kind in domain.record_types),
    waste=lambda connection: Waste(*map(sum, zip(*(domain.waste(connection) for domain in DOMAINS), strict=True))),
    check=lambda connection: violations(connection),
)

PREFERENCE = {"category": "coding_pref", "key": "indent", "value": "four spaces"}
LESSON = {"situation": "before a release", "mistake": "tests were skipped", "correction": "run them"}


def decoded(encoded: bytes) -> Event:
    """An event back from its bytes."""
    found: Event = msgspec.msgpack.decode(encoded, type=TAGS[msgspec.msgpack.decode(encoded)["type"]])
    return found


class Remembered(Folded):
    """An Access over one connection in memory, with the commands of memory."""

    domain = BOTH
    decode = staticmethod(decoded)

    def live(self) -> list[Kept]:
        """Every live record of both."""
        return list(live(self.connection, DOMAINS))

    def remember(self, **more: Any) -> dict[str, Any]:
        """State a preference; the answer."""
        return self._commit(Remember, PREFERENCE | more)

    def save_lesson(self, **more: Any) -> dict[str, Any]:
        """Save a lesson; the answer."""
        return self._commit(SaveLesson, LESSON | more)

    def forget(self, target_id: Any, **more: Any) -> dict[str, Any]:
        """Forget what bears this number or id; the answer."""
        return self._commit(Forget, {"target_id": target_id} | more)

    def write_section(self, section: str, content: str) -> dict[str, Any]:
        """Write a section of the profile; the answer."""
        return self._commit(WriteSection, {"section": section, "content": content})

    def delete_section(self, section: str) -> dict[str, Any]:
        """Delete a section of the profile; the answer."""
        return self._commit(DeleteSection, {"section": section})

    def write_message(self, content: str, **more: Any) -> dict[str, Any]:
        """Write an ordinary message; the answer."""
        return self._commit(WriteMessage, {"session_id": "s", "role": "user", "content": content} | more)

    def delete_message(self, message_id: str) -> dict[str, Any]:
        """Delete a message; the answer."""
        return self._commit(DeleteMessage, {"message_id": message_id})

    def capture(self, content: str, **more: Any) -> dict[str, Any]:
        """Store what a hook saw; the answer, with id and number."""
        seen = {"event_id": f"e{self.sequence}", "kind": "prompt", "session_id": "hook", "content": content}
        return self._commit(CaptureEvent, seen | more)

    def import_message(self, message_id: str = "m", content: str = "said elsewhere", **more: Any) -> dict[str, Any]:
        """Take in a message of another program; the answer."""
        given = {"format": "chatgpt", "conversation": "c", "session_id": "chatgpt:c", "role": "user", "at": 1_000}
        return self._commit(ImportMessage, given | {"id": message_id, "content": content} | more)

    def _commit(self, kind: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self.commit(checked(kind, arguments))
        return answer


def violations(connection: apsw.Connection) -> list[str]:
    """What is wrong with the tables of both."""
    return [violation for domain in DOMAINS for violation in domain.check(connection)]


def exported(connection: apsw.Connection, at_ms: int = START_MS) -> bytes:
    """The whole export of an index of both."""
    return b"".join(export(connection, DOMAINS, at_ms))


def taken(
    data: bytes, connection: apsw.Connection | None = None, policy: Policy = "reject", through: int = 0, last: int = 0
) -> tuple[Plan, list[Kept]]:
    """What an import would do with a store of both, and every record of its next generation."""
    connection = connection or empty_index(BOTH)
    scanned = scan(file(data), DOMAINS, apsw.Connection(":memory:"), lambda done, total: None)
    intake = Intake(scanned, DOMAINS, policy, lambda done, total: None)
    return intake.meet(connection), list(intake.records(connection, through, last))


def folded_from(records: list[Kept]) -> apsw.Connection:
    """A fresh index of a state, events read back from their bytes."""
    connection = empty_index(BOTH)
    for kept in records:
        event = decoded(msgspec.msgpack.encode(kept.event))
        APPLIERS[type(event)](connection, event, Place(kept.sequence, kept.at_ms, kept.origin))
    return connection


ORIGIN_FACTS = {"device": "laptop", "transport": "http", "client": "tester/1"}


def preference_record(**more: Any) -> dict[str, Any]:
    """A record of a preference, every field as an export writes it."""
    plain = {
        "type": "preference",
        "id": "01BX5ZZKBK000000000000000A",
        **PREFERENCE,
        "confidence": 0.6,
        "source": "corrected",
        "previous_value": "tabs",
        "project": "p",
        "created_at": START_MS,
        "updated_at": START_MS + 5,
        "origin": ORIGIN_FACTS,
    }
    return plain | more


def lesson_record(**more: Any) -> dict[str, Any]:
    """A record of a lesson, likewise."""
    plain = {"type": "lesson", "id": "01BX5ZZKBK000000000000000A", **LESSON, "project": "p", "created_at": START_MS}
    return plain | {"origin": ORIGIN_FACTS} | more


def section_record(**more: Any) -> dict[str, Any]:
    """A record of a section of the profile, likewise."""
    times = {"created_at": START_MS, "updated_at": START_MS + 5}
    return {"type": "profile", "section": "goals", "content": "ship it", **times, "origin": ORIGIN_FACTS} | more
