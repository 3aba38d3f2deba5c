"""connecting/toml_edits: a table goes to the end, is found in whatever form it is written, and goes without a trace."""

import pytest

from convmem.connecting import toml_edits
from convmem.connecting.misfits import Misfit

PATH = ("mcp_servers", "convmem")
ENTRY = {"url": "u"}
OURS = frozenset({"url", "command", "args"})
TABLE = '[mcp_servers.convmem]\nurl = "u"\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", TABLE),
        ("\ufeff", "\ufeff" + TABLE),
        ("\n", "\n\n" + TABLE),
        ("a = 1\n", "a = 1\n\n" + TABLE),
        ("a = 1 # x", "a = 1 # x\n\n" + TABLE.removesuffix("\n")),
        ("a = 1\r\n", "a = 1\r\n\r\n" + TABLE.replace("\n", "\r\n")),
        ("[mcp_servers]\n# none yet\n", "[mcp_servers]\n# none yet\n\n" + TABLE),
        ("mcp_servers.x.command = 'y'\n", "mcp_servers.x.command = 'y'\n\n" + TABLE),
        ("[[runs]]\nx = 1\n", "[[runs]]\nx = 1\n\n" + TABLE),
    ],
)
def test_a_table_is_added_at_the_end_and_taken_out_to_the_byte(before: str, after: str):
    assert toml_edits.merged(before, PATH, ENTRY, OURS) == after
    assert toml_edits.merged(after, PATH, ENTRY, OURS) == after
    assert toml_edits.take(after, PATH) == before
    assert toml_edits.take(before, PATH) == before


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('[ mcp_servers . "convmem" ]\nurl = "o"\n# about z\n[z]\nb = 1\n', "# about z\n[z]\nb = 1\n"),
        ("[mcp_servers]\nconvmem = {url = 'o'} # mine\nx = {}\n", "[mcp_servers]\nx = {}\n"),
        ("[mcp_servers]\nconvmem.url = 'o'\n'convmem'.command = 'o'\n[z]\n", "[mcp_servers]\n[z]\n"),
        ("mcp_servers.convmem.url = 'o'\n[z]\n", "[z]\n"),
        (
            '[mcp_servers.convmem]\nurl = """\n[z]\n"""\n[z]\nb = 1\n[mcp_servers.convmem.env]\nA = "1"\n[y]\n',
            "[z]\nb = 1\n[y]\n",
        ),
    ],
)
def test_an_entry_is_found_in_every_form(text: str, left: str):
    assert toml_edits.take(text, PATH) == left
    assert toml_edits.value_at(toml_edits.merged(text, PATH, ENTRY, frozenset({*OURS, "env"})), PATH) == ENTRY


def test_what_a_person_added_to_the_table_stays():
    text = '[mcp_servers.convmem]\n{}tool_timeout_sec = 9 # mine\n{}\n[mcp_servers.convmem.env]\nA = "1"\n'
    changed = toml_edits.merged(text.format('  command = "x" # old\n', ""), PATH, ENTRY, OURS)
    assert changed == text.format("", 'url = "u"\n')


def test_a_value_is_replaced_where_it_stands():
    text = "[mcp_servers.convmem]\nurl = 'o' # here\nargs = [\n 'a', # ]\n]\n[z]\n"
    changed = toml_edits.merged(text, PATH, {"url": "u", "args": ["b", 'c"\x7f']}, OURS)
    assert changed == '[mcp_servers.convmem]\nurl = "u" # here\nargs = ["b", "c\\"\\u007f"]\n[z]\n'


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("a = \n", 1, 5, "Invalid value"),
        ("a = 1\na = 2\n", 2, 6, "Cannot overwrite a value"),
        ("[a]\nb = 1\n[a]\n", 3, 3, "twice"),
        ("a = [", 1, 6, "Invalid value"),
        ("b = 1\nmcp_servers = 1\n", 2, 1, "mcp_servers is no table"),
        ("[[mcp_servers]]\nx = 1\n", 1, 1, "mcp_servers is no table"),
        ("b = 1\nmcp_servers = {x = {}}\n", 2, 1, "leaves no room"),
        ("b = 1\nmcp_servers = {convmem = {url = 'o'}}\n", 2, 1, "inside an inline table"),
        ("[mcp_servers]\nconvmem = {url = 'o', tool_timeout_sec = 9}\n", 2, 1, "as a table .* of its own"),
    ],
)
def test_what_cannot_be_added_to_is_refused_with_its_place(text: str, line: int, column: int, said: str):
    with pytest.raises(Misfit, match=said) as caught:
        toml_edits.merged(text, PATH, ENTRY, OURS)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_key_that_is_not_bare_is_quoted():
    assert toml_edits.snippet(("a b", "c"), {"d": "e"}) == '["a b".c]\nd = "e"\n'
