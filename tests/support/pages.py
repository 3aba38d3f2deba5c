"""The pages that people read, in pieces: headings, code blocks and tables of markdown."""

import re
from pathlib import Path

from tests.support.source import PACKAGE, REPOSITORY

README = REPOSITORY / "README.md"
DOCS = PACKAGE / "docs"


def page(name: str) -> str:
    """The text of README.md or of a page of the docs."""
    return (README if name == "README.md" else DOCS / name).read_text(encoding="utf-8")


def every_page() -> list[Path]:
    """README.md and all pages of the docs."""
    return [README, *sorted(DOCS.glob("*.md"))]


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(text: str, heading: str) -> str:
    """The text below a heading of the second level, up to the next one."""
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def table(text: str) -> list[list[str]]:
    """The rows of all tables in a text, without their heads; cells without backticks around them."""
    lines = [line.strip().strip("|") for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    rules = {number for number, row in enumerate(rows) if all(re.fullmatch(":?-+:?", cell) for cell in row)}
    return [row for number, row in enumerate(rows) if not {number, number + 1} & rules]
