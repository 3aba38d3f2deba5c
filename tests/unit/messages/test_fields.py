"""Each type of argument has its range in bytes of UTF-8, and names hold no U+0000."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from convmem.errors import ContentTooLarge
from convmem.messages import fields

# A type, and how many bytes it may have.
SIZES = [
    (fields.SessionId, 1, 256),
    (fields.ToolCallId, 0, 256),
    (fields.Project, 0, 256),
    (fields.Tag, 1, 128),
    (fields.RelationType, 1, 64),
    (fields.IdempotencyKey, 1, 128),
    (fields.Summary, 0, 4096),
    (fields.Query, 1, 1024),
]
NAMES = [fields.SessionId, fields.ToolCallId, fields.Project, fields.Tag, fields.RelationType, fields.IdempotencyKey]


def accepts(kind: Any, value: Any) -> bool:
    try:
        TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(("kind", "bytes_min", "bytes_max"), SIZES)
def test_sizes_are_bytes_of_utf8_and_both_bounds_belong(kind: Any, bytes_min: int, bytes_max: int):
    assert accepts(kind, "a" * bytes_max)
    assert not accepts(kind, "a" * (bytes_max + 1))
    assert accepts(kind, "é" * (bytes_max // 2))
    assert not accepts(kind, "é" * (bytes_max // 2 + 1))
    assert accepts(kind, "") is (bytes_min == 0)


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_holds_no_nul(kind: Any):
    assert not accepts(kind, "a\0b")


@pytest.mark.parametrize("kind", [fields.Summary, fields.Query, fields.Content])
def test_a_text_may_hold_nul(kind: Any):
    assert accepts(kind, "a\0b")


def test_no_text_holds_half_a_code_point():
    assert not accepts(fields.Content, "\ud83d")
    assert not accepts(fields.SessionId, "\udc95")


def test_content_over_its_limit_has_a_code_of_its_own():
    adapter = TypeAdapter(fields.Content)
    assert adapter.validate_python("\U0001f600" * (2**18))
    with pytest.raises(ContentTooLarge) as refusal:
        adapter.validate_python("\U0001f600" * 2**18 + "a")
    assert refusal.value.details == {"field": "content", "bytes": 2**20 + 1, "bytes_max": 2**20}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("01HF7YAT000000000000000007", "01HF7YAT000000000000000007"),
        ("01hf7yat00000000000000000z", "01HF7YAT00000000000000000Z"),
        ("7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"),
    ],
)
def test_an_id_is_kept_in_upper_case(given: str, kept: str):
    assert TypeAdapter(fields.MessageId).validate_python(given) == kept


@pytest.mark.parametrize(
    "given",
    [
        "",
        "01HF7YAT00000000000000000",
        "01HF7YAT0000000000000000070",
        "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        *(f"01HF7YAT00000000000000000{letter}" for letter in "ILOUilou-_ſ日"),
        "01HF7YAT00000000000000000\n",
    ],
)
def test_what_is_no_ulid_is_refused(given: str):
    assert not accepts(fields.MessageId, given)


def test_tags_keep_their_order_and_lose_exact_duplicates_before_they_are_counted():
    tags = TypeAdapter(fields.Tags)
    assert tags.validate_python(["b", "a", "b", "A", "a"]) == ["b", "a", "A"]
    assert len(tags.validate_python([str(number % 32) for number in range(64)])) == 32
    assert not accepts(fields.Tags, [str(number) for number in range(33)])


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        (fields.Importance, 0, 100),
        (fields.Revision, 1, 2**31 - 1),
        (fields.Time, 0, 2**63 - 1),
        (fields.Entries, 1, 65536),
        (fields.ReplyBytes, 1, 8 * 2**20),
    ],
)
def test_numbers_have_bounds_and_both_belong(kind: Any, least: int, most: int):
    assert [accepts(kind, value) for value in (least - 1, least, most, most + 1)] == [False, True, True, False]
    assert accepts(kind, str(least))
    assert accepts(kind, float(least))
    assert not any(accepts(kind, value) for value in (True, least + 0.5, float("inf"), "ten", None, [least]))
