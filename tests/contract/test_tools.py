"""What clients see of each tool: a snapshot per tool, and the rules that hold for all of them.

CONVMEM_UPDATE=1 rewrites the snapshots; a missing one fails.
"""

import importlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from convmem.catalog import PROFILES, Catalog
from convmem.domain import Domain
from convmem.limits import KIB
from convmem.transport.protocol import describe
from tests.support.source import PACKAGE

SNAPSHOTS = Path(__file__).parent / "tools"
UPDATE = os.environ.get("CONVMEM_UPDATE") == "1"
BYTES_MAX = {"core": 9_000, "tables": 20_000, "all": 36_000}
DESCRIPTION_CODE_POINTS_MAX = 1024
LEVELS_MAX = 4
ALLOWED = {
    *("type", "description", "properties", "required", "additionalProperties", "items", "enum", "default", "pattern"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
}
TYPES = {"string", "integer", "number", "boolean", "array", "object"}


def domains() -> list[Domain]:
    """Every domain of the package."""
    found = [importlib.import_module(f"convmem.{path.parent.name}") for path in sorted(PACKAGE.glob("*/__init__.py"))]
    return [module.DOMAIN for module in found if hasattr(module, "DOMAIN")]


CATALOG = Catalog(domains())
SHOWN = {name: describe(tool, CATALOG.schemas[name]) for name, tool in CATALOG.tools.items()}


def positions(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every place of a schema where a schema stands, with the names that lead to it."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from positions(inner, (*path, name))
    if "items" in schema:
        yield from positions(schema["items"], (*path, "[]"))


@pytest.mark.parametrize("name", SHOWN)
def test_a_tool_looks_as_it_did(name: str):
    snapshot = SNAPSHOTS / f"{name}.json"
    text = json.dumps(SHOWN[name], indent=2, ensure_ascii=False) + "\n"
    if UPDATE:
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_text(text, encoding="utf-8")
    assert snapshot.is_file(), f"{name} has no snapshot: CONVMEM_UPDATE=1 writes it"
    assert text == snapshot.read_text(encoding="utf-8")


def test_no_snapshot_outlives_its_tool():
    assert {path.stem for path in SNAPSHOTS.glob("*")} <= set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_a_schema_is_plain(name: str):
    schema = SHOWN[name]["inputSchema"]
    for dialect in (jsonschema.Draft7Validator, jsonschema.Draft202012Validator):
        dialect.check_schema(schema)
    assert schema["type"] == "object"
    for path, inner in positions(schema):
        place = f"{name}: {'.'.join(path)}"
        assert set(inner) <= ALLOWED, place
        assert inner["type"] in TYPES, place
        assert inner.get("default", "") is not None, place
        assert len(path) <= LEVELS_MAX, place
        assert len(inner.get("description", "")) <= DESCRIPTION_CODE_POINTS_MAX, place
        assert inner["type"] != "array" or inner["items"], place
        if path and path[-1] != "[]":
            assert inner.get("description"), place
        if "properties" in inner:
            assert inner["additionalProperties"] is False, place
            assert set(inner.get("required", [])) <= set(inner["properties"]), place


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_client_must_send_back_exactly_is_no_number(name: str):
    for path, inner in positions(SHOWN[name]["inputSchema"]):
        if path and re.search(r"(^|_)(ids?|cursor|sequence)$", path[-1]):
            assert inner["type"] in {"string", "array"}, f"{name}: {path}"


@pytest.mark.parametrize("name", SHOWN)
def test_a_tool_says_what_it_does_to_the_world(name: str):
    assert re.fullmatch("[a-z_]{1,40}", name)
    shown = SHOWN[name]
    assert 0 < len(shown["description"]) <= DESCRIPTION_CODE_POINTS_MAX
    assert shown["title"]
    hints = {key: value for key, value in shown["annotations"].items() if key != "title"}
    assert set(hints) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert all(type(value) is bool for value in hints.values())
    assert hints["openWorldHint"] is False
    assert not (hints["readOnlyHint"] and hints["destructiveHint"])
    assert (CATALOG.tools[name].scope == "read") == hints["readOnlyHint"]


@pytest.mark.parametrize("profile", BYTES_MAX)
def test_a_profile_costs_a_model_little(profile: str):
    tools = [SHOWN[name] for name in CATALOG.profiles.get(profile, {})]
    assert len(msgspec.json.encode(tools)) <= BYTES_MAX[profile] < 64 * KIB


def test_every_tool_is_in_a_profile_and_the_names_are_unique_in_any_case():
    assert set(SHOWN) <= set().union(*PROFILES.values())
    assert len({name.lower() for name in SHOWN}) == len(SHOWN)
