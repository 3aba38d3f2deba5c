"""Objects out of files too large to parse and out of damaged ones: damage takes what it hits and nothing else."""

import io
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.importers import splitting
from convmem.importers.model import Notes


def is_wanted(value: Any) -> bool:
    return isinstance(value, dict) and "mapping" in value


def objects(data: bytes, notes: Notes | None = None) -> list[Any]:
    found = splitting.objects(io.BytesIO(data), "x.json", is_wanted, notes or Notes())
    return [one.value for one in found]


def lines(data: bytes, notes: Notes | None = None) -> list[Any]:
    return [value for _, value in splitting.lines(io.BytesIO(data), "x.jsonl", notes or Notes())]


ELEMENTS = [
    {"mapping": {"a": [1, {"b": '}{][\\"\u00e9'}]}, "title": f"number {number}", "text": 'a "quoted" {word}' * number}
    for number in range(20)
]


@pytest.mark.parametrize("piece_bytes", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrapper", ["{}", '{{"conversations": {}}}', ' {{ "items" : {} , "more": 1}}'])
def test_every_element_is_found_whatever_the_pieces(
    piece_bytes: int, indent: int | None, wrapper: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(splitting, "PIECE_BYTES", piece_bytes)
    notes = Notes()
    data = wrapper.format(json.dumps(ELEMENTS, indent=indent)).encode()
    if wrapper != "{}" and piece_bytes < 64:
        return  # Whether there is a wrapper is told by the first piece.
    assert objects(data, notes) == ELEMENTS
    assert not notes.skipped


def test_where_an_element_stands_it_is_read_again():
    data = json.dumps(ELEMENTS).encode()
    for found in splitting.objects(io.BytesIO(data), "x", is_wanted, Notes()):
        assert splitting.read(io.BytesIO(data), (found.offset, found.size)) == found.value


def test_one_object_is_found_alone():
    assert objects(json.dumps(ELEMENTS[3]).encode()) == [ELEMENTS[3]]


@pytest.mark.parametrize("data", [b"", b"[]", b"[1, 2]", b"no JSON", b"\xff\xfe"])
def test_a_file_without_objects_has_none(data: bytes):
    assert objects(data) == []


@pytest.mark.parametrize("sign", [b'"', b"{", b"}", b"\\", b"\x00", b"x"])
def test_a_sign_that_was_changed_takes_its_own_element_alone(sign: bytes):
    parts = [json.dumps(element).encode() for element in ELEMENTS]
    for at in range(1, len(parts[7]) - 1, 3):
        damaged = parts[7][:at] + sign + parts[7][at + 1 :]
        notes = Notes()
        found = objects(b"[" + b", ".join([*parts[:7], damaged, *parts[8:]]) + b"]", notes)
        others = [element for number, element in enumerate(ELEMENTS) if number != 7]
        assert [element for element in found if element in others] == others, (at, damaged)


def test_what_is_cut_off_is_told_with_its_place():
    notes = Notes()
    data = json.dumps(ELEMENTS).encode()
    assert objects(data[:-40], notes) == ELEMENTS[:-1]
    (skipped,) = notes.skipped
    assert skipped.where.startswith("x.json, byte ")


def test_an_element_that_does_not_end_takes_no_more_than_may_be_held(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(splitting, "IMPORT_ELEMENT_BYTES_MAX", 2_000)
    monkeypatch.setattr(splitting, "PIECE_BYTES", 512)
    large = {"mapping": "x" * 10_000}
    notes = Notes()
    assert objects(json.dumps([ELEMENTS[0], large, ELEMENTS[1]]).encode(), notes) == [ELEMENTS[0], ELEMENTS[1]]
    assert notes.skipped_count == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'{"a": "\ud83d"}', {"a": "\ufffd"}),
        (r'{"a": "\ude00x"}', {"a": "\ufffdx"}),
        (r'{"a": "\ud83d\ude00"}', {"a": "\U0001f600"}),
        (r'{"a": "\\ud83d"}', {"a": "\\ud83d"}),
        (r'{"a": "\\\ud83d"}', {"a": "\\\ufffd"}),
        (r'{"a": "\ud83d\ud83d\ude00"}', {"a": "\ufffd\U0001f600"}),
    ],
)
def test_half_a_character_becomes_a_mark(text: str, expected: Any):
    assert splitting.decoded(text.encode()) == expected


def test_lines_hold_one_object_or_several_and_zeros_and_torn_ones_hide_none():
    notes = Notes()
    a, b, c = ({"type": "a"}, {"type": "b", "x": "}{"}, {"type": "c"})
    data = b"\n".join(
        [
            json.dumps(a).encode() + json.dumps(b).encode(),
            b"\0" * 40,
            json.dumps(c).encode() + b"\0" * 900,
            b"",
            b'"text"',
            b"42",
            b"[1]",
            b'{"type": "a", "cut": "of' + json.dumps(b).encode(),
            b"}" + json.dumps(a).encode() + b"\r",
            json.dumps(c).encode()[:-3],
        ]
    )
    assert lines(data, notes) == [a, b, c, b, a]
    assert notes.passed_over == {"zeros": 1}
    assert {skip.where.rpartition(" ")[2] for skip in notes.skipped} >= {"5", "6", "7", "8", "10"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), max_size=6), st.integers(1, 40))
@settings(max_examples=200, deadline=None)
def test_any_array_of_objects_is_found_whole(values: list[Any], piece_bytes: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "PIECE_BYTES", piece_bytes)
        data = msgspec.json.encode(values)
        if not splitting.WRAPPERS.match(data):
            assert objects(data) == values


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_bytes_make_it_fall(data: bytes):
    objects(data)
    lines(data)
