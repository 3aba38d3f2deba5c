"""inputs.py: the leniencies that clients need, and nothing beyond them."""

from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from convmem.errors import Invalid
from convmem.inputs import ULID, WITHOUT_NUL, FromJSON, Input, Whole, checked, exact, sized


class Inner(Input):
    """An object argument."""

    name: str = Field(description="A name.")


class Ask(Input):
    """An input with one of each."""

    count: Whole = Field(default=1, ge=0, le=100, description="A number.")
    inner: Annotated[Inner | None, FromJSON] = Field(default=None, description="An object.")


@pytest.mark.parametrize("value", [10, 10.0, "10"])
def test_ten_is_ten_however_it_is_written(value: Any) -> None:
    assert Ask.model_validate({"count": value}).count == 10


@pytest.mark.parametrize(
    "value",
    [True, False, 10.5, "10.0", "ten", "", " 10", "١٠", "0x10", "1e1", 1e300, float("inf"), 2**63, "9" * 30, None, [1]],
)
def test_what_is_no_whole_number_of_64_bits_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        Ask.model_validate({"count": value})


@pytest.mark.parametrize("value", [-1, 101, "101", 101.0])
def test_the_bounds_hold_however_the_number_is_written(value: Any) -> None:
    with pytest.raises(ValidationError):
        Ask.model_validate({"count": value})


@pytest.mark.parametrize("value", [{"name": "a"}, '{"name": "a"}', ' {"name":"a"} '])
def test_an_object_may_come_as_a_json_string(value: Any) -> None:
    assert Ask.model_validate({"inner": value}).inner == Inner(name="a")


@pytest.mark.parametrize(
    "value",
    [
        '{"name": "a", "name": "b"}',
        '{"name": NaN}',
        '{"name": "\\ud800"}',
        "{",
        "[]",
        '"a"',
        '{"name": 1}',
        '{"other": "a"}',
    ],
)
def test_a_json_string_is_read_by_the_rules_of_a_request(value: str) -> None:
    with pytest.raises(ValidationError):
        Ask.model_validate({"inner": value})


def test_an_argument_that_is_not_named_is_refused() -> None:
    with pytest.raises(ValidationError):
        Ask.model_validate({"counts": 1})


def test_an_input_does_not_change() -> None:
    ask = Ask(count=1)
    with pytest.raises(ValidationError):
        ask.count = 2  # type: ignore[misc]
    assert ask.size_bytes > 0


def test_null_is_absent_for_a_caller_and_a_value_for_a_file() -> None:
    assert checked(Ask, {"count": None}) == Ask()
    with pytest.raises(Invalid) as refused:
        exact(Ask, {"count": None})
    assert refused.value.details == {"field": "count"}
    for look in (checked, exact):
        with pytest.raises(Invalid) as refused:
            look(Ask, {"other": None})
        assert refused.value.details == {"field": "other"}


def test_a_ulid_has_its_own_alphabet():
    assert ULID.fullmatch("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
    assert not ULID.fullmatch("01HF7YAT00000000000000000U")
    assert not ULID.fullmatch("8" + "Z" * 25)


class Named(Input):
    """An input with a name."""

    name: Annotated[str, WITHOUT_NUL, sized(1, 4)]


@pytest.mark.parametrize(("name", "is_taken"), [("é", True), ("éé", True), ("ééa", False), ("", False), ("a\0", False)])
def test_a_name_has_its_bytes_and_no_u0000(name: str, is_taken: bool):
    if is_taken:
        assert exact(Named, {"name": name}).name == name
    else:
        with pytest.raises(Invalid, match="name must"):
            exact(Named, {"name": name})


@pytest.mark.parametrize(("bytes_min", "bounds"), [(0, "at most 4"), (1, "1 to 4")])
def test_bounds_are_said_so_that_empty_is_not_called_a_size_where_it_means_none(bytes_min: int, bounds: str):
    with pytest.raises(ValidationError, match=f"must be {bounds} bytes of UTF-8"):
        TypeAdapter(Annotated[str, sized(bytes_min, 4)]).validate_python("12345")
