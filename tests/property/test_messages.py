"""Whatever is written, changed and deleted: the index is the fold of its log and agrees with plain dictionaries."""

import asyncio
import hashlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.errors import CallerError, Conflict, NotFound, SessionMismatch
from convmem.messages import queries
from convmem.messages.model import KINDS
from tests.support.folded import Folded
from tests.support.texts import names, texts

pytestmark = pytest.mark.slow

metadata = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(names, max_size=3),
        "summary": texts,
        "project": st.sampled_from(["", "p", "q"]),
        "tool_call_id": names,
        "importance": st.integers(0, 100),
        "memory_kind": st.sampled_from(KINDS),
        "memory_tier": st.sampled_from(["short", "mid", "long"]),
    },
)
links = st.lists(st.integers(0, 11), max_size=3)
DEFAULTS: dict[str, Any] = {
    "tags": [],
    "summary": None,
    "project": None,
    "tool_call_id": None,
    "importance": 0,
    "memory_kind": "conversation",
    "memory_tier": "mid",
}
nulls = st.lists(st.sampled_from(sorted(DEFAULTS)), max_size=2)
writes = st.tuples(st.just("write"), st.sampled_from("st"), texts, metadata, links, st.none() | st.sampled_from("kl"))
updates = st.tuples(
    st.just("update"), st.integers(0, 11), st.none() | texts, metadata, nulls, st.none() | st.integers(1, 3)
)
deletes = st.tuples(st.just("delete"), st.integers(0, 11), st.none() | st.sampled_from("st"))
moves = st.tuples(st.just("move"), st.integers(-1_000, 1_000))


class Model:
    """The same rules on dictionaries."""

    def __init__(self) -> None:
        self.folded = Folded()
        self.ids: list[str] = []
        self.live: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, tuple[Any, str]] = {}

    def pick(self, number: int) -> str:
        return self.ids[number % len(self.ids)] if self.ids else "01HF7YAT00000000000000ZZZZ"

    async def write(self, session: str, content: str, given: Any, targets: list[int], key: str | None) -> None:
        relations = [{"type": "r", "message_id": self.pick(number)} for number in targets]
        ask = {"session_id": session, "role": "user", "content": content, "metadata": given | {"relations": relations}}
        expected = self.expected_of_write(ask, key)
        try:
            answer = await self.folded.call("write_message", **ask, **({"idempotency_key": key} if key else {}))
        except CallerError as error:
            if type(error) is not expected:
                raise
            return
        if isinstance(expected, str):
            assert (answer["message_id"], answer["replayed"]) == (expected, True)
            return
        assert expected is None
        assert "replayed" not in answer
        message_id = answer["message_id"]
        assert not self.ids or message_id > self.ids[-1]
        self.ids.append(message_id)
        self.live[message_id] = {"session": session, "content": content, "revision": 1} | DEFAULTS | given
        self.live[message_id]["tags"] = list(dict.fromkeys(given.get("tags", [])))
        if key:
            self.keys[key] = (normal(ask), message_id)

    def expected_of_write(self, ask: Any, key: str | None) -> Any:
        if key in self.keys:
            known, message_id = self.keys[key]
            return message_id if known == normal(ask) else Conflict
        targets = [relation["message_id"] for relation in ask["metadata"]["relations"]]
        return None if all(target in self.live for target in targets) else NotFound

    async def update(self, number: int, content: str | None, given: Any, gone: list[str], revision: int | None) -> None:
        message_id = self.pick(number)
        known = self.live.get(message_id)
        patch = given | dict.fromkeys(gone)
        ask = {"message_id": message_id, "metadata": patch, "expected_revision": revision}
        try:
            answer = await self.folded.call(
                "update_message", **ask, **({} if content is None else {"content": content})
            )
        except NotFound:
            assert known is None
            return
        except Conflict:
            assert known is not None
            assert revision not in (None, known["revision"])
            return
        assert known is not None
        assert revision in (None, known["revision"])
        after = known | patch | {name: DEFAULTS[name] for name in gone}
        after["tags"] = list(dict.fromkeys(after["tags"]))
        after["content"] = known["content"] if content is None else content
        changed = {name for name in after if after[name] != known[name]}
        assert {name.removeprefix("metadata.") for name in answer["changed"]} == changed
        after["revision"] += bool(changed)
        assert answer["revision"] == after["revision"]
        assert answer["sha256"] == hashlib.sha256(after["content"].encode()).hexdigest()
        self.live[message_id] = after

    async def delete(self, number: int, guard: str | None) -> None:
        message_id = self.pick(number)
        known = self.live.get(message_id)
        try:
            await self.folded.call("delete_message", message_id=message_id, session_id=guard)
        except NotFound:
            assert known is None
        except SessionMismatch:
            assert known is not None
            assert guard not in (None, known["session"])
        else:
            del self.live[message_id]

    async def move(self, elapsed_ms: int) -> None:
        self.folded.clock.pass_ms(elapsed_ms)

    def prove(self) -> None:
        assert queries.totals(self.folded.connection)[:2] == (len(self.live), len(self.ids) - len(self.live))
        for message_id, expected in self.live.items():
            message = queries.read_message(self.folded.connection, message_id)
            assert message is not None
            assert message.updated_at >= message.timestamp
            shown = {name: getattr(message.metadata, name) for name in DEFAULTS} | {"tags": list(message.metadata.tags)}
            own = {"session": message.session_id, "content": message.content, "revision": message.revision}
            assert own | shown == {name: expected[name] for name in own | shown}
        self.folded.prove()


def normal(ask: Any) -> Any:
    filled = DEFAULTS | ask["metadata"]
    return {**ask, "metadata": filled | {"tags": list(dict.fromkeys(filled["tags"]))}}


@given(st.lists(writes | updates | deletes | moves, max_size=25))
@settings(derandomize=True, max_examples=150, deadline=None)
def test_the_index_is_the_fold_of_the_log_and_what_the_rules_say(steps: list[Any]):
    async def play() -> None:
        model = Model()
        for name, *arguments in steps:
            await getattr(model, name)(*arguments)
        model.prove()

    asyncio.run(play())
