"""Filters from templates: MiniJinja fills in, but what it prints are marks, and the values take their place afterwards.

The idea: JSON is parsed before any value is in it. Each `{{ … }}` prints a mark of two noncharacters and a number; a
mark outside a string is put into one; the text is parsed by our rules; then every mark in the tree becomes its value:
inside a string as text, else as what it is. So a parameter can hold quotes, braces, template or JSON as it likes: it
can not end a string, add a key or an operator. Two more rules keep the shape the template's own: a mark is never (part
of) a key, and an object is never inserted.

Inside a string a value that is no text stands as its JSON. Which expressions there may be is a matter of
expressions.py.

Rejected: escaping while the text is made (right only as long as two parsers agree on where a string is), and rendering
with the values first (one backslash before a hole, and the value begins with a quote of its own choice).
"""

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import minijinja
import msgspec

from convmem import strict_json
from convmem.errors import Invalid, TemplateRefused
from convmem.limits import (
    INT64_MAX,
    INT64_MIN,
    TEMPLATE_PARAMS_BYTES_MAX,
    TEMPLATE_RESULT_BYTES_MAX,
    TEMPLATE_STEPS_MAX,
)
from convmem.tables.expressions import accepted

# Noncharacters: no text of a person holds them (Unicode 23.7), and they need no escape in JSON.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_MARK = re.compile(f"{_OPEN}([0-9]{{1,9}}){_CLOSE}")
# What tells where a string of JSON begins and ends, and the marks.
_TURN = re.compile(f'\\\\.|"|{_MARK.pattern}', re.DOTALL)
# What the engine says, in words of ours: it would repeat the template, and its own names.
_SENTENCES: Mapping[str, str] = {
    "SyntaxError": "the template is not well formed",
    "UndefinedError": "the template needs a value that was not given",
    "OutOfFuel": "the template takes too many steps",
}
_NAMED_MAX = 20


def check(source: str) -> None:
    """TemplateRefused if the template could not be filled in whatever the parameters."""
    _refuse_marks(source)
    try:
        _environment(lambda value: "").add_template("filter", accepted(source))
    except minijinja.TemplateError as error:
        raise _failed(error, "") from None


def fill(source: str, params: Mapping[str, Any]) -> Any:
    """The JSON value that a template makes of parameters (JSON values, by name).

    TemplateRefused if it breaks a rule, misses a variable or takes too long; Invalid if what comes out is no JSON, or
    the parameters are too large.
    """
    if len(msgspec.json.encode(params)) > TEMPLATE_PARAMS_BYTES_MAX:
        raise Invalid(f"params may have {TEMPLATE_PARAMS_BYTES_MAX} bytes of JSON at most", field="params")
    _refuse_marks(source)
    printed = _Printed()
    environment = _environment(printed.mark)
    for name, value in params.items():
        environment.add_global(name, _for_engine(value))
    template = accepted(source)
    try:
        text = environment.render_str(template)
    except minijinja.TemplateError as error:
        raise _failed(error, _missing(environment, template, params)) from None
    if len(text) > TEMPLATE_RESULT_BYTES_MAX:
        raise _too_large()
    try:
        tree = strict_json.parse(_quoted(text).encode())
    except strict_json.MalformedJSON as error:
        raise Invalid(f"what the template makes is no JSON: {error}", field="filter_template") from None
    return printed.filled(tree)


class _Object:
    """An object among the parameters: the engine sees its keys and nothing of Python (a dict has methods by names that
    a key may have too).
    """

    __slots__ = ("_facts",)

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts

    def __getitem__(self, key: str) -> Any:
        return _for_engine(self._facts[key])

    def __contains__(self, key: object) -> bool:
        return key in self._facts

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


class _Printed:
    """The values that a template has printed, by the number of their mark."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._bytes_left = TEMPLATE_RESULT_BYTES_MAX

    def mark(self, value: Any) -> str:
        """The mark for a value that is printed now."""
        value = _as_json(value)
        self._bytes_left -= len(msgspec.json.encode(value))
        if self._bytes_left < 0:
            raise _too_large()
        self._values.append(value)
        return f"{_OPEN}{len(self._values) - 1}{_CLOSE}"

    def filled(self, tree: Any) -> Any:
        """The tree with its values in the place of their marks."""
        if isinstance(tree, str):
            return self._filled_text(tree)
        if isinstance(tree, list):
            return [self.filled(inner) for inner in tree]
        if not isinstance(tree, dict):
            return tree
        for key in tree:
            if _OPEN in key:
                raise _refused("a value cannot be a key of the filter, nor a part of one")
        return {key: self.filled(inner) for key, inner in tree.items()}

    def _filled_text(self, text: str) -> Any:
        if alone := _MARK.fullmatch(text):
            value = self._value(alone)
            if _holds_object(value):
                raise _refused("an object cannot be inserted: it would change the shape of the filter")
            return value
        if not _MARK.search(text):
            return text
        return _MARK.sub(lambda found: _as_text(self._value(found)), text).removeprefix(_CLOSE)

    def _value(self, found: re.Match[str]) -> Any:
        number = int(found[1])
        if number >= len(self._values):
            raise _refused("a template must not write marks itself")
        return self._values[number]


def _environment(mark: Any) -> minijinja.Environment:
    environment = minijinja.Environment(
        debug=False,
        fuel=TEMPLATE_STEPS_MAX,
        undefined_behavior="strict",
        auto_escape_callback=lambda name: False,
        finalizer=mark,
        pycompat=False,
    )
    for name in list(environment.globals):
        environment.remove_global(name)
    return environment


def _quoted(text: str) -> str:
    """The text with every mark in a string: one that stood in none is alone in its own, a string that held one before
    begins with the closing character, so that both can be told apart.
    """
    pieces: list[str] = []
    at = 0
    opened: int | None = None
    for turn in _TURN.finditer(text):
        pieces.append(text[at : turn.start()])
        at = turn.end()
        is_mark = turn[1] is not None
        pieces.append(f'"{turn[0]}"' if is_mark and opened is None else turn[0])
        if is_mark and opened is not None:
            pieces[opened] = f'"{_CLOSE}'
        elif turn[0] == '"':
            opened = len(pieces) - 1 if opened is None else None
    return "".join([*pieces, text[at:]])


def _for_engine(value: Any) -> Any:
    """A value of JSON as the engine is given it; in what it cannot look into there is nothing to be found."""
    if isinstance(value, dict):
        return _Object(value)
    return tuple(map(_for_engine, value)) if isinstance(value, list) else value


def _as_json(value: Any) -> Any:
    """A value that was printed, if it is one that JSON has by our rules. The engine makes 1.0 of the integer 1."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in value]
    if isinstance(value, _Object):
        return value._facts
    raise _refused("only values of JSON can be printed")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _holds_object(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_holds_object, value)))


def _missing(environment: minijinja.Environment, template: str, params: Mapping[str, Any]) -> str:
    """Which variables of a template have no value, for the sentence that says so."""
    try:
        names = sorted(environment.undeclared_variables_in_str(template) - set(params))
    except minijinja.TemplateError:
        return ""
    return f": {', '.join(names[:_NAMED_MAX])}" if names else ""


def _failed(error: minijinja.TemplateError, missing: str) -> TemplateRefused:
    kind = str(error.kind)
    sentence = _SENTENCES.get(kind, "the template cannot be filled in with these values")
    if kind == "UndefinedError":
        sentence += missing
    return TemplateRefused(f"{sentence} (line {error.line or 1} of the template)", line=error.line or 1)


def _refuse_marks(source: str) -> None:
    if _OPEN in source or _CLOSE in source:
        raise _refused("a template must not write marks itself")


def _too_large() -> TemplateRefused:
    return _refused(f"what the template makes is larger than {TEMPLATE_RESULT_BYTES_MAX} bytes")


def _refused(sentence: str) -> TemplateRefused:
    return TemplateRefused(sentence, line=1)
