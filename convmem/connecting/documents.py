"""The two forms of configuration, JSON with comments and TOML, behind one table; and the proof of each edit.

The idea: an edit by spans is only as good as the eye that found them. So what comes out is read again, and if anything
but the wanted member differs nothing is returned: a fault of ours ends in an error, never in somebody's file.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from convmem.connecting import jsonc, jsonc_edits, toml_edits
from convmem.connecting.misfits import Misfit

Form = Literal["json", "toml"]
Path = tuple[str, ...]


class Editing(NamedTuple):
    """How a form is read and changed: functions of its module, by the same names."""

    parse: Callable[[str], Any]
    value_at: Callable[[str, Path], Any]
    merged: Callable[[str, Path, Mapping[str, Any], frozenset[str]], str]
    take: Callable[[str, Path], str]
    snippet: Callable[[Path, Mapping[str, Any]], str]


def _plain(text: str) -> Any:
    return {} if jsonc_edits.says_nothing(text) else jsonc.parse(text).plain


def _member(text: str, path: Path) -> Any:
    return None if jsonc_edits.says_nothing(text) else jsonc_edits.value_at(text, path)


def _taken(text: str, path: Path) -> str:
    return text if jsonc_edits.says_nothing(text) else jsonc_edits.take(text, path)


FORMS: Mapping[Form, Editing] = {
    "json": Editing(_plain, _member, jsonc_edits.merged, _taken, jsonc_edits.snippet),
    "toml": Editing(toml_edits.parse, toml_edits.value_at, toml_edits.merged, toml_edits.take, toml_edits.snippet),
}


def decoded(data: bytes) -> str:
    """The text of a file; Misfit if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line_start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[line_start : error.start].decode(errors="replace")) + 1
        raise Misfit("not UTF-8", data.count(b"\n", 0, error.start) + 1, column) from None


def snippet(form: Form, path: Path, wanted: Mapping[str, Any]) -> str:
    """A text of its own that holds `wanted` at `path` and nothing else."""
    return FORMS[form].snippet(path, wanted)


def meaning(form: Form, text: str) -> Any:
    """What the whole text says. Misfit."""
    return FORMS[form].parse(text)


def entry_at(form: Form, text: str, path: Path) -> Any:
    """What stands at `path`, None if nothing does. Misfit if the text cannot be read or the way there is no object."""
    return FORMS[form].value_at(text, path)


def with_entry(form: Form, text: str, path: Path, wanted: Mapping[str, Any], ours: frozenset[str]) -> str:
    """The text with `wanted` at `path`, and what a person has added there beside our keys; Misfit."""
    before = FORMS[form].value_at(text, path)
    kept = {key: value for key, value in before.items() if key not in ours} if isinstance(before, dict) else {}
    edited = FORMS[form].merged(text, path, wanted, ours)
    _prove(form, text, edited, path, {**kept, **wanted})
    return edited


def without_entry(form: Form, text: str, path: Path) -> str:
    """The text without what stands at `path`; itself if nothing does. Misfit."""
    edited = FORMS[form].take(text, path)
    _prove(form, text, edited, path, None)
    return edited


def _prove(form: Form, before: str, after: str, path: Path, wanted: Any) -> None:
    """Assert that both texts mean the same but for what stands at `path`."""
    expected, found = copy.deepcopy(FORMS[form].parse(before)), FORMS[form].parse(after)
    inner, outer = expected, []
    for key in path[:-1]:
        if wanted is None and key not in inner:
            break
        outer.append(inner)
        inner = inner.setdefault(key, {})
    else:
        if wanted is not None:
            inner[path[-1]] = wanted
        else:
            inner.pop(path[-1], None)
    if form == "toml":
        # A table that was there through its last member alone is gone with it.
        expected, found = _without_empty(expected, path), _without_empty(found, path)
    assert expected == found, "an edit has changed what it should not"


def _without_empty(value: dict[str, Any], path: Path) -> dict[str, Any]:
    if len(path) > 1 and path[0] in value and isinstance(value[path[0]], dict):
        inner = _without_empty(value[path[0]], path[1:])
        return {**value, path[0]: inner} if inner else {key: one for key, one in value.items() if key != path[0]}
    return value
