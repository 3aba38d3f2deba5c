"""Each type of argument has its range in code points, shows something, and a name holds no U+0000."""

from typing import Any

import pytest
from hypothesis import given
from pydantic import TypeAdapter, ValidationError

from convmem.memory import fields
from tests.support.texts import texts

# A type, and how many code points it may have.
SIZES = [
    (fields.Key, 200),
    (fields.Value, 2_000),
    (fields.LessonText, 1_000),
    (fields.Content, 4_000),
    (fields.Topic, 500),
]
SHOWN = [kind for kind, _ in SIZES] + [fields.Project]
BLANK = ["", " ", "\n\t", "\u3000", "\u200b", "\ufeff", "\0", "\u2028", "\u202e\u202c"]
# Private use, and what a later Unicode may give a meaning to.
SEEN = [".", "🟡", "\ue000", "\U0001ffff", "\u0301", " x "]


def accepts(kind: Any, value: Any) -> bool:
    try:
        TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def read(kind: Any, value: Any) -> Any:
    return TypeAdapter(kind).validate_python(value, strict=True)


@pytest.mark.parametrize(("kind", "code_points_max"), SIZES)
def test_sizes_are_code_points_and_both_bounds_belong(kind: Any, code_points_max: int):
    for letter in ("a", "é", "🟡"):
        assert accepts(kind, letter)
        assert accepts(kind, letter * code_points_max)
        assert not accepts(kind, letter * (code_points_max + 1))


@pytest.mark.parametrize("kind", SHOWN)
def test_a_text_that_shows_nothing_is_refused(kind: Any):
    assert not [value for value in BLANK if accepts(kind, value)]
    assert [value for value in SEEN if accepts(kind, value)] == SEEN


@pytest.mark.parametrize("kind", SHOWN)
def test_u0000_is_kept_in_texts_and_refused_in_names(kind: Any):
    assert accepts(kind, "a\0b") is (kind not in (fields.Key, fields.Project))


def test_a_project_is_bounded_in_bytes_like_that_of_a_message():
    assert accepts(fields.Project, "é" * 128)
    with pytest.raises(ValidationError, match="must be at most 256 bytes of UTF-8"):
        read(fields.Project, "é" * 129)


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("1", "1"),
        (12, "12"),
        (12.0, "12"),
        ("9" * 25, "9" * 25),
        ("01bx5zzkbk000000000000000a", "01BX5ZZKBK000000000000000A"),
    ],
)
def test_a_target_is_a_number_or_an_id(value: Any, target: str):
    assert read(fields.TargetId, value) == target


@pytest.mark.parametrize(
    "value",
    [True, 1.5, -1, "-1", "", " 1", "1\n", "٣", "9" * 27, "x", "8" + "Z" * 25, "01BX5ZZKBK000000000000000U", None, [1]],
)
def test_anything_else_is_no_target(value: Any):
    assert not accepts(fields.TargetId, value)


@pytest.mark.parametrize("name", ["goals", "a", "usage_stats", "0", "_", "a" * 64])
def test_a_section_has_a_plain_name(name: str):
    assert accepts(fields.SectionName, name)


@pytest.mark.parametrize("name", ["", "Goals", "a b", "a-b", "a\n", "ä", "a" * 65, "../x"])
def test_a_section_has_no_other_name(name: str):
    assert not accepts(fields.SectionName, name)


@pytest.mark.parametrize("name", ["a.json", "A-1_b.2.json", "_.json", "0.json", "console.json", "a" * 123 + ".json"])
def test_a_file_may_be_called_so(name: str):
    assert accepts(fields.FileName, name)


@pytest.mark.parametrize(
    "name",
    [
        *("", ".json", "a", "a.txt", "a.JSON", "../a.json", "a/b.json", "a\\b.json", "a..json", ".a.json", "-a.json"),
        *("a b.json", "a.json\n", "ä.json", "a\0.json", "con.json", "CON.x.json", "nul.json", "Com1.json", "lpt9.json"),
        "a" * 124 + ".json",
    ],
)
def test_a_file_may_not_be_called_so(name: str):
    assert not accepts(fields.FileName, name)


@given(texts)
def test_what_shows_something_stays_so_among_blanks(text: str):
    assert fields.is_blank(text) is False or not any(letter.isprintable() and letter != " " for letter in text)
    assert not fields.is_blank(f"{text}x")
