"""Results on stdout: a table with colour on a terminal, lines of tab-separated fields in a pipe, JSON if asked.

Text of messages is shown as text: what could move the cursor, change colours or reverse the reading order is escaped.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from convmem.cli.asking import CallFailed
from convmem.cli.journal import visible, visible_json


def print_json(facts: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """One JSON document, in which nothing hides."""
    _print(visible_json(json.dumps(facts, ensure_ascii=False, separators=(",", ":"))))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Rows for people on a terminal, without colours and without cuts in a pipe."""
    shown = [[visible(field) for field in row] for row in rows]
    if not sys.stdout.isatty():
        for row in shown:
            _print("\t".join(row))
        return
    # Imported here: a pipe does without, and so does every other verb.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        is_long = column == columns[-1]
        style = "cyan" if column == columns[0] else None
        overflow: Literal["fold", "ellipsis"] = "fold" if is_long else "ellipsis"
        table.add_column(column, overflow=overflow, no_wrap=not is_long, ratio=is_long or None, style=style)
    for row in shown:
        table.add_row(*map(Text, row))
    Console(highlight=False).print(table)


def print_text(text: str) -> None:
    """Text of several lines; its line ends stay line ends."""
    for line in text.split("\n"):
        _print("\t".join(map(visible, line.split("\t"))))


def print_bytes(data: bytes) -> None:
    """A piece of a file that goes to stdout, as it is."""
    with _told():
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _print(line: str) -> None:
    with _told():
        print(line, flush=True)


@contextmanager
def _told() -> Iterator[None]:
    """What is written inside is written at once, while a full disk can still be told: CallFailed if it takes no
    more.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # Whoever read along has seen enough; typer ends the process for that.
    except OSError as error:
        raise CallFailed(f"the result cannot be written ({error.strerror})") from None


def when(at_ms: int) -> str:
    """A time as people read it: 2026-01-31 08:00:00Z; a time outside the calendar as its number."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"
