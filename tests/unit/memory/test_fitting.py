"""memory/fitting: what does not fit is a preview with its size, or counted; nothing is shortened in silence."""

from typing import Any

import msgspec
import pytest

from convmem.limits import MEMORY_FACTS_BYTES_MAX
from convmem.memory.fitting import abridged, fitted, json_bytes

WIDEST = ("\x01", "😀", "\u2028", '"', "漢")


def test_what_fits_stays_as_it_is():
    record = {"number": 1, "value": "four spaces", "origin": {"device": "laptop"}}
    assert fitted({"preferences": [record]}) == {"preferences": [record]}
    assert fitted({"preferences": [record]}, {"preferences": 0}) == {"preferences": [record]}
    assert fitted({"preferences": [record]}, {"preferences": 7})["more"] == {"preferences": 7}


def test_a_cut_value_never_stands_under_its_own_name():
    record = {"value": "v" * 300, "previous_value": "p" * 200, "key": "k" * 9, "origin": {"client": "c" * 150}}
    assert abridged(record, 100, "value") == {
        "value_preview": "v" * 100,
        "total_bytes": 300,
        "previous_value_preview": "p" * 100,
        "key": "k" * 9,
        "origin": {"client_preview": "c" * 100},
        "omitted": [{"field": "previous_value", "bytes": 200}, {"field": "origin.client", "bytes": 150}],
    }


def test_a_project_is_never_cut():
    record = {"value": "v" * 300, "project": "p" * 256}
    assert abridged(record, 64, "value") == {"value_preview": "v" * 64, "total_bytes": 300, "project": "p" * 256}


def test_a_snippet_is_a_part_by_its_name_and_is_only_cut():
    assert abridged({"snippet": "s" * 300, "total_bytes": 9_000}, 100) == {"snippet": "s" * 100, "total_bytes": 9_000}


def test_a_preview_ends_where_a_character_does():
    assert abridged({"value": "ab" + "e\u0301" * 50}, 5, "value")["value_preview"] == "abe\u0301"


@pytest.mark.parametrize("widest", WIDEST, ids=ascii)
@pytest.mark.parametrize("count", [1, 10, 60, 500])
def test_facts_are_never_larger_than_they_may_be_and_nothing_is_left_out_in_silence(widest: str, count: int):
    texts = {"situation": widest * 1_000, "mistake": widest * 1_000, "correction": widest * 1_000}
    names = {"project": widest * 64, "origin": {"device": "d" * 128, "client": widest * 32}}
    lists: dict[str, list[dict[str, Any]]] = {
        "sections": [{"section": f"s{number}", "content": widest * 4_000, **names} for number in range(min(32, count))],
        "preferences": [{"number": number, "value": widest * 2_000, **names} for number in range(count)],
        "lessons": [{"number": number, **texts, **names} for number in range(count)],
    }
    facts = fitted(lists, {"lessons": 3})
    assert json_bytes(facts) <= MEMORY_FACTS_BYTES_MAX + 100
    assert len(msgspec.json.encode(facts)) <= MEMORY_FACTS_BYTES_MAX + 100
    for name, records in lists.items():
        assert len(facts[name]) + facts["more"].get(name, 0) == len(records) + 3 * (name == "lessons")
        for shown, whole in zip(facts[name], records, strict=False):
            assert all(whole[field] == value for field, value in shown.items() if field in whole and field != "origin")
    if count > 1:
        assert json_bytes(facts) > MEMORY_FACTS_BYTES_MAX // 2


def test_no_text_is_longer_than_asked_for():
    facts = fitted({"interactions": [{"content": "c" * 400}, {"content": "short"}]}, code_points_max=300)
    assert facts["interactions"] == [{"content_preview": "c" * 300, "total_bytes": 400}, {"content": "short"}]
