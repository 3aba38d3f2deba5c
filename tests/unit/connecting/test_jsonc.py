"""connecting/jsonc: comments and trailing commas are read, and what two readers could read two ways is refused."""

import pytest

from convmem.connecting import jsonc
from convmem.connecting.jsonc import Number
from convmem.connecting.misfits import Misfit
from convmem.limits import CONFIG_LEVELS_MAX


def test_comments_and_commas_behind_the_last_say_nothing():
    text = '\ufeff// {"a": 0}\n{"a": [1, true, /* ] */ null,], "b//": "/*", // , }\n}\n/* end */'
    assert jsonc.parse(text).plain == {"a": [Number("1"), True, None], "b//": "/*"}


def test_escapes_mean_what_they_mean_and_numbers_stay_as_written():
    text = r'{"\u006d": "\ud83d\ude00\ud800\"\\\/\n", "n": -0.0E+400}'
    assert jsonc.parse(text).plain == {"m": '😀\ud800"\\/\n', "n": Number("-0.0E+400")}


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "a value is missing"),
        ("{", 1, 2, "a key in double quotes"),
        ("{'a': 1}", 1, 2, "a key in double quotes"),
        ('{"a" 1}', 1, 6, "a colon"),
        ('{"a":}', 1, 6, "a value is missing"),
        ('{"a": 1\n "b": 2}', 2, 2, "a comma or }"),
        ('{"a": [1 2]}', 1, 10, "a comma or ]"),
        ('{"a": 1,, "b": 2}', 1, 9, "a key in double quotes"),
        ('{"a": 01}', 1, 8, "a comma or }"),
        ('{"a": +1}', 1, 7, "not a value"),
        ('{"a": NaN}', 1, 7, "not a value"),
        ('{"a": "x\ny"}', 1, 7, "the string does not end"),
        ('{"a": "\\x"}', 1, 7, "the string does not end"),
        ('{"a": 1} x', 1, 10, "nothing may stand behind"),
        ('{"a": 1} /* x', 1, 10, "the comment does not end"),
        ('{"a": 1,\r\n  "b": {"c": 1, "\\u0063": 2}}', 2, 17, "'c' stands here a second time"),
        ('\ufeff{"é": ?}', 1, 7, "not a value"),
        ("[" * 1000, 1, CONFIG_LEVELS_MAX + 1, "levels"),
    ],
)
def test_a_misfit_has_a_place_and_a_reason(text: str, line: int, column: int, said: str):
    with pytest.raises(Misfit, match=said) as caught:
        jsonc.parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
