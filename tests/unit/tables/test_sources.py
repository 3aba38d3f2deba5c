"""Which tables are looked at: those that are named, or those whose names fit when it is asked."""

from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest

from convmem.errors import AggregateRefused, Invalid
from convmem.limits import AGGREGATE_SOURCES_MAX, TABLE_PATTERN_CODE_POINTS_MAX
from convmem.tables import sources
from convmem.tables.sources import Sources

TABLES = ("shop_b", "shop_a", "Shop_c", "log")


def test_what_is_named_is_looked_at_as_it_is_named():
    assert sources.parse({"kind": "single", "value": "log"}) == Sources("single", ("log",))
    several = sources.parse({"kind": "multi", "value": ["b", "a"]})
    assert several.among(TABLES) == ("b", "a")
    assert several.cover("a")
    assert not several.cover("A")


def test_a_pattern_is_matched_against_what_there_is():
    pattern = sources.parse({"kind": "pattern", "value": "shop_*"})
    assert pattern.among(TABLES) == ("shop_a", "shop_b")
    assert pattern.among([*TABLES, "shop_new"]) == ("shop_a", "shop_b", "shop_new")
    assert pattern.cover("shop_")
    assert not pattern.cover("log")
    with pytest.raises(AggregateRefused):
        pattern.among(["log"])
    with pytest.raises(AggregateRefused):
        pattern.among([])


def test_a_star_stands_for_any_characters_and_nothing_else_is_a_sign():
    letters = ["".join(some) for length in range(5) for some in product("ab", repeat=length)]
    patterns = ["".join(some) for length in range(1, 6) for some in product("ab*", repeat=length)]
    assert all(
        sources.fits(name, pattern) == fnmatchcase(name, pattern) for name in letters for pattern in patterns[:200]
    )
    assert not sources.fits("a", "?")
    assert not sources.fits("a", "[a]")
    assert not sources.fits("a", "%")
    assert sources.fits("a" * 64, "*a" * 60 + "*")
    assert not sources.fits("a" * 64, "*a" * 60 + "*b*")


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("log", "sources"),
        ({}, "sources.kind"),
        ({"kind": "single"}, "sources.value"),
        ({"kind": "all", "value": "x"}, "sources.kind"),
        ({"kind": "single", "value": ["log"]}, "sources.value"),
        ({"kind": "single", "value": ""}, "sources.value"),
        ({"kind": "multi", "value": "log"}, "sources.value"),
        ({"kind": "multi", "value": []}, "sources.value"),
        ({"kind": "multi", "value": ["a", 1]}, "sources.value.1"),
        ({"kind": "multi", "value": ["a", "a"]}, "sources.value"),
        ({"kind": "multi", "value": ["a", "A"]}, "sources.value"),
        ({"kind": "multi", "value": [str(number) for number in range(AGGREGATE_SOURCES_MAX + 1)]}, "sources.value"),
        ({"kind": "pattern", "value": "x" * (TABLE_PATTERN_CODE_POINTS_MAX + 1)}, "sources.value"),
        ({"kind": "pattern", "value": None}, "sources.value"),
        ({"kind": "single", "value": "log", "table": "x"}, "sources"),
    ],
)
def test_a_fault_is_refused_where_it_stands(asked: Any, path: str):
    with pytest.raises(Invalid) as refused:
        sources.parse(asked)
    assert refused.value.details["field"] == path


def test_every_kind_is_known_by_its_name():
    assert set(sources.KINDS) == {"single", "multi", "pattern"}
