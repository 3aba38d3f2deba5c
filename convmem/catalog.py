"""Every tool by name, the profiles that show some of them, and the one place where an error becomes an answer.

A client sends the list of tools to its model with every turn, so a profile is what such a list may cost. Schemas are
flattened here to the plain subset that every provider takes: one odd keyword in one tool makes some of them refuse
the whole list.

Rejected: writing the schemas by hand beside the input classes. Two descriptions of one thing drift; one function and a
snapshot per tool do not.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from pydantic import BaseModel

from convmem.domain import Access, Domain, Tool
from convmem.errors import ConvmemError, Forbidden
from convmem.inputs import checked
from convmem.reach import reaches
from convmem.resources import Resource

# What each profile shows, in this order, of the tools that exist. `all` shows everything.
PROFILES: Mapping[str, tuple[str, ...]] = {
    "core": (
        *("remember", "recall", "get_profile", "save_lesson", "forget"),
        *("write_message", "read_messages", "search_messages"),
    ),
    "messages": (
        *("write_message", "update_message", "read_messages", "search_messages", "delete_message"),
        *("rebuild_index", "get_system_health"),
    ),
    "memory": (
        *("remember", "recall", "get_profile", "save_lesson", "search_history", "forget", "memory_stats"),
        *("get_recent_interactions", "export_memory"),
    ),
    "tables": (
        *("info", "create", "get", "list", "update", "delete", "content_view", "content_replace", "content_insert"),
        *("row_restore", "row_history", "reload", "schema_create", "schema_update", "schema_delete", "schema_batch"),
        *("data_snapshot", "alias_create", "alias_list", "alias_run", "alias_delete", "query_aggregate"),
    ),
}
ALL = "all"
RESOURCE_PROFILES = ("tables", ALL)


class Reply(NamedTuple):
    """A tool's answer or refusal: facts for programs, the same as text for the model, and whether it is a refusal."""

    facts: Mapping[str, Any]
    text: str
    refused: bool


class Catalog:
    """All tools of all domains. `profiles` maps a profile's name to its tools by name, in the order they are shown."""

    def __init__(self, domains: Iterable[Domain], profiles: Mapping[str, tuple[str, ...]] = PROFILES) -> None:
        domains = tuple(domains)
        self.tools: dict[str, Tool] = {}
        for tool in (tool for domain in domains for tool in domain.tools):
            assert tool.name not in self.tools, tool.name
            self.tools[tool.name] = tool
        self.schemas = {name: plain_schema(tool.input) for name, tool in self.tools.items()}
        shown = {
            profile: {name: self.tools[name] for name in names if name in self.tools}
            for profile, names in profiles.items()
        }
        self.profiles: Mapping[str, Mapping[str, Tool]] = {
            **{profile: tools for profile, tools in shown.items() if tools},
            ALL: self.tools,
        }
        with_resources = [domain for domain in domains if domain.resources]
        assert len(with_resources) <= 1, "one domain at most has resources"
        self._of_resources = next(iter(with_resources), None)
        lost = set(self.tools).difference(*shown.values())
        assert not lost, f"in no profile: {lost}"

    def resources(self, profile: str) -> tuple[Resource, ...]:
        """The resources that a profile shows."""
        domain = self._of_resources
        return domain.resources if domain is not None and profile in RESOURCE_PROFILES else ()

    async def resource_tables(self, access: Access) -> Sequence[str]:
        """The tables that resources are read for."""
        domain = self._of_resources
        assert domain is not None
        return () if domain.resource_tables is None else await domain.resource_tables(access)

    async def call(self, tool: Tool, arguments: Mapping[str, Any], access: Access) -> Reply:
        """Check the arguments, run the tool and return its answer, or the refusal that says who can act.

        A ConvmemError of any family is an answer; anything else is a fault of ours and goes through.
        """
        try:
            if not reaches(access.reach, tool.scope):
                raise Forbidden(
                    f"this token may only {access.reach}; {tool.name} needs {tool.scope}", needed=tool.scope
                )
            answer = await tool.handle(access, checked(tool.input, arguments))
        except ConvmemError as error:
            return _refusal(error)
        text = msgspec.json.encode(answer.facts).decode() if answer.text is None else answer.text
        return Reply(answer.facts, text, refused=False)


def _refusal(error: ConvmemError) -> Reply:
    return Reply({"error": error.facts()}, f"{error.code}: {error.message}", refused=True)


# What a schema may say. Everything else pydantic may ever add is dropped by name or stops the start.
KEPT = {
    *("type", "description", "enum", "pattern", "minLength", "maxLength", "minItems", "maxItems"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
# A bound behind a validator of ours keeps pydantic's own name for it.
RENAMED = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
DROPPED = {"title", "format", "default", "$defs"}
STRUCTURE = {"properties", "required", "additionalProperties", "items", "anyOf", "const", "$ref"}


def plain_schema(input_class: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of an input class, reduced to what every client and provider takes.

    References are inlined, an optional argument is one that is not required (never a union with null), an object
    without named members is only described. AssertionError if the class says something that cannot be said so.
    """
    schema = input_class.model_json_schema()
    flat = _flat(schema, schema.get("$defs", {}), input_class.__name__)
    # The tool has its own description, and an input without arguments is an object all the same.
    flat.pop("description", None)
    return {"type": "object", "properties": {}, **flat, "additionalProperties": False}


def _flat(schema: Mapping[str, Any], definitions: Mapping[str, Any], place: str) -> dict[str, Any]:
    schema = {RENAMED.get(key, key): value for key, value in _resolved(schema, definitions).items()}
    unknown = set(schema) - KEPT - DROPPED - STRUCTURE
    assert not unknown, f"{place}: {unknown}"
    flat = {key: value for key, value in schema.items() if key in KEPT}
    if "const" in schema:
        flat["enum"] = [schema["const"]]
    if schema.get("default") is not None:
        flat["default"] = schema["default"]
    assert isinstance(flat.get("type"), str), f"{place} has no type, or several"
    if "items" in schema:
        flat["items"] = _flat(schema["items"], definitions, f"{place}[]")
    if "properties" in schema:
        flat["properties"] = {
            name: _flat(inner, definitions, f"{place}.{name}") for name, inner in schema["properties"].items()
        }
        for name, inner in flat["properties"].items():
            assert inner.get("description"), f"{place}.{name} is not described"
        if schema.get("required"):
            flat["required"] = schema["required"]
        assert schema.get("additionalProperties") is False, f"{place} takes arguments that it does not name"
        flat["additionalProperties"] = False
    return flat


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references, and take the one alternative that is not null; what stands beside them wins."""
    while "$ref" in schema or "anyOf" in schema:
        beside = {key: value for key, value in schema.items() if key not in {"$ref", "anyOf"}}
        if "$ref" in schema:
            inner = definitions[schema["$ref"].removeprefix("#/$defs/")]
        else:
            alternatives = [one for one in schema["anyOf"] if one != {"type": "null"}]
            assert len(alternatives) == 1, "an argument has one type"
            inner = alternatives[0]
        schema = {**inner, **beside}
    return schema
