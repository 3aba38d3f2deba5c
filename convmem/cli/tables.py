"""convmem tables: what tables there are, their rows as files, and an end of old versions.

`materialize` writes where the person says, so it is this process that writes, with that person's rights; the daemon is
only asked for rows. That is why no tool does it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from convmem.cli.asking import CallFailed, ask_often
from convmem.cli.operating import operate
from convmem.cli.printing import print_json, print_table, print_text
from convmem.cli.progress import Tell
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile
from convmem.config import Settings

COLUMNS = ("table", "scope", "rows", "history", "bytes", "title")
PARTIAL = 3

app = typer.Typer(help="List tables, write their rows to files, purge old versions.", no_args_is_help=True)


@app.command("list")
def list_tables(
    context: typer.Context,
    as_json: AsJSON = False,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
) -> None:
    """List all tables, and those that cannot be used with the reason."""

    def own(settings: Settings, tell: Tell) -> Mapping[str, Any]:
        from convmem import offline

        return offline.tables(settings, tell)

    facts = operate(context, "tables", {}, data_dir=data_dir, url=url, token_file=token_file, own=own)
    if as_json:
        print_json(facts)
        return
    print_table(COLUMNS, ([_cell(table[name]) for name in COLUMNS] for table in facts["tables"]))
    for broken in facts["broken"]:
        place = "".join(f", {name} {broken[name]}" for name in ("line", "column") if name in broken)
        print_text(f"broken: {broken.get('table', 'all')} ({broken['scope']}): {broken['reason']}{place}")


def _cell(value: Any) -> str:
    return "?" if value is None else str(value)


@app.command("purge-history")
def purge_history(
    context: typer.Context,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="TIME", help="versions of before that, as 30d")
    ] = None,
    keep: Annotated[int | None, typer.Option("--keep", metavar="N", help="but keep the newest of each row")] = None,
    table: Annotated[str | None, typer.Option("--table", metavar="NAME", help="of this table only")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say how many versions would go")] = False,
    as_json: AsJSON = False,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
) -> None:
    """Take old versions of rows away for good, and their bytes out of the files."""
    given = {"older_than": older_than, "keep": keep, "table": table, "dry_run": dry_run or None}
    arguments = {name: value for name, value in given.items() if value is not None}

    def own(settings: Settings, tell: Tell) -> Mapping[str, Any]:
        from convmem import offline

        return offline.purge_history(settings, arguments, tell)

    facts = operate(context, "purge-history", arguments, data_dir=data_dir, url=url, token_file=token_file, own=own)
    if as_json:
        print_json(facts)
    else:
        for line in _purged(facts, dry_run=dry_run):
            print_text(line)
    is_whole = not any(set(done) & {"unfinished", "error"} or done["damaged"] for done in facts["tables"])
    if facts["broken"] or not is_whole:
        raise typer.Exit(PARTIAL)


def _purged(facts: Mapping[str, Any], *, dry_run: bool) -> Iterator[str]:
    verb = "would go" if dry_run else "purged"
    for done in facts["tables"]:
        sizes = "" if dry_run else f", {done['bytes_before']:,} -> {done['bytes_after']:,} bytes"
        yield f"{done['table']}: {done['entries']:,} versions {verb}{sizes}"
        if done["damaged"]:
            yield f"{done['table']}: what is damaged was left, in {done['damaged']} places"
        for found in done.get("damaged_versions", ()):
            first, last = found["version_start"], found["version_end"]
            yield f"  {'all versions' if first is None else f'versions {first} to {last}'} of row {found['row_id']}"
        if "error" in done:
            yield f"{done['table']}: {done['error']['code']}: {done['error']['message']}"
        if "unfinished" in done:
            yield f"{done['table']}: bytes of purged versions are still in the file; do it again to take them out"
    for broken in facts["broken"]:
        yield f"{broken.get('table', 'all')}: not looked at, since it is broken: {broken['reason']}"


@app.command("materialize")
def materialize(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE")],
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="made if it is missing, else it must be empty")
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace files that are there")] = False,
    form: Annotated[str, typer.Option("--format", metavar="md|json", help="of each file")] = "md",
    filter_: Annotated[str | None, typer.Option("--filter", metavar="JSON", help="only rows that it finds")] = None,
    as_json: AsJSON = False,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
) -> None:
    """Write each row of a table into a file of its own, named by its id."""
    from convmem.cli import row_files

    if form not in row_files.FORMS:
        raise typer.BadParameter(f"{form!r} is none of {', '.join(row_files.FORMS)}", param_hint="--format")
    try:
        target = row_files.target(directory, overwrite=overwrite)
    except row_files.NotEmpty as taken:
        raise typer.BadParameter(str(taken), param_hint="DIRECTORY") from None
    except OSError as error:
        raise CallFailed(f"{directory} cannot be looked into: {error.strerror}") from None
    steps = row_files.written(table, target, form, filter_, overwrite=overwrite)
    try:
        facts = ask_often(context, steps, data_dir=data_dir, url=url, token_file=token_file)
    except OSError as error:
        raise CallFailed(f"{directory} cannot be written into: {error.strerror}") from None
    if as_json:
        print_json(facts)
    else:
        went = f"; {facts['gone']:,} rows were deleted meanwhile" if facts["gone"] else ""
        print_text(f"{facts['written']:,} files in {directory}{went}")
        for left in facts["left_out"]:
            print_text(f"left out {left['id']}: {left['reason']}")
        if facts["left_out_count"] > len(facts["left_out"]):
            print_text(f"left out {facts['left_out_count']:,} in all")
    if facts["left_out_count"]:
        raise typer.Exit(PARTIAL)
