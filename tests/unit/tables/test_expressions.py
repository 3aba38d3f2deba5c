"""A template holds what is allowed and nothing else, wherever it tries to hide it."""

import time

import pytest

from convmem.errors import TemplateRefused
from convmem.limits import TEMPLATE_BYTES_MAX
from convmem.tables.expressions import accepted

ALLOWED = [
    "",
    "no holes, { } nor {x}",
    "{{ a }}",
    "{{- a -}} {%- if a +%} x {%+ endif -%}",
    "{{ a.b.c }} {{ a['b'] }} {{ a[0] }} {{ a[-1] }}",
    "{{ a|default('x')|upper }} {{ (a) }} {{ a|round(2) }}",
    "{{ a if a is defined else none }}",
    "{{ a not in ['x', \"y\", 1.5e3, true] and not (b or c) }}",
    "{{ a is not none }} {{ a >= 1 }} {{ a - 1 }}",
    "{% for x in a.b|default([]) %}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% if a == '}}' %}1{% elif a != '%}' %}2{% else %}3{% endif %}",
    "{# {{ anything() }} #}",
    "{{ '{{ x() }}' }}",
    "{{ ключ }}",
]
REFUSED = [
    "{{ a() }}",
    "{{ a.b() }}",
    "{{ a['b']() }}",
    "{{ (a)() }}",
    "{{ 'x'() }}",
    "{{ range(10) }}",
    "{{ a|default(b()) }}",
    "{{ a ~ a }}",
    "{{ a + a }}",
    "{{ a * 1000000000 }}",
    "{{ a ** a }}",
    "{{ 'x' % a }}",
    "{{ [a, a] }}",
    "{{ [[1]] }}",
    "{{ {'a': 1} }}",
    "{{ a[b] }}",
    "{{ a[0:5] }}",
    "{{ a|replace('', a) }}",
    "{{ a|join(a) }}",
    "{{ a|safe }}",
    "{{ a|tojson|upper }}",
    "{{ (a|tojson) }}",
    "{{ a is divisibleby(3) }}",
    "{{ a is startingwith }}",
    "{{ a.__class__ }}",
    "{{ a._b }}",
    "{{ a if b }}",
    "{{ a, }}{{ }}",
    "{{ a",
    "{{ 'a }}",
    "{# a",
    "{% set a = 1 %}",
    "{% set a %}x{% endset %}",
    "{% macro a() %}{% endmacro %}",
    "{% block a %}{% endblock %}",
    "{% filter upper %}{% endfilter %}",
    "{% include 'a' %}",
    "{% extends 'a' %}",
    "{% import 'a' as a %}",
    "{% raw %}{{ a }}{% endraw %}",
    "{% with a = 1 %}{% endwith %}",
    "{% autoescape true %}{% endautoescape %}",
    "{% do a %}",
    "{% call a() %}{% endcall %}",
    "{% for a, b in c %}{% endfor %}",
    "{% for a in b if a %}{% endfor %}",
    "{% for a.b in c %}{% endfor %}",
    "{% else a %}",
    "{% %}",
    "{{ a; b }}",
    "{{ a \\ b }}",
    "{{ a := b }}",
    "{{ `a` }}",
    "{{ " + "(" * 300 + "a" + ")" * 300 + " }}",
]


@pytest.mark.parametrize("source", ALLOWED)
def test_what_a_filter_needs_is_allowed_and_stays_as_it_is(source: str):
    assert accepted(source) == source


@pytest.mark.parametrize("source", REFUSED)
def test_everything_else_is_refused(source: str):
    with pytest.raises(TemplateRefused) as refused:
        accepted(source)
    assert refused.value.details == {"line": 1}


def test_a_refusal_names_the_line():
    with pytest.raises(TemplateRefused) as refused:
        accepted("{\n{{ a }}\n{{ b }} {{ c\n() }}\n")
    assert refused.value.details == {"line": 4}


def test_what_goes_out_as_json_anyway_may_say_so():
    assert accepted('{"v": {{ a | tojson }}, "w": {{ b|default(1)|tojson -}} }') == (
        '{"v": {{ a  }}, "w": {{ b|default(1) -}} }'
    )


def test_a_template_has_a_largest_size():
    assert accepted("é" * (TEMPLATE_BYTES_MAX // 2))
    with pytest.raises(TemplateRefused):
        accepted("é" * (TEMPLATE_BYTES_MAX // 2) + "x")


def test_the_worst_templates_are_refused_in_time():
    begun = time.process_time()
    for piece in ("{", "{{", "{#", "{{ '", '{{ "\\', "{% ", "{{a}}", "{{ a.", "{{ '\\'' "):
        source = piece * (TEMPLATE_BYTES_MAX // len(piece))
        try:
            accepted(source)
        except TemplateRefused:
            continue
    assert time.process_time() - begun < 2
