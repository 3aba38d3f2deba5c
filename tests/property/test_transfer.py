"""The law of files: export, into an empty store, import, export again gives the same bytes but for the time."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convmem.limits import CONTENT_BYTES_MAX
from convmem.messages import DOMAIN
from convmem.transfer.intake import Plan
from tests.support.filed import exported, folded_from, taken
from tests.support.folded import Folded
from tests.support.manual_clock import START_MS
from tests.support.texts import names, texts

pytestmark = pytest.mark.slow

large = st.sampled_from(["a", "\x01", "あ", "🟡", "\u2028", "\0", '"']).map(
    lambda text: text * (CONTENT_BYTES_MAX // len(text.encode()))
)
contents = st.one_of(texts, texts, texts, texts, texts, texts, texts, large)
numbers = st.integers(0, 9)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(names, max_size=3),
        "summary": texts.filter(lambda text: len(text.encode()) < 4_000),
        "project": st.sampled_from(["", "p"]),
        "tool_call_id": names,
        "importance": st.integers(0, 100),
        "memory_tier": st.sampled_from(["short", "long"]),
    },
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), contents, metadata, st.lists(numbers, max_size=3)),
        st.tuples(st.just("update"), numbers, contents, metadata),
        st.tuples(st.just("delete"), numbers),
        st.tuples(st.just("clock"), st.integers(-5_000, 5_000)),
    ),
    max_size=14,
)


async def lived(history: list[Any]) -> Folded:
    """A store with this history; what cannot be is passed over."""
    folded = Folded()
    live: list[str] = []
    for what, *rest in history:
        if what == "write":
            content, given_metadata, targets = rest
            picked = [live[number % len(live)] for number in targets] if live else []
            links = {
                "relations": [{"type": "r", "message_id": target} for target in picked],
                "source_message_ids": picked[:2],
            }
            live.append(await folded.say(content, session_id=f"s{len(content) % 3}", **given_metadata, **links))
        elif what == "update" and live:
            number, content, given_metadata = rest
            target = live[number % len(live)]
            await folded.call("update_message", message_id=target, content=content, metadata=given_metadata)
        elif what == "delete" and live:
            await folded.call("delete_message", message_id=live.pop(rest[0] % len(live)))
        elif what == "clock":
            folded.clock.pass_ms(rest[0])
    return folded


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(steps)
def test_export_import_export_is_the_same_file(history: list[Any]) -> None:
    store = asyncio.run(lived(history))
    data = exported(store.connection)
    plan, records = taken(data)
    index = folded_from(records)
    assert plan == Plan(new=data.count(b"\n") - 1, unchanged=0, overwritten=0)
    assert DOMAIN.check(index) == []
    assert exported(index, START_MS) == data
    # And into the store that it came from: nothing is new, nothing differs.
    again, _ = taken(data, store.connection, through=store.sequence)
    assert again == Plan(new=0, unchanged=plan.new, overwritten=0)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(steps, steps)
def test_two_stores_meet_and_every_record_is_there_once(mine: list[Any], theirs: list[Any]) -> None:
    store, other = asyncio.run(lived(mine)), asyncio.run(lived([("clock", 60_000), *theirs]))
    data = exported(other.connection)
    plan, records = taken(data, store.connection, "overwrite", through=store.sequence)
    index = folded_from(records)
    assert DOMAIN.check(index) == []
    ids = [row[0] for row in index.execute("SELECT message_id FROM messages_message")]
    before = {row[0] for row in store.connection.execute("SELECT message_id FROM messages_message")}
    assert len(ids) == len(set(ids)) == len(before) + plan.new
    assert taken(exported(index), index, through=index.execute("SELECT count(*) FROM messages_message").fetchone()[0])[
        0
    ] == Plan(new=0, unchanged=len(ids), overwritten=0)
