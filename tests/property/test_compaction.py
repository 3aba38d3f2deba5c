"""Compaction changes nothing that can be asked: of two stores with one history one is compacted half-way, and they
agree.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.errors import ConvmemError
from convmem.inputs import checked
from convmem.messages import DOMAIN, kept
from convmem.messages.tools import TOOLS
from convmem.store import generation
from convmem.store.log import NAME
from tests.support.stores import Opened, open_store
from tests.support.texts import names, texts

pytestmark = pytest.mark.slow

INPUTS = {tool.name: tool.input for tool in TOOLS}
# What compaction takes away: counts of what is dead, and references to what is gone.
VAIN = {"messages_total", "messages_gone", "messages_relation", "messages_source", "store_state"}

metadata = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(names, max_size=3),
        "summary": texts,
        "project": st.sampled_from(["", "p", "q"]),
        "tool_call_id": names,
        "importance": st.integers(0, 100),
        "memory_kind": st.sampled_from(["semantic", "summary"]),
        "memory_tier": st.sampled_from(["short", "long"]),
    },
)
numbers = st.integers(0, 11)
keys = st.none() | st.sampled_from("kl")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write_message"), texts, metadata, st.lists(numbers, max_size=3), keys),
        st.tuples(st.just("update_message"), numbers, st.none() | texts, metadata, st.lists(numbers, max_size=2)),
        st.tuples(st.just("delete_message"), numbers),
        st.tuples(st.just("clock"), st.integers(-5_000, 5_000)),
    ),
    max_size=12,
)


class Store:
    """A store of messages with nothing above it, and the ids that it has given."""

    def __init__(self) -> None:
        self.opened = open_store(domain=DOMAIN)
        self.ids: list[str] = []
        self.answers: list[Any] = []

    def pick(self, number: int) -> str:
        return self.ids[number % len(self.ids)] if self.ids else "7" * 26

    def links(self, targets: list[int]) -> dict[str, Any]:
        picked = [self.pick(number) for number in targets]
        return {"relations": [{"type": "r", "message_id": one} for one in picked], "source_message_ids": picked[:1]}

    def play(self, history: list[Any]) -> None:
        """Do it all; what is refused is an answer too."""
        for what, *rest in history:
            if what == "clock":
                self.opened.clock.pass_ms(rest[0])
                continue
            (answer,) = self.opened.commit(checked(INPUTS[what], self.arguments(what, *rest)))
            is_refusal = isinstance(answer, ConvmemError)
            self.answers.append(answer.facts() if is_refusal else answer)
            if what == "write_message" and not is_refusal:
                self.ids.append(answer["message_id"])

    def arguments(self, what: str, *rest: Any) -> dict[str, Any]:
        if what == "delete_message":
            return {"message_id": self.pick(rest[0])}
        if what == "update_message":
            number, content, given_metadata, targets = rest
            links = self.links(targets) if targets else {}
            return {"message_id": self.pick(number), "metadata": given_metadata | links} | (
                {} if content is None else {"content": content}
            )
        content, given_metadata, targets, key = rest
        said = {"session_id": f"s{len(content) % 2}", "role": "user", "content": content}
        return said | {"metadata": given_metadata | self.links(targets)} | ({"idempotency_key": key} if key else {})


def rows(opened: Opened) -> dict[str, list[Any]]:
    """Every row that compaction must keep."""
    listing = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    tables = [str(name) for (name,) in opened.connection.execute(listing)]
    found = {
        name: sorted(opened.connection.execute(f"SELECT * FROM {name}"), key=repr)
        for name in tables
        if name not in VAIN
    }
    # How many references a message has, dangling ones among them, is said by its live form.
    columns = [row[1] for row in opened.connection.execute("PRAGMA table_info(messages_message)")]
    at = columns.index("links")
    found["messages_message"] = [row[:at] + row[at + 1 :] for row in found["messages_message"]]
    return found


@given(first=steps, meanwhile=steps, afterwards=steps)
@settings(derandomize=True, max_examples=50, deadline=None)
def test_a_compacted_store_answers_like_one_that_never_was(
    first: list[Any], meanwhile: list[Any], afterwards: list[Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation, "STATE_FRAME_BYTES", 300)
        compacted, plain = Store(), Store()
        for store in (compacted, plain):
            store.play(first)
        rewrite = compacted.opened.rewrite()
        rewrite.prepare()
        for store in (compacted, plain):
            store.play(meanwhile)
        rewrite.finish(compacted.opened.store)
        rewrite.clean()
        for store in (compacted, plain):
            store.play(afterwards)
    assert compacted.answers == plain.answers
    # Also what a start makes of the log alone.
    for opened in (compacted.opened, open_store(compacted.opened.disk, domain=DOMAIN)):
        assert list(kept.live(opened.connection)) == list(kept.live(plain.opened.connection))
        assert rows(opened) == rows(plain.opened)
        assert opened.check() == []


@given(steps)
@settings(derandomize=True, max_examples=40, deadline=None)
def test_what_was_compacted_once_has_nothing_to_be_compacted(history: list[Any]) -> None:
    store = Store()
    store.play(history)
    opened = store.opened
    live = list(kept.live(opened.connection))
    size = len(opened.log())
    opened.compact()
    assert list(kept.live(opened.connection)) == live
    assert not any(kept.waste(opened.connection))
    once, payloads = len(opened.log()), [frame.payload for frame in opened.store.log.frames()]
    opened.compact()
    assert len(opened.log()) == once
    assert [frame.payload for frame in opened.store.log.frames()] == payloads
    assert opened.disk.names() == [NAME]
    assert once <= size + 250 + 80 * len(live)
