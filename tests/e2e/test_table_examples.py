"""The page of examples, executed: each call in its order over the shipped schemas, and each answer as it says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemons import Daemon, daemon
from tests.support.pages import blocks, page
from tests.support.source import REPOSITORY

pytestmark = pytest.mark.slow
SCHEMAS = sorted((REPOSITORY / "contrib" / "schemas").glob("*.schema.yaml"))


def name_of(schema: Path) -> str:
    return schema.name.removesuffix(".schema.yaml")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Daemon]:
    for schema in SCHEMAS:
        directory = tmp_path / "data" / "tables" / name_of(schema)
        directory.mkdir(parents=True)
        (directory / "schema.yaml").write_bytes(schema.read_bytes())
    with daemon(tmp_path / "data") as started:
        yield started
        started.stop()


def is_part(expected: Any, found: Any) -> bool:
    """True if all that is expected is there; an object may have more, a list may not."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(is_part(value, found.get(name)) for name, value in expected.items())
    if isinstance(expected, list):
        is_as_long = isinstance(found, list) and len(expected) == len(found)
        return is_as_long and all(is_part(one, other) for one, other in zip(expected, found, strict=True))
    return bool(expected == found)


def test_every_shipped_schema_has_its_example_and_each_does_what_it_says(running: Daemon):
    text = page("table-examples.md")
    assert sorted(re.findall("^## (.*)$", text, re.MULTILINE)) == [name_of(schema) for schema in SCHEMAS]
    client = running.client("tables")
    assert client.call("reload")["broken"] == []
    compared = 0
    answer: dict[str, Any] = {}
    for line in (line for block in blocks(text, "json") for line in block.splitlines()):
        if line.startswith("-> "):
            expected = json.loads(line.removeprefix("-> "))
            assert is_part(expected, answer), (expected, answer)
            compared += 1
        else:
            call = json.loads(line)
            answer = client.call(call["tool"], **call["arguments"])
    assert compared >= len(SCHEMAS)
