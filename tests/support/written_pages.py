"""Pages of the docs that are written from the code: what clients are shown is what people read."""

from collections.abc import Iterator, Mapping
from typing import Any

from convmem import limits
from convmem.catalog import Catalog
from convmem.doctor import local, local_findings, remote, remote_findings
from convmem.doctor.findings import Kind
from convmem.domain import Tool

UNITS = {"KIB", "MIB"}
ABBREVIATIONS = {"JSON": "JSON", "MS": "ms", "S": "s", "ID": "id", "INT64": "int64", "STDIO": "stdio"}
TOOLS_HEAD = """# Tools

Written from the tools themselves; a test holds them equal. Every argument that is not required may be left out, and
one that is not listed is refused. Times are milliseconds since 1970 in UTC; ids, cursors and sequences are strings.
"""


LIMITS_HEAD = """# Limits

Every bound, written from the code; a test holds them equal. `max` and `min` are inclusive, sizes of text are bytes of
UTF-8. At a bound a request is refused or an answer is cut by rule; nothing grows.

| bound | value |
|---|---:|
"""


TROUBLESHOOTING_HEAD = """# Troubleshooting

`convmem doctor` looks at the data directory of this machine, whoever holds it, and what a client would meet.
`convmem doctor URL` goes to a daemon elsewhere, step by step, as a client would, and stops where the next step would
be senseless. It shows the token from `CONVMEM_TOKEN` or `--token-file` only to what has said that it is convmem and
wants one, follows no redirect, and each step ends within five seconds. Neither changes anything.

Each line is an outcome, a finding, what was seen, and for what is not `ok` the one thing to change. `--json` prints a
list of `{check, finding, outcome, seen, change}`; the check is the beginning of the finding's name.

| status | meaning |
|---:|---|
| 0 | nothing failed; there may be warnings |
| 2 | wrong usage, or a setting, URL or token that cannot be meant |
| 10, 11, 12, 14, 15 | a start would be refused with it: [errors.md](errors.md) |
| 1 | anything else failed |

The tables are written from the code; a test holds them equal.
"""


def troubleshooting_page() -> str:
    """The whole page of what the doctor can find."""
    parts = [TROUBLESHOOTING_HEAD]
    for heading, kinds, steps in (
        ("On this machine", local_findings.KINDS, local.CHECKS),
        ("Behind a URL", remote_findings.KINDS, remote.STEPS),
    ):
        parts.append(f"\n## {heading}\n\nIn this order: {', '.join(steps)}.\n")
        parts.append("\n| finding | outcome | meaning |\n|---|---|---|\n")
        parts += [f"| `{name}` | {_outcome(kind)} | {kind.meaning} |\n" for name, kind in kinds.items()]
    return "".join(parts)


def _outcome(kind: Kind) -> str:
    return kind.outcome if kind.status in (0, 1) else f"{kind.outcome} ({kind.status})"


def limits_page() -> str:
    """The whole page of bounds."""
    bounds = {name: value for name, value in vars(limits).items() if name.isupper() and name not in UNITS}
    return LIMITS_HEAD + "".join(f"| {_words(name)} | {value:,} |\n" for name, value in bounds.items())


def _words(name: str) -> str:
    """CONTENT_BYTES_MAX as people read it."""
    return " ".join(ABBREVIATIONS.get(word, word.lower()) for word in name.split("_"))


def tools_page(catalog: Catalog) -> str:
    """The whole page of tools."""
    parts = [TOOLS_HEAD, *_profiles(catalog)]
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
