"""What all inputs are made of: the base class, the two leniencies that clients need, and how a refusal is said.

Apart from domain.py, because pydantic is slow to import: a daemon listens before it needs the first input.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from convmem import strict_json
from convmem.errors import Invalid
from convmem.limits import FIELD_CODE_POINTS_MAX, INT64_MAX, INT64_MIN

Ask = TypeVar("Ask", bound=BaseModel)

# 26 characters of Crockford's base 32 without I, L, O, U; 128 bits, so the first is at most 7 (github.com/ulid/spec).
ULID = re.compile("[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}")

# How a rule of an input class is said to a caller, by pydantic's name of the rule; {…} is a fact of the rule.
SENTENCES: Mapping[str, str] = {
    "missing": "is required",
    "extra_forbidden": "is not an argument here",
    "string_type": "must be a string",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "int_type": "must be an integer",
    "bool_type": "must be true or false",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "literal_error": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "value_error": "{error}",
}
# What differs where the input is a record of a file.
SENTENCES_OF_A_FILE: Mapping[str, str] = {**SENTENCES, "extra_forbidden": "is not a field here"}


def _whole(value: Any) -> Any:
    """10, 10.0 and "10" are 10; True, 10.5 and "ten" are refused."""
    if isinstance(value, str) and re.fullmatch("-?[0-9]{1,19}", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be an integer")
    if not INT64_MIN <= value <= INT64_MAX:
        raise ValueError("must fit in 64 bits")
    return value


def _object(value: Any) -> Any:
    """Some clients send an object argument as a JSON string: read it by the same rules as the request."""
    if isinstance(value, str):
        try:
            return strict_json.parse(value.encode())
        except strict_json.MalformedJSON as error:
            raise ValueError(f"must be an object; as a JSON string it cannot be read: {error}") from None
    return value


def sized(bytes_min: int, bytes_max: int) -> AfterValidator:
    """A text of this many bytes of UTF-8."""

    def check(value: str) -> str:
        if not bytes_min <= len(value.encode()) <= bytes_max:
            bounds = f"{bytes_min} to {bytes_max}" if bytes_min else f"at most {bytes_max}"
            raise ValueError(f"must be {bounds} bytes of UTF-8")
        return value

    return AfterValidator(check)


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not hold U+0000")
    return value


WITHOUT_NUL = AfterValidator(_without_nul)
AsWhole = BeforeValidator(_whole)
Whole = Annotated[int, AsWhole]
FromJSON = BeforeValidator(_object)


class Input(BaseModel):
    """Base of all inputs: frozen, strict types, no argument that is not named."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @property
    def size_bytes(self) -> int:
        """A small command; inputs that carry text say more."""
        return 1024


def checked(input_class: type[Ask], arguments: Mapping[str, Any]) -> Ask:
    """Return the arguments as an input; Invalid with `field` for the first thing that is wrong with them.

    Many clients send null for what their model left out, so null is the same as absent; a name that is no argument is
    refused whatever its value.
    """
    return exact(
        input_class,
        {name: value for name, value in arguments.items() if value is not None or name not in input_class.model_fields},
        SENTENCES,
    )


def exact(input_class: type[Ask], given: Mapping[str, Any], sentences: Mapping[str, str] = SENTENCES_OF_A_FILE) -> Ask:
    """The same for what a program wrote: null is a value like any other."""
    try:
        return input_class.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"]))
    if len(field) > FIELD_CODE_POINTS_MAX:
        field = field[:FIELD_CODE_POINTS_MAX] + "…"
    raise Invalid(f"{field or 'the arguments'} {_sentence(first, sentences)}", field=field)


def _sentence(error: ErrorDetails, sentences: Mapping[str, str]) -> str:
    """What is wrong, in words of the interface: the library's own would show its types and the value."""
    sentence = sentences.get(error["type"], "is not valid")
    return sentence.format(**error["ctx"]) if "ctx" in error else sentence
