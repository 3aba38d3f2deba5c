"""No parameter, whatever it holds, makes another filter of a template than one with other values."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.errors import Invalid, TemplateRefused
from convmem.tables import templates
from tests.support.texts import texts

pytestmark = pytest.mark.slow

SYNTAX = ['"', "\\", '\\"', "{{", "}}", "{%", "%}", "{#", "#}", "{", "}", "[", "]", ":", ",", "\ufdd0", "\ufdd1", "0"]
hostile = st.lists(st.sampled_from([*SYNTAX, '","type":"or', "{{ a }}", "\\u0022", "a|safe", "\0"]), max_size=8).map(
    "".join
)
scalars = st.one_of(hostile, texts, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.none())
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile, inner, max_size=3), max_leaves=6
)
pieces = st.sampled_from(
    [*SYNTAX, "{{ a }}", "{{ b }}", "{{ a.b }}", "{{ a|lower }}", '"{{ a }}"', "{% if a %}", "{% else %}"]
)
ends = st.sampled_from(
    ["{% endif %}", "{% for a in b %}", "{% endfor %}", "{{ a|default('x') }}", '"k":', "1", " ", "\n"]
)
templates_of_pieces = st.lists(pieces | ends, max_size=12).map("".join)
FILTER = (
    '{"type": "and", "filters": [{"type": "eq", "field": "a", "value": "{{ a }}"}, '
    '{"type": "like", "field": "b", "value": "%{{ b }}%{{ a }}"}, {"type": "in", "values": {{ b }}}]}'
)


def shape(value: Any, *, is_value: bool = False) -> Any:
    """What an operator, a key or a list of a filter is, with nothing said of the values."""
    if isinstance(value, dict):
        return {key: shape(inner, is_value=key in ("value", "values")) for key, inner in value.items()}
    return None if is_value else [shape(inner) for inner in value] if isinstance(value, list) else value


@given(scalars | st.lists(scalars, max_size=3), scalars | st.lists(scalars, max_size=3))
@settings(derandomize=True, max_examples=500, deadline=None)
def test_the_shape_of_a_filter_is_that_of_its_template(a: Any, b: Any):
    filled = templates.fill(FILTER, {"a": a, "b": b})
    assert shape(filled) == shape(templates.fill(FILTER, {"a": "", "b": []}))
    assert filled["filters"][2]["values"] == b
    if isinstance(a, str):
        assert filled["filters"][0]["value"] == a
    if isinstance(a, str) and isinstance(b, str):
        assert filled["filters"][1]["value"] == f"%{b}%{a}"


def keys(value: Any) -> list[str]:
    if isinstance(value, list):
        return [key for inner in value for key in keys(inner)]
    return [key for name, inner in value.items() for key in (name, *keys(inner))] if isinstance(value, dict) else []


@given(templates_of_pieces, values, values)
@settings(derandomize=True, max_examples=1_500, deadline=None)
def test_any_template_with_any_parameters_is_filled_in_or_refused(source: str, a: Any, b: Any):
    try:
        filled = templates.fill(source, {"a": a, "b": b})
    except (TemplateRefused, Invalid):
        return
    assert all(key in source for key in keys(filled))
