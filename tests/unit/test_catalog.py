"""Tests of the catalog: profiles, plain schemas, and how every error becomes an answer."""

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticKnownError

from convmem import catalog, inputs
from convmem.catalog import Catalog, plain_schema
from convmem.domain import Answer, Domain, Origin, Tool
from convmem.errors import Busy, CallerError, Conflict, ConvmemError, OperatorError, RetryError, StoreFailed
from convmem.inputs import FromJSON, Input, Whole
from tests.support.toy import DOMAIN, PROFILES, TOOLS, Nothing, Toy, toy_catalog


def refuse_long(value: str) -> str:
    if len(value.encode()) > 4:
        raise ValueError("must have at most 4 bytes")
    return value


class Inner(Input):
    """An inner thing."""

    type: str = Field(description="Its type.")
    title: str | None = Field(default=None, description="Its title.")


class Everything(Input):
    """All kinds of arguments."""

    name: Annotated[str, AfterValidator(refuse_long)] = Field(description="A name.", max_length=9)
    limit: Whole = Field(default=50, ge=1, le=500, description="How many.")
    cursor: str | None = Field(default=None, description="Where to go on.")
    revision: Annotated[Whole, Field(ge=1)] | None = Field(default=None, description="Which revision.")
    role: Literal["user", "assistant"] | None = Field(default=None, description="Whose.")
    only: Literal["one"] = Field(default="one", description="The only choice.")
    inner: Annotated[Inner, FromJSON] | None = Field(default=None, description="An object.")
    inners: list[Inner] = Field(default=[], max_length=2, description="Several.")
    data: Annotated[dict[str, Any], FromJSON] | None = Field(default=None, description="Free: any members.")
    is_deep: bool = Field(default=False, description="Deeply.")


INNER = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "description": "Its type."},
        "title": {"type": "string", "description": "Its title."},
    },
    "required": ["type"],
    "additionalProperties": False,
}


def test_a_schema_says_everything_without_what_providers_refuse():
    assert plain_schema(Everything) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 9, "description": "A name."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50, "description": "How many."},
            "cursor": {"type": "string", "description": "Where to go on."},
            "revision": {"type": "integer", "minimum": 1, "description": "Which revision."},
            "role": {"type": "string", "enum": ["user", "assistant"], "description": "Whose."},
            "only": {"type": "string", "enum": ["one"], "default": "one", "description": "The only choice."},
            "inner": {**INNER, "description": "An object."},
            "inners": {
                "type": "array",
                "items": {**INNER, "description": "An inner thing."},
                "maxItems": 2,
                "default": [],
                "description": "Several.",
            },
            "data": {"type": "object", "description": "Free: any members."},
            "is_deep": {"type": "boolean", "default": False, "description": "Deeply."},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_a_tool_without_arguments_still_takes_an_object():
    assert plain_schema(Nothing) == {"type": "object", "properties": {}, "additionalProperties": False}


class Undescribed(Input):
    name: str


class TwoTypes(Input):
    name: str | bool = Field(description="Either.")


class Untyped(Input):
    name: Any = Field(description="Anything.")


class Loose(BaseModel):
    name: str = Field(description="In a class that takes more than it names.")


class Nested(Input):
    inner: Loose = Field(description="An object.")


@pytest.mark.parametrize("input_class", [Undescribed, TwoTypes, Untyped, Nested])
def test_what_cannot_be_said_plainly_stops_the_start(input_class: type[Input]):
    with pytest.raises(AssertionError):
        plain_schema(input_class)


WRONG = [
    ({}, "name", "name is required"),
    ({"name": "n", "nmae": "x"}, "nmae", "nmae is not an argument here"),
    ({"name": 5}, "name", "name must be a string"),
    ({"name": "0123456789"}, "name", "name must have at most 9 characters"),
    ({"name": "éé1"}, "name", "name must have at most 4 bytes"),
    ({"name": "n", "limit": 0}, "limit", "limit must be at least 1"),
    ({"name": "n", "limit": 501}, "limit", "limit must be at most 500"),
    ({"name": "n", "limit": 10.5}, "limit", "limit must be an integer"),
    ({"name": "n", "limit": True}, "limit", "limit must be an integer"),
    ({"name": "n", "limit": "ten"}, "limit", "limit must be an integer"),
    ({"name": "n", "role": "root"}, "role", "role must be 'user' or 'assistant'"),
    ({"name": "n", "is_deep": "yes"}, "is_deep", "is_deep must be true or false"),
    ({"name": "n", "inner": {"title": "t"}}, "inner.type", "inner.type is required"),
    ({"name": "n", "inner": 3}, "inner", "inner must be an object"),
    ({"name": "n", "inners": {}}, "inners", "inners must be a list"),
    ({"name": "n", "inners": [{"type": 1}]}, "inners.0.type", "inners.0.type must be a string"),
    ({"name": "n", "data": [1]}, "data", "data must be an object"),
    (
        {"name": "n", "data": '{"a":1,"a":2}'},
        "data",
        "data must be an object; as a JSON string it cannot be read: a key stands twice in one object",
    ),
]


@pytest.mark.parametrize(("arguments", "field", "sentence"), WRONG, ids=[sentence for *_, sentence in WRONG])
def test_a_wrong_argument_is_named_without_its_value(arguments: dict[str, Any], field: str, sentence: str):
    with pytest.raises(CallerError) as refused:
        catalog.checked(Everything, arguments)
    assert refused.value.code == "VALIDATION_ERROR"
    assert (refused.value.details, refused.value.message) == ({"field": field}, sentence)


def test_a_name_that_a_caller_made_up_is_cut():
    with pytest.raises(CallerError) as refused:
        catalog.checked(Everything, {"name": "n", "x" * 10_000: 1})
    assert len(refused.value.details["field"]) <= 129


@pytest.mark.parametrize("value", [10, 10.0, "10"])
def test_an_integer_may_come_in_three_spellings(value: Any):
    assert catalog.checked(Everything, {"name": "n", "limit": value}).limit == 10


def test_an_object_may_come_as_a_json_string():
    assert catalog.checked(Everything, {"name": "n", "inner": '{"type":"t"}'}).inner == Inner(type="t")


def test_every_sentence_has_the_facts_of_its_rule():
    made = {"missing": {}, "extra_forbidden": {}, "model_type": {"class_name": "C"}, "value_error": {"error": "no"}}
    facts = {"min_length": 1, "max_length": 1, "gt": 1, "ge": 1, "lt": 1, "le": 1, "pattern": "p", "expected": "e"}
    facts |= {"field_type": "F", "actual_length": 2}
    for kind, sentence in inputs.SENTENCES.items():
        PydanticKnownError(kind, made.get(kind, facts))  # the library knows the rule by this name
        assert "{" not in sentence.format(**{**facts, **made.get(kind, {})})


async def call(name: str, arguments: dict[str, Any]) -> catalog.Reply:
    known = toy_catalog()
    return await known.call(known.tools[name], arguments, Toy().access(Origin("local", "http"), None))


async def test_facts_are_the_text_unless_the_tool_has_prose():
    assert await call("toy_write", {"text": "é"}) == (
        {"note_id": "1", "text": "é"},
        '{"note_id":"1","text":"é"}',
        False,
    )
    assert await call("toy_read", {}) == ({"notes": []}, "0 notes", False)


REFUSALS = {
    "conflict": {"code": "CONFLICT", "message": "somebody was faster", "retryable": False, "current_revision": 7},
    "busy": {"code": "BUSY", "message": "too much to do", "retryable": True, "retry_after_ms": 100},
    "failed": {"code": "STORE_FAILED", "message": "the disk is gone", "retryable": False},
}


@pytest.mark.parametrize("how", REFUSALS)
async def test_an_error_of_each_family_is_an_answer(how: str):
    reply = await call("toy_refuse", {"how": how})
    assert reply.refused
    assert reply.facts == {"error": REFUSALS[how]}
    assert reply.text == f"{REFUSALS[how]['code']}: {REFUSALS[how]['message']}"
    json.dumps(reply.facts)


def test_the_toy_refuses_in_the_way_of_each_family():
    families = {CallerError: Conflict, RetryError: Busy, OperatorError: StoreFailed}
    assert set(families) == set(ConvmemError.__subclasses__())


async def test_a_wrong_argument_is_an_answer_too():
    reply = await call("toy_write", {"text": 1})
    assert reply == (
        {
            "error": {
                "code": "VALIDATION_ERROR",
                "message": "text must be a string",
                "retryable": False,
                "field": "text",
            }
        },
        "VALIDATION_ERROR: text must be a string",
        True,
    )


async def test_a_fault_of_ours_is_no_answer():
    with pytest.raises(AssertionError, match="secret"):
        await call("toy_break", {})


def test_a_profile_shows_what_exists_in_its_own_order():
    known = toy_catalog()
    assert list(known.profiles) == ["core", "messages", "all"]
    assert list(known.profiles["core"]) == list(PROFILES["core"])
    assert list(known.profiles["all"]) == [tool.name for tool in TOOLS]


def test_a_profile_without_a_tool_is_absent():
    known = Catalog([DOMAIN], {**PROFILES, "memory": ("remember",)})
    assert "memory" not in known.profiles


def test_the_profiles_have_the_promised_sizes():
    sizes = {profile: len(names) for profile, names in catalog.PROFILES.items()}
    assert sizes == {"core": 8, "messages": 7, "memory": 9, "tables": 22}
    assert len(set().union(*catalog.PROFILES.values())) == 38


def test_a_tool_that_no_profile_shows_stops_the_start():
    with pytest.raises(AssertionError, match="toy_"):
        Catalog([DOMAIN], {"core": ("toy_read",)})


def test_two_tools_of_one_name_stop_the_start():
    async def handle(_: Any, __: Any) -> Answer:
        return Answer({})

    twin = Tool(
        name="toy_read", title="t", description="d", input=Nothing, handle=handle, scope="read", reads_only=True
    )
    with pytest.raises(AssertionError, match="toy_read"):
        Catalog([DOMAIN, Domain(name="twin", create="", deciders={}, appliers={}, tools=(twin,))], PROFILES)
