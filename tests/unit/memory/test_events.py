"""What an entry holds of memory: only what the entry itself does not say, and of a statement only what it changed."""

import msgspec
import pytest

from convmem.domain import Event
from convmem.memory import events
from convmem.memory.events import PreferenceForgotten, PreferenceSaved, PreferenceStated
from convmem.memory.model import FIRST_CONFIDENCE
from convmem.memory.projection import APPLIERS

ID = "01HF7YAT000000000000000007"


def test_an_ordinary_preference_takes_few_bytes_beside_its_texts():
    event = PreferenceSaved(preference_id=ID, number=7, category="other", key="k", value="x" * 100)
    assert set(msgspec.to_builtins(event)) == {"type", "preference_id", "number", "category", "key", "value"}
    assert len(msgspec.msgpack.encode(event)) - 100 < 115


def test_defaults_that_were_spelled_out_take_none():
    spelled = PreferenceSaved(
        preference_id=ID,
        number=7,
        category="other",
        key="k",
        value="v",
        confidence=FIRST_CONFIDENCE,
        source="explicit",
        project=None,
    )
    plain = PreferenceSaved(preference_id=ID, number=7, category="other", key="k", value="v")
    assert msgspec.msgpack.encode(spelled) == msgspec.msgpack.encode(plain)


def test_a_statement_that_changed_nothing_holds_nothing():
    assert msgspec.to_builtins(PreferenceStated(number=7)) == {"type": "preference_stated", "number": 7}
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(PreferenceStated(number=7)), type=PreferenceStated)
    assert (again.value, again.confidence, again.source) == (msgspec.UNSET,) * 3


def test_what_was_forgotten_leaves_a_number_and_no_text():
    assert len(msgspec.msgpack.encode(PreferenceForgotten(number=2**63 - 1))) < 50


@pytest.mark.parametrize("kind", APPLIERS)
def test_an_event_is_never_changed_and_bears_a_literal_tag(kind: type[msgspec.Struct]):
    assert kind.__struct_config__.frozen
    assert kind.__struct_config__.tag == "".join(
        letter if letter.islower() else f"_{letter.lower()}" for letter in kind.__name__
    ).removeprefix("_")


def test_every_event_is_shown_in_the_index():
    there = {
        kind
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
    }
    assert set(APPLIERS) == there
