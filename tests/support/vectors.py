"""The cases of redaction that plugins and daemon share (contrib/redaction-vectors.json)."""

import json
from pathlib import Path
from typing import NamedTuple

VECTORS = Path(__file__).parents[2] / "contrib" / "redaction-vectors.json"
# Splits what a code host would take for a real secret.
JOIN = "{{join}}"


class Secret(NamedTuple):
    """A text that holds a secret: what must be gone, what must still be there, and how it reads then."""

    name: str
    text: str
    must_not_hold: tuple[str, ...]
    must_hold: tuple[str, ...]
    redacted: str


def secrets() -> list[Secret]:
    """Every text that holds a secret."""
    return [
        Secret(
            case["name"],
            whole(case["text"]),
            tuple(map(whole, case["must_not_hold"])),
            tuple(map(whole, case["must_hold"])),
            whole(case["redacted"]),
        )
        for case in json.loads(VECTORS.read_text(encoding="utf-8"))["secrets"]
    ]


def innocent() -> list[str]:
    """Every text that must stay as it is."""
    return [whole(text) for text in json.loads(VECTORS.read_text(encoding="utf-8"))["innocent"]]


def whole(text: str) -> str:
    """A text of the file without the marks that split it."""
    return text.replace(JOIN, "")
