"""connecting/jsonc_edits: a member is written as its neighbours are, and taken out without a trace."""

import pytest

from convmem.connecting import jsonc_edits
from convmem.connecting.misfits import Misfit

PATH = ("mcpServers", "convmem")
ENTRY = {"url": "u"}
# A text, and the same with the entry: how each style is met.
STYLES = [
    ("", '{\n  "mcpServers": {\n    "convmem": {\n      "url": "u"\n    }\n  }\n}\n'),
    ("// mine", '// mine\n{\n  "mcpServers": {\n    "convmem": {\n      "url": "u"\n    }\n  }\n}\n'),
    ("{}", '{\n  "mcpServers": {\n    "convmem": {\n      "url": "u"\n    }\n  }\n}'),
    ('{"a": 1}', '{"a": 1, "mcpServers": {"convmem": {"url": "u"}}}'),
    ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"mcpServers": {\n\t\t"convmem": {\n\t\t\t"url": "u"\n\t\t}\n\t}\n}\n'),
    (
        '{\r\n "mcpServers": {} // none\r\n}',
        '{\r\n "mcpServers": {\r\n  "convmem": {\r\n   "url": "u"\r\n  }\r\n } // none\r\n}',
    ),
    (
        '{\n  "mcpServers": {\n    "x": {}, // the last one\n    // "y": {},\n  },\n}\n',
        '{\n  "mcpServers": {\n    "x": {}, // the last one\n    "convmem": {\n      "url": "u"\n    },\n'
        '    // "y": {},\n  },\n}\n',
    ),
    (
        '{\n  "mcpServers": {\n    "x": {} // the last one\n  }\n}\n',
        '{\n  "mcpServers": {\n    "x": {}, // the last one\n    "convmem": {\n      "url": "u"\n    }\n  }\n}\n',
    ),
    ('{"mcpServers": {"x": {} // one\n}}', '{"mcpServers": {"x": {}, "convmem": {"url": "u"} // one\n}}'),
]


@pytest.mark.parametrize(("before", "after"), STYLES)
def test_a_member_is_written_as_its_neighbours_are(before: str, after: str):
    assert jsonc_edits.put(before, PATH, ENTRY) == after


@pytest.mark.parametrize(("before", "after"), [one for one in STYLES if "mcpServers" in one[0]])
def test_it_is_taken_out_to_the_byte(before: str, after: str):
    assert jsonc_edits.take(after, PATH) == before
    assert jsonc_edits.take(before, PATH) == before


def test_a_line_end_that_closes_a_comment_stays():
    text = '{"mcpServers": { // one\n "convmem": {}, "x": 1}}'
    assert jsonc_edits.take(text, PATH) == '{"mcpServers": { // one\n  "x": 1}}'
    text = '{"mcpServers": {"x": 1, // one\n "convmem": {} /* two */}}'
    assert jsonc_edits.take(text, PATH) == '{"mcpServers": {"x": 1 // one\n  /* two */}}'


def test_what_a_person_added_to_the_entry_stays_with_its_comments():
    text = '{"mcpServers": {"convmem": {\n  "command": "x", // old\n  "timeout": 9, // mine\n  "url": "o"\n}}}'
    changed = jsonc_edits.merged(text, PATH, {"url": "u", "type": "http"}, frozenset({"command", "url", "type"}))
    expected = '{"mcpServers": {"convmem": { // old\n  "timeout": 9, // mine\n  "url": "u",\n  "type": "http"\n}}}'
    assert changed == expected


def test_an_entry_that_is_no_object_is_replaced():
    changed = jsonc_edits.merged('{"mcpServers": {"convmem": null}}', PATH, ENTRY, frozenset())
    assert changed == '{"mcpServers": {"convmem": {"url": "u"}}}'


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("[]", 1, 1, "outermost value is no object"),
        ('{\n  "mcpServers": []\n}', 2, 17, "'mcpServers' is no object"),
        ('{"mcpServers": null}', 1, 16, "'mcpServers' is no object"),
    ],
)
def test_what_is_no_object_is_refused(text: str, line: int, column: int, said: str):
    for edit in (lambda: jsonc_edits.put(text, PATH, ENTRY), lambda: jsonc_edits.take(text, PATH)):
        with pytest.raises(Misfit, match=said) as caught:
            edit()
        assert (caught.value.line, caught.value.column) == (line, column)


def test_a_snippet_is_a_text_of_its_own():
    assert jsonc_edits.snippet(("a",), {"b": ["é"]}) == '{\n  "a": {\n    "b": [\n      "é"\n    ]\n  }\n}\n'
