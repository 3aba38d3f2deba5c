"""docs/tools.md, written from the tools themselves: what clients are shown is what people read."""

from collections.abc import Iterator, Mapping
from typing import Any

from convmem.catalog import Catalog
from convmem.domain import Tool

HEAD = """# Tools

Written from the tools themselves; a test holds them equal. Every argument that is not required may be left out, and
one that is not listed is refused. Times are milliseconds since 1970 in UTC; ids, cursors and sequences are strings.
"""


def written(catalog: Catalog) -> str:
    """The whole page."""
    parts = [HEAD, *_profiles(catalog)]
    for name, tool in catalog.tools.items():
        parts += [
            f"\n## {name}\n",
            f"\n{tool.description}\n",
            f"\n{_facts(tool)}\n",
            *_arguments(catalog.schemas[name]),
        ]
    return "".join(parts)


def _profiles(catalog: Catalog) -> Iterator[str]:
    yield "\n| path | tools |\n|---|---|\n"
    for name, tools in catalog.profiles.items():
        yield f"| `/mcp/{name}` | {' '.join(f'`{tool}`' for tool in tools)} |\n"


def _facts(tool: Tool) -> str:
    facts = ["Reads only." if tool.reads_only else "Changes what is stored."]
    facts += ["Takes something away."] if tool.destructive else []
    facts += ["The same call twice is as good as once."] if tool.idempotent else []
    return " ".join([*facts, f"Needs the scope `{tool.scope}`."])


def _arguments(schema: Mapping[str, Any]) -> Iterator[str]:
    properties: Mapping[str, Any] = schema["properties"]
    if not properties:
        yield "\nNo arguments.\n"
        return
    yield "\n| argument | type | what |\n|---|---|---|\n"
    for name, of in properties.items():
        required = ", required" if name in schema.get("required", ()) else ""
        yield f"| `{name}` | {of['type']}{required} | {_described(of)} |\n"


def _described(of: Mapping[str, Any]) -> str:
    sentence = of["description"].replace("|", "\\|").replace("\n", " ")
    if "enum" in of:
        sentence += " One of " + ", ".join(f"`{value}`" for value in of["enum"]) + "."
    return sentence
