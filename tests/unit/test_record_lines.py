"""What all lines of records share: one line for every reader, and an origin that comes back as it went."""

import json

import msgspec
import pytest
from hypothesis import given

from convmem.domain import Origin
from convmem.errors import Invalid
from convmem.inputs import exact
from convmem.record_lines import OriginLine, OriginRead, escaped, origin_line
from tests.support.texts import texts


@given(texts)
def test_escaped_json_is_one_line_for_every_reader_and_says_the_same(text: str):
    encoded = escaped(msgspec.json.encode({"text": text}))
    assert json.loads(encoded) == {"text": text}
    assert len(encoded.decode().splitlines()) == 1
    assert not any(
        character.isspace() and character != " "
        for character in encoded.decode()
        if character != "\u3000" and character != "\u00a0" and not "\u2000" <= character <= "\u200a"
    )


@pytest.mark.parametrize("origin", [Origin("laptop", "http", "agent/1"), Origin("local", "")])
def test_an_origin_comes_back_as_it_went(origin: Origin):
    line = msgspec.json.encode(origin_line(origin))
    assert msgspec.json.decode(line, type=OriginLine).origin == origin
    exact(OriginRead, json.loads(line))
    nulled = {"client": None} | json.loads(line)
    exact(OriginRead, nulled)
    assert msgspec.convert(nulled, OriginLine).origin == origin


@pytest.mark.parametrize(
    ("origin", "field"),
    [
        ({"transport": "http"}, "device"),
        ({"device": "", "transport": "http"}, "device"),
        ({"device": "a\0", "transport": "http"}, "device"),
        ({"device": "a" * 129, "transport": "http"}, "device"),
        ({"device": "a", "transport": "t" * 33}, "transport"),
        ({"device": "a", "transport": "", "client": "c" * 129}, "client"),
        ({"device": "a", "transport": "", "more": 1}, "more"),
    ],
)
def test_a_stranger_s_origin_is_checked_in_every_field(origin: dict[str, object], field: str):
    with pytest.raises(Invalid) as refusal:
        exact(OriginRead, origin)
    assert refusal.value.details["field"] == field
