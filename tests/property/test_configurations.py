"""connecting: whatever a configuration looks like, one member changes and every other byte stays."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from convmem.connecting import jsonc, jsonc_edits, toml_edits
from convmem.connecting.misfits import Misfit

pytestmark = pytest.mark.slow

NAME = "convmem"
WANTED = {"type": "http", "url": "http://127.0.0.1:8484/mcp"}
OTHER = {"command": "/bin/convmem", "args": ["stdio", "--profile", "all"]}
OURS = frozenset({"type", "url", "command", "args"})

keys = some.text(some.sampled_from('abcé"\\/{}[],:#/*\t💡 '), max_size=4).filter(lambda key: key != NAME)
scalars = some.one_of(
    some.booleans(),
    some.none(),
    some.integers(-5, 10**20),
    some.text(some.sampled_from('ab"\\{}[],://**\n\x7f\u2028é💡'), max_size=8),
)
values = some.recursive(
    scalars,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@some.composite
def blanks(draw: some.DrawFn, newline: str) -> str:
    """Blanks and comments, as they may stand between any two tokens."""
    pieces = [" ", "\t", newline, f'// {{c}} "x", {newline}', "/* a, } */", f"/* a{newline} b */", f"{newline}    "]
    return "".join(draw(some.lists(some.sampled_from(pieces), max_size=3)))


@some.composite
def written(draw: some.DrawFn, value: Any, newline: str) -> str:
    """A value as somebody may have written it."""
    gap = blanks(newline)
    if isinstance(value, dict):
        items = [
            f"{json.dumps(key, ensure_ascii=draw(some.booleans()))}{draw(gap)}:{draw(gap)}{draw(written(one, newline))}"
            for key, one in value.items()
        ]
        opening, closing = "{}"
    elif isinstance(value, list):
        items = [draw(written(one, newline)) for one in value]
        opening, closing = "[]"
    else:
        return json.dumps(value, ensure_ascii=draw(some.booleans()))
    comma = "," if items and draw(some.booleans()) else ""
    inside = ",".join(draw(gap) + item + draw(gap) for item in items) + comma
    return opening + inside + draw(gap) + closing


@some.composite
def pretty(draw: some.DrawFn, value: Any, newline: str) -> str:
    """A value as a program writes it."""
    indent = draw(some.sampled_from([None, 0, 1, 2, 4, "\t"]))
    return json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", newline)


@some.composite
def configurations(draw: some.DrawFn, *, with_parent: bool = True, with_entry: bool = False) -> tuple[str, Any]:
    """A JSON text and what it says; the object `mcpServers` in it, or not, with our entry in it, or not."""
    value = draw(some.dictionaries(keys, values, max_size=3))
    if with_parent:
        servers = draw(some.dictionaries(keys, values, max_size=3))
        if with_entry:
            servers[NAME] = draw(some.sampled_from([OTHER, {**OTHER, "added": {"by": ["hand"]}}, {}]))
        value["mcpServers"] = shuffled(draw, servers)
    value = shuffled(draw, value)
    newline = draw(some.sampled_from(["\n", "\r\n"]))
    text = draw(written(value, newline) | pretty(value, newline))
    around = blanks(newline)
    return draw(some.sampled_from(["", "\ufeff"])) + draw(around) + text + draw(around), value


def shuffled(draw: some.DrawFn, value: dict[str, Any]) -> dict[str, Any]:
    return dict(draw(some.permutations(list(value.items()))))


def plain(value: Any) -> Any:
    """What a text says, with numbers as Python has them."""
    if isinstance(value, jsonc.Number):
        return int(value.text)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def unchanged_outside(before: str, after: str) -> bool:
    """True if `after` can be made of `before` by adding characters alone."""
    rest = iter(after)
    return all(character in rest for character in before)


@given(configurations(with_entry=True))
def test_a_text_is_read_as_what_it_says(case: tuple[str, Any]):
    text, value = case
    read = jsonc.parse(text)
    assert plain(read.plain) == value
    assert list(plain(read.plain)) == list(value)
    for member in read.members:
        assert text[member.start] == '"'
        assert plain(jsonc.parse(text[member.value.start : member.value.end]).plain) == value[member.key]


@given(configurations(), some.sampled_from([WANTED, OTHER]))
def test_what_was_added_goes_again_to_the_byte(case: tuple[str, Any], wanted: dict[str, Any]):
    text, value = case
    added = jsonc_edits.put(text, ("mcpServers", NAME), wanted)
    value["mcpServers"][NAME] = wanted
    assert plain(jsonc.parse(added).plain) == value
    assert unchanged_outside(text, added)
    assert jsonc_edits.take(added, ("mcpServers", NAME)) == text


@given(configurations(with_parent=False))
def test_parents_that_are_missing_are_made_and_stay(case: tuple[str, Any]):
    text, value = case
    added = jsonc_edits.put(text, ("mcpServers", NAME), WANTED)
    assert plain(jsonc.parse(added).plain) == value | {"mcpServers": {NAME: WANTED}}
    assert unchanged_outside(text, added)
    assert jsonc_edits.take(added, ("mcpServers",)) == text


@given(configurations(with_entry=True))
def test_an_entry_is_changed_key_by_key_and_what_a_person_added_stays(case: tuple[str, Any]):
    text, value = case
    servers = value["mcpServers"]
    kept = {key: one for key, one in servers[NAME].items() if key not in OURS}
    servers[NAME] = kept | WANTED
    changed = jsonc_edits.merged(text, ("mcpServers", NAME), WANTED, OURS)
    assert plain(jsonc.parse(changed).plain) == value
    assert jsonc_edits.merged(changed, ("mcpServers", NAME), WANTED, OURS) == changed


@given(configurations(with_entry=True))
def test_only_the_entry_is_taken_out(case: tuple[str, Any]):
    text, value = case
    taken = jsonc_edits.take(text, ("mcpServers", NAME))
    del value["mcpServers"][NAME]
    assert plain(jsonc.parse(taken).plain) == value
    assert unchanged_outside(taken, text)


def misfit(text: str) -> Misfit | None:
    """What is wrong with a JSON text."""
    try:
        jsonc.parse(text)
    except Misfit as found:
        return found
    return None


@given(some.text(some.sampled_from('{}[]",:\\/* \n1ae'), max_size=12))
def test_a_text_that_is_none_is_refused_with_a_place_in_it(text: str):
    found = misfit(text)
    lines = text.split("\n")
    assert found is None or (1 <= found.line <= len(lines) and 1 <= found.column <= len(lines[found.line - 1]) + 1)


toml_values = some.sampled_from(
    [
        '"[mcp_servers.convmem] # = "',
        "'C:\\[x]'",
        "1.5",
        "nan",
        "true",
        "1979-05-27T07:32:00Z",
        "[ 1, # [no]\n  2,\n]",
        '"""\n[mcp_servers.convmem]\nurl = "no"\n\\"""" ',
        "'''\n[table]\n''''",
        '{ a = "}", b = [1, {c = 2}] }',
        "[]",
    ]
)


@some.composite
def toml_texts(draw: some.DrawFn) -> str:
    """A TOML text with tables of all forms, whole and with comments."""
    lines: list[str] = []
    for number in range(draw(some.integers(0, 4))):
        kind = draw(some.sampled_from(["[t{}]", "[[a{}]]", "[mcp_servers.s{}]", "[ mcp_servers . 's{}'.env ]", ""]))
        key = draw(some.sampled_from(["k{}", '"k {}"', "d{}.e", "d{} . 'é'"])).format(number)
        if kind or not lines:
            lines += [kind.format(number)] if kind else []
            comment = draw(some.sampled_from(["", "  # why", " #[x]"]))
            lines += [f"{draw(some.sampled_from(['', '  ']))}{key} = {draw(toml_values)}{comment}"]
        lines += draw(some.lists(some.sampled_from(["", "# about what follows", "\t"]), max_size=2))
    text = "\n".join(lines) + draw(some.sampled_from(["", "\n", "\n\n"]))
    text = text.replace("\n", draw(some.sampled_from(["\n", "\r\n"])))
    return draw(some.sampled_from(["", "\ufeff"])) + text


CODEX = ("mcp_servers", NAME)
CODEX_OURS = frozenset({"url", "bearer_token_env_var", "command", "args"})
CODEX_URL = {"url": "http://127.0.0.1:8484/mcp", "bearer_token_env_var": "CONVMEM_TOKEN"}
CODEX_COMMAND = {"command": '/opt/"é\x7f/convmem', "args": ["stdio"]}


@given(toml_texts(), some.sampled_from([CODEX_URL, CODEX_COMMAND]))
def test_a_table_that_was_added_goes_again_to_the_byte(text: str, wanted: dict[str, Any]):
    before = toml_edits.parse(text)
    added = toml_edits.merged(text, CODEX, wanted, CODEX_OURS)
    before.setdefault("mcp_servers", {})[NAME] = wanted
    assert toml_edits.parse(added) == before
    assert added.startswith(text)
    assert toml_edits.merged(added, CODEX, wanted, CODEX_OURS) == added
    assert toml_edits.take(added, CODEX) == text


@given(toml_texts(), toml_texts(), some.sampled_from([CODEX_URL, CODEX_COMMAND]))
def test_a_table_between_others_changes_alone(above: str, below: str, wanted: dict[str, Any]):
    newline = "\r\n" if "\r\n" in above else "\n"
    table = '[ mcp_servers."convmem" ] # mine\ncommand="x"\nurl = \'y\' # why\ntool_timeout_sec = 9\n'
    table += "# end of it\n[mcp_servers.convmem.tools]\nx = [\n1]\n# not ours\n[below]\n"
    text = above + newline + table.replace("\n", newline) + below.removeprefix("\ufeff")
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        return
    before = toml_edits.parse(text)
    kept = {"tool_timeout_sec": 9, "tools": {"x": [1]}}
    changed = toml_edits.merged(text, CODEX, wanted, CODEX_OURS)
    before["mcp_servers"][NAME] = kept | wanted
    assert toml_edits.parse(changed) == before
    assert "# mine" in changed
    assert toml_edits.merged(changed, CODEX, wanted, CODEX_OURS) == changed
    taken = toml_edits.take(changed, CODEX)
    assert "# not ours" in taken
    assert "# mine" not in taken
    assert NAME not in toml_edits.parse(taken).get("mcp_servers", {})
    assert unchanged_outside(taken, text)
