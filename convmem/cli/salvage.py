"""convmem salvage: save what can be read of a damaged store into a fresh one."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from convmem.cli import progress
from convmem.cli.asking import need_store
from convmem.cli.printing import print_json, print_text
from convmem.cli.start import AsJSON, DataDir, path_of, settings_of

FAILURE, PARTIAL = 1, 3
To = Annotated[str, typer.Option("--to", metavar="DIR", help="where the fresh store goes; empty, or not there yet")]


def salvage(context: typer.Context, to: To, data_dir: DataDir = None, as_json: AsJSON = False) -> None:
    """Save what can be read of a damaged store into a fresh one; the damaged one is not changed."""
    settings = settings_of(context, data_dir=data_dir)
    need_store(settings)
    target = path_of(context, to)
    from convmem import salvaging

    with progress.shown() as tell:
        facts = salvaging.salvage(settings, target, tell)
    if as_json:
        print_json(facts)
    else:
        print_text("\n".join(report(facts, target)))
    if facts["violations"]:
        raise typer.Exit(FAILURE)
    raise typer.Exit(0 if facts["is_whole"] else PARTIAL)


def report(facts: Mapping[str, Any], target: Path) -> Iterator[str]:
    """What was saved and what was not, one sentence a line."""
    if not facts["has_log"]:
        yield "the log is missing"
    for gap in facts["gaps"]:
        note = " (the index still had it)" if gap["in_index"] else ""
        yield f"log, bytes {gap['offset']} to {gap['offset'] + gap['size']}: {gap['reason']}{note}"
    if (torn := facts["torn"]) is not None:
        end = torn["offset"] + torn["size"]
        yield f"log, bytes {torn['offset']} to {end}: a torn end ({torn['reason']}), which nobody was told of"
    for span in facts["missing"]:
        yield f"missing: entry {span['first']} and all behind it" if span["last"] is None else _missing(span)
    for entry in facts["left_out"]:
        yield f"left out: entry {entry['sequence']}: {entry['reason']}"
    for entry in facts["disagreements"]:
        yield f"the index says something else of entry {entry['sequence']} than what was saved"
    for name in ("gaps", "missing", "left_out", "disagreements"):
        if (more := facts[f"{name}_count"] - len(facts[name])) > 0:
            yield f"{name.replace('_', ' ')}: {more} more"
    yield from facts["violations"]
    index = "the index and " if facts["used_index"] else ""
    yield f"saved {facts['records']} records into {target}, from {index}{facts['frames']} frames of the log"
    yield "nothing is known to be lost" if facts["is_whole"] else _loss(facts)


def _loss(facts: Mapping[str, Any]) -> str:
    is_lost = facts["missing"] or facts["left_out"] or not (facts["has_log"] or facts["used_index"])
    return "something was lost" if is_lost else "log and index disagree: what the log says was saved"


def _missing(span: Mapping[str, Any]) -> str:
    first, last = span["first"], span["last"]
    return f"missing: entry {first}" if first == last else f"missing: entries {first} to {last}"
