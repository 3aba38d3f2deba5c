"""The results of a search for people: on a terminal a head and a snippet each, with the matches marked.

In a pipe a result is a line of tab-separated fields. A line that begins with a tab belongs to a result or, at the end,
to the whole search, and names first what it is: before, after, score, matched, neighbours, path, stage. What was not
looked at is said on stderr.

Ranges count code points of the whole content; what is shown is a part of it in which what could act is escaped. So each
range is carried over: moved to the snippet's beginning, cut at its end, and stretched by the escapes inside.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from convmem.cli import explaining
from convmem.cli.journal import visible
from convmem.cli.printing import print_table, when

if TYPE_CHECKING:
    from rich.text import Text

COLUMNS = ("time", "role", "session", "message", "text")
MARK = "bold yellow"
INDENT = "  "
WIDTH_MIN = 20
Stages = Sequence[tuple[str, float]]


def print_results(facts: Mapping[str, Any], stages: Stages | None) -> None:
    """What search_messages answered; explained if there are stages, even none."""
    if sys.stdout.isatty():
        _print_on_terminal(facts, stages)
    else:
        print_table(COLUMNS, _rows(facts, stages))
    if not facts["results"]:
        typer.echo("nothing found", err=True)
    for sentence in _left_out(facts):
        typer.echo(visible(sentence), err=True)


def marked(found: Mapping[str, Any]) -> tuple[str, list[tuple[int, int]]]:
    """A result's snippet as it is shown, and where in that its matches stand: [start, end) each."""
    snippet, first = found["snippet"], found["snippet_start"]
    shown, marks, at = "", [], 0
    for bounds in found["match_ranges"]:
        start, end = (max(bound - first, at) for bound in bounds)
        shown += visible(snippet[at:start])
        match = visible(snippet[start:end])
        if match:
            marks.append((len(shown), len(shown) + len(match)))
        shown, at = shown + match, end
    return shown + visible(snippet[at:]), marks


def _left_out(facts: Mapping[str, Any]) -> Iterator[str]:
    if not facts["complete"]:
        lag = facts.get("index_lag")
        behind = "" if lag is None else f"; the tables of search are {lag} changes behind"
        yield f"not all messages were looked at{behind}"
    if facts.get("truncated"):
        yield "the reply is full: there is more, ask for less at once"


def _fields(message: Mapping[str, Any]) -> tuple[str, ...]:
    """What is shown of a message, a result or a neighbour of one: COLUMNS."""
    texts = (message[name] for name in ("snippet", "content", "content_preview") if name in message)
    return (when(message["timestamp"]), message["role"], message["session_id"], message["message_id"], next(texts))


def _rows(facts: Mapping[str, Any], stages: Stages | None) -> Iterator[tuple[str, ...]]:
    for found in facts["results"]:
        yield from (("", "before", *_fields(other)) for other in found.get("before", ()))
        yield _fields(found)
        yield from (("", "after", *_fields(other)) for other in found.get("after", ()))
        if stages is not None:
            yield from (("", *line) for line in explaining.of_result(found))
    if stages is not None:
        yield from (("", *line) for line in explaining.of_search(facts, stages))


def _print_on_terminal(facts: Mapping[str, Any], stages: Stages | None) -> None:
    # Imported here: a pipe does without, and so does every other verb.
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for indent, block in _blocks(facts, stages):
        for line in block.wrap(console, max(WIDTH_MIN, console.width - len(indent))):
            # Never cropped: a mark inside a joined emoji makes a line look longer than it is.
            console.print(Text(indent) + line, soft_wrap=True)


def _blocks(facts: Mapping[str, Any], stages: Stages | None) -> Iterator[tuple[str, "Text"]]:
    """What a terminal shows, block by block: what stands before each line, and the text."""
    from rich.text import Text

    for number, found in enumerate(facts["results"]):
        if number:
            yield "", Text()
        yield "", _head(found)
        yield from (_aside(_fields(other)) for other in found.get("before", ()))
        yield INDENT, _snippet(found)
        yield from (_aside(_fields(other)) for other in found.get("after", ()))
        if stages is not None:
            yield from map(_aside, explaining.of_result(found))
        elif "content" not in found["matched_fields"]:
            # The snippet does not show it, so it is said why this is here.
            yield _aside(("matched", f"in {', '.join(found['matched_fields'])}"))
    if stages is not None:
        yield "", Text()
        yield from map(_aside, explaining.of_search(facts, stages))


def _head(found: Mapping[str, Any]) -> "Text":
    from rich.text import Text

    time, role, session, message, _ = map(visible, _fields(found))
    score = f"{explaining.score_of(found)} {explaining.way_of(found)}"
    return Text("  ").join([Text(score, "bold"), Text(time, "cyan"), Text(role), Text(session), Text(message)])


def _snippet(found: Mapping[str, Any]) -> "Text":
    from rich.text import Text

    shown, marks = marked(found)
    text = Text(shown)
    for start, end in marks:
        text.stylize(MARK, start, end)
    return text


def _aside(parts: Sequence[str]) -> tuple[str, "Text"]:
    from rich.text import Text

    return INDENT, Text("  ".join(map(visible, parts)), "dim")
