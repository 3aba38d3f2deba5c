"""A template is filled in so that no parameter changes the filter's shape, and what cannot be filled in is refused."""

import time
from typing import Any

import pytest

from convmem.errors import Invalid, TemplateRefused
from convmem.limits import TEMPLATE_PARAMS_BYTES_MAX
from convmem.tables import templates

EQUAL = '{"type": "eq", "field": "state", "value": "{{ state }}"}'
HOSTILE = [
    '"',
    '", "type": "ne',
    "\\",
    '\\"',
    "\\u0022",
    "{{ secret }}",
    "{% for x in y %}",
    "{# ",
    "}}",
    '{"a": 1}',
    "\n\t\0\u2028",
    "\ufdd0",
    "\ufdd00\ufdd1",
    "\ufdd1",
    "é🟡",
    "<b>&",
    "",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_in_a_string_is_that_text_and_nothing_else(value: str):
    assert templates.fill(EQUAL, {"state": value}) == {"type": "eq", "field": "state", "value": value}
    assert templates.fill('["%{{ state }}%", {{ state }}]', {"state": value}) == [f"%{value}%", value]


@pytest.mark.parametrize(
    "value",
    [0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 1.5, 1e300, True, False, None, "1", "true", [1, "a", None, [True]], []],
)
def test_a_value_outside_a_string_is_itself(value: Any):
    filled = templates.fill('{"value": {{ v }}}', {"v": value})
    assert filled == {"value": value}
    assert type(filled["value"]) is type(value)


@pytest.mark.parametrize(
    ("value", "text"), [(1, "1"), (True, "true"), (None, "null"), ([1, "a"], '[1,"a"]'), ({"a": '"'}, '{"a":"\\""}')]
)
def test_a_value_in_a_string_that_is_no_text_stands_as_its_json(value: Any, text: str):
    assert templates.fill('"<{{ v }}>"', {"v": value}) == f"<{text}>"
    assert templates.fill('"{{ v }}"', {"v": value}) == text


@pytest.mark.parametrize("value", [{}, {"type": "or"}, [{}], [[{"a": 1}]]])
def test_an_object_is_never_inserted(value: Any):
    with pytest.raises(TemplateRefused, match="shape"):
        templates.fill('{"value": {{ v }}}', {"v": value})


@pytest.mark.parametrize("source", ['{"{{ v }}": 1}', '{"a{{ v }}": 1}', "{ {{ v }}: 1}", '{"a": {"\\ufdd0": 1}}'])
def test_a_value_is_never_a_key(source: str):
    with pytest.raises(TemplateRefused, match="key"):
        templates.fill(source, {"v": "type"})


@pytest.mark.parametrize(
    "source", ['"\\{{ v }}"', "1{{ v }}", "{{ v }}{{ v }}", "tr{{ v }}", '"\\u00{{ v }}"', "{{ v }}: 1", "[{{ v }}", ""]
)
@pytest.mark.parametrize("value", ['"', "22", 1])
def test_what_a_value_would_have_to_complete_is_no_json(source: str, value: Any):
    with pytest.raises(Invalid) as refused:
        templates.fill(source, {"v": value})
    assert refused.value.details == {"field": "filter_template"}


def test_the_text_of_a_template_is_parsed_by_our_rules():
    for source in ('{"a": 1, "a": 2}', "NaN", "9223372036854775808", "1e400", '"\\ud800"'):
        with pytest.raises(Invalid):
            templates.fill(source, {})


@pytest.mark.parametrize(
    "source",
    [
        EQUAL,
        "{{ state|lower }}",
        "{{ state|tojson }}",
        "{% if state %}1{% endif %}",
        "{% for x in state %}{% endfor %}",
        "{{ state.a }}",
    ],
)
def test_a_missing_variable_is_refused_by_name(source: str):
    with pytest.raises(TemplateRefused, match="not given: state ") as refused:
        templates.fill(source, {"other": 1})
    assert refused.value.code == "ALIAS_TEMPLATE_ERROR"


def test_what_the_language_of_the_engine_knows_by_itself_is_missing_too():
    for name in ("range", "dict", "debug", "namespace", "joiner", "cycler", "self", "null", "undefined"):
        with pytest.raises(TemplateRefused, match="not given"):
            templates.fill("{{ " + name + " }}", {})


def test_of_an_object_only_its_keys_are_seen():
    page = {"items": [1], "n": {"get": "x"}, "empty": {}}
    assert templates.fill("[{{ p.items }}, {{ p.n.get }}, {{ p['n']['get'] }}]", {"p": page}) == [[1], "x", "x"]
    assert templates.fill("[{{ p.keys is defined }}, {{ p.n.facts is defined }}]", {"p": page}) == [False, False]
    assert templates.fill("[{% for key in p %}{{ key }},{% endfor %}{{ p|length }}]", {"p": page}) == [*page, 3]
    assert templates.fill("[{{ 'n' in p }}, {{ 'x' in p }}]", {"p": page}) == [True, False]
    assert templates.fill("{% if p.empty %}1{% else %}0{% endif %}", {"p": page}) == 0
    with pytest.raises(TemplateRefused, match="not given"):
        templates.fill("{{ p.keys }}", {"p": page})


def test_conditions_loops_and_defaults_make_filters():
    source = (
        '{"type": "and", "filters": [{% for s in states %}{"type": "eq", "field": "state", "value": "{{ s }}"}'
        '{% if not loop.last %},{% endif %}{% endfor %}{% if n is defined %}, {"n": {{ n }}}{% endif %}],'
        ' "limit": {{ limit|default(10) }}}'
    )
    equal = [{"type": "eq", "field": "state", "value": value} for value in ("a", '"')]
    assert templates.fill(source, {"states": ["a", '"']}) == {"type": "and", "filters": equal, "limit": 10}
    assert templates.fill("{{ n }}", {"n": 3.0}) == 3


def test_a_loop_over_as_many_values_as_a_filter_may_hold_is_not_too_long():
    source = '{"values": [{% for x in s %}"{{ x }}"{% if not loop.last %},{% endif %}{% endfor %}]}'
    values = [f"{n:036}" for n in range(1_000)]
    assert templates.fill(source, {"s": values}) == {"values": values}


def test_a_parameter_may_have_any_name():
    odd = {"name": 1, "source": 2, "self": 3, "range": 4, "a b": 5, "": 6, "loop": 7}
    assert templates.fill("[{{ name }}, {{ source }}, {{ self }}, {{ range }}]", odd) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "source", ["{{ v|float }}", "{{ -n }}", "{{ n - 1 }}", "{{ x|int }}", "{{ n|upper|first|abs }}"]
)
def test_what_is_no_value_of_json_is_not_printed(source: str):
    with pytest.raises(TemplateRefused):
        templates.fill(source, {"v": "nan", "n": -(2**63), "x": "many"})


def test_huge_loops_and_huge_results_are_refused_in_time():
    begun = time.process_time()
    many = list(range(5_000))
    nested = "{% for a in x %}{% for b in x %}{% for c in x %}{{ c }}{% endfor %}{% endfor %}{% endfor %}"
    with pytest.raises(TemplateRefused, match="steps"):
        templates.fill(nested, {"x": many})
    with pytest.raises(TemplateRefused, match="steps"):
        templates.fill("{% for a in x %}{% endfor %}", {"x": "a" * 60_000})
    with pytest.raises(TemplateRefused, match="larger"):
        templates.fill("[{% for a in x %}{{ t }},{% endfor %}0]", {"x": many[:500], "t": "a" * 10_000})
    with pytest.raises(TemplateRefused, match="larger"):
        templates.fill("{% for a in x %}" + " " * 15_000 + "{% endfor %}", {"x": many[:100]})
    with pytest.raises(Invalid) as refused:
        templates.fill("{{ t }}", {"t": "a" * TEMPLATE_PARAMS_BYTES_MAX})
    assert refused.value.details == {"field": "params"}
    assert time.process_time() - begun < 5


def test_reading_quotes_takes_no_longer_than_the_text_is():
    begun = time.process_time()
    source = "{% for a in x %}" + '\\"' * 100 + "{% endfor %}"
    for before in ("", '"'):
        with pytest.raises(Invalid):
            templates.fill(before + source, {"x": list(range(1_000))})
    assert time.process_time() - begun < 5


def test_no_word_of_the_engine_or_of_a_parameter_stands_in_a_refusal():
    for source, params in (
        ("{{ a|abs }}", {"a": "geheim"}),
        ("{% if a %}", {"a": "geheim"}),
        ("{{ a", {"a": "geheim"}),
    ):
        with pytest.raises(TemplateRefused) as refused:
            templates.fill(source, params)
        assert "geheim" not in refused.value.message
        assert "string>" not in refused.value.message


def test_a_template_is_checked_before_it_has_parameters():
    templates.check(EQUAL)
    for source in ("{% if a %}", "{{ a() }}", "\ufdd00\ufdd1", "{{ a b }}", "{{ 1a }}"):
        with pytest.raises(TemplateRefused):
            templates.check(source)


def test_a_template_that_writes_marks_itself_gets_no_value_it_did_not_print():
    for source in ('"\\ufdd05\\ufdd1"', '"x\\ufdd00\\ufdd1"'):
        with pytest.raises(TemplateRefused, match="marks"):
            templates.fill(source, {})
    assert templates.fill('"\\ufdd1a"', {}) == "\ufdd1a"
