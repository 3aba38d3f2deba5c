"""convmem import, of what other programs have written: how it is asked, and what is told of it."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from convmem.cli import progress
from convmem.cli.asking import CallFailed, reach
from convmem.cli.printing import print_json, print_table, print_text
from convmem.cli.start import path_of
from convmem.config import Settings
from convmem.errors import Busy, ConvmemError, Invalid

if TYPE_CHECKING:
    from convmem.cli.call import Place
    from convmem.importing import Batches

PARTIAL = 3
COLUMNS = ("format", "conversations", "read", "stored", "updated", "same", "stays_deleted", "refused", "left_out")
SKIPPED_SHOWN = 20
# How often a batch is offered to a daemon that is busy, or that has ended and may be there again.
TRIES, PAUSE_MS = 40, 500
# A record that is none: it is refused, and tells that somebody is there who takes records in.
ENDED = "has ended or is busy for long; import again, for what is there already is not stored twice"
PROBE: Mapping[str, Any] = {"type": "none"}

FormatOption = Annotated[str | None, typer.Option("--format", metavar="NAME", help="of another program: only this one")]
ProjectOption = Annotated[str | None, typer.Option("--project", metavar="NAME", help="the project of all of it")]
AccountOption = Annotated[
    str | None, typer.Option("--account", metavar="NAME", help="whose it is: two accounts or devices stay apart")
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="leave out what is older: 2026-01-31, or with a time")
]
NoThinking = Annotated[bool, typer.Option("--no-thinking", help="leave out what models thought")]
KeepSecrets = Annotated[bool, typer.Option("--keep-secrets", help="do not take secrets out")]
Resurrect = Annotated[bool, typer.Option("--resurrect", help="bring back what was deleted here")]
ReportOption = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="write what was done, conversation by conversation, here")
]


class Asked(NamedTuple):
    """What a person has said of histories of other programs."""

    format: str | None = None
    project: str | None = None
    account: str | None = None
    since: str | None = None
    no_thinking: bool = False
    keep_secrets: bool = False
    resurrect: bool = False
    report: str | None = None


NOTHING_ASKED = Asked()


class Where(NamedTuple):
    """Whose store it is."""

    data_dir: str | None
    url: str | None
    token_file: str | None


def import_others(
    context: typer.Context, paths: Sequence[Path], asked: Asked, where: Where, *, dry_run: bool, as_json: bool
) -> None:
    """Bring in what is found at these paths, and say what was done; the exit status is PARTIAL if something was not."""
    from convmem.import_report import Report
    from convmem.importing import Options, batches

    report = Report()
    options = Options(
        format=asked.format,
        project=asked.project,
        account=asked.account,
        since_ms=_since_ms(asked.since),
        keeps_thinking=not asked.no_thinking,
        keeps_secrets=asked.keep_secrets,
    )
    target = None if asked.report is None else _report_file(context, asked.report)
    for_all = {"dry_run": dry_run, "resurrect": asked.resurrect}
    with progress.shown() as tell:
        found = batches(paths, options, report, tell)
        try:
            reach(
                context,
                **where._asdict(),
                there=lambda place: _there(place, found, for_all),
                here=lambda settings: _here(settings, found, for_all, report.stop),
                needs_store=False,
            )
        except Invalid as refused:
            if refused.details.get("field") == "format":
                raise typer.BadParameter(refused.message) from None
            raise
        finally:
            found.close()
            if target is not None:
                _write(target, {**report.facts(with_conversations=True), "dry_run": dry_run})
    facts = {**report.facts(with_conversations=False), "dry_run": dry_run}
    if as_json:
        print_json(facts)
    else:
        _print(facts)
    if report.is_partial:
        raise typer.Exit(PARTIAL)


def _there(place: "Place", found: "Batches", for_all: Mapping[str, Any]) -> None:
    from convmem.cli.streaming import ask

    # Before anything is read: if nobody is there who holds the store, it is opened here.
    ask(place, "records", {"records": [PROBE], "dry_run": True}, _untold)
    batch = next(found)
    with ThreadPoolExecutor(1) as sender, suppress(StopIteration):
        sent = None
        while True:
            before, sent = sent, sender.submit(_answered, place, {"records": batch, **for_all}) if batch else None
            batch = found.send(None if before is None else before.result())


def _answered(place: "Place", arguments: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The outcomes of a batch. It is offered again while the daemon is busy or starts anew: it may be repeated."""
    from convmem.cli.call import NOBODY
    from convmem.cli.streaming import ask
    from convmem.clock import sleep_ms

    tries = 0
    while True:
        try:
            outcomes: Sequence[Mapping[str, Any]] = ask(place, "records", arguments, _untold)["outcomes"]
        except (Busy, *NOBODY) as error:
            if (tries := tries + 1) == TRIES:
                # Nobody else is asked for the rest: the store would be opened in the middle of it.
                raise CallFailed(f"{place} {ENDED}") from None
            sleep_ms(error.details.get("retry_after_ms", PAUSE_MS) if isinstance(error, ConvmemError) else PAUSE_MS)
        else:
            return outcomes


def _here(settings: Settings, found: "Batches", for_all: Mapping[str, Any], stop: Callable[[], object]) -> None:
    from convmem import offline

    offline.take_in(settings, found, for_all, stop)


def _untold(done: float, total: float, sentence: str) -> None:
    """A batch takes a moment only."""


def _since_ms(text: str | None) -> int | None:
    if text is None:
        return None
    from convmem.importers.times import at_ms

    found = at_ms(text)
    if found is None:
        raise typer.BadParameter(f"--since: {text!r} is no time: write 2026-01-31 or 2026-01-31T08:00:00Z")
    return found


def _report_file(context: typer.Context, name: str) -> Path:
    path = path_of(context, name)
    if path.is_dir() or not path.parent.is_dir():
        raise typer.BadParameter(f"--report: {path} cannot be a file")
    return path


def _write(path: Path, facts: Mapping[str, Any]) -> None:
    from convmem.files import appearing

    try:
        with appearing(path) as put:
            put(json.dumps(facts, ensure_ascii=False, indent=2).encode(errors="replace") + b"\n")
    except OSError as error:
        raise CallFailed(f"{path} cannot be written: {error.strerror}") from None


def _print(facts: Mapping[str, Any]) -> None:
    formats = ", ".join(f"{name} ({count})" for name, count in facts["formats"].items()) or "nothing"
    print_table(COLUMNS, [[formats, *(f"{facts[column]:,}" for column in COLUMNS[1:])]])
    lines = ["dry run: nothing was written"] if facts["dry_run"] else []
    for name, sentence in (("passed_over", "no part of a conversation"), ("kept_raw", "of unknown kind, kept as JSON")):
        if facts[name]:
            kinds = ", ".join(f"{kind} ({count:,})" for kind, count in sorted(facts[name].items()))
            lines.append(f"{sentence}: {kinds}")
    if facts["links_missing"]:
        lines.append(f"relations whose target is not there: {facts['links_missing']:,}")
    if facts["skipped"]:
        lines.append(f"skipped: {facts['skipped']:,}")
        lines += [f"  {one['where']}: {one['why']}" for one in facts["skipped_list"][:SKIPPED_SHOWN]]
        if facts["skipped"] > SKIPPED_SHOWN:
            lines.append("  … (--report names more)")
    if lines:
        print_text("\n".join(lines))
