"""convmem tables: what tables there are, their rows as files, and an end of old versions.

`materialize` writes where the person says, so it is this process that writes, with that person's rights; the daemon is
only asked for rows. That is why no tool does it.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from convmem.cli.asking import Ask, CallFailed, asker
from convmem.cli.operating import operate
from convmem.cli.printing import print_json, print_table, print_text
from convmem.cli.progress import Tell
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile
from convmem.config import Settings

COLUMNS = ("table", "scope", "rows", "history", "bytes", "title")
ROWS_A_PAGE = 1_000
FORMS = ("md", "json")
UUID = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

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
        return
    verb = "would go" if dry_run else "purged"
    for done in facts["tables"]:
        sizes = "" if dry_run else f", {done['bytes_before']:,} -> {done['bytes_after']:,} bytes"
        damaged = f", {done['damaged']} damaged chunks left" if done["damaged"] else ""
        print_text(f"{done['table']}: {done['entries']:,} versions {verb}{sizes}{damaged}")
        if "warning" in done:
            print_text(f"{done['table']}: {done['warning']}")


@app.command("materialize")
def materialize(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE")],
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="made if it is missing, else it must be empty")
    ],
    form: Annotated[str, typer.Option("--format", metavar="md|json", help="of each file")] = "md",
    filter_: Annotated[str | None, typer.Option("--filter", metavar="JSON", help="only rows that it finds")] = None,
    as_json: AsJSON = False,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
) -> None:
    """Write each row of a table into a file of its own, named by its id."""
    from convmem import folders

    if form not in FORMS:
        raise CallFailed(f"--format is one of {', '.join(FORMS)}")
    ask = asker(context, data_dir=data_dir, url=url, token_file=token_file)
    schema = ask("info", {"table": table})
    if folders.is_anything(directory) and (not directory.is_dir() or folders.names(directory)):
        raise CallFailed(f"{directory} is there and not empty")
    folders.make(directory)
    written = skipped = 0
    for row in _rows(ask, table, filter_):
        if not UUID.fullmatch(row["id"]) or "damaged" in row:
            skipped += 1
            continue
        text = _markdown(row, schema.get("dump") or {}) if form == "md" else _json(row)
        folders.write(directory / f"{row['id']}.{form}", text.encode())
        written += 1
    if as_json:
        print_json({"table": table, "directory": str(directory), "written": written, "skipped": skipped})
    else:
        left = f", {skipped} left out (damaged, or an id that names no file)" if skipped else ""
        print_text(f"{written:,} files in {directory}{left}")


def _rows(ask: Ask, table: str, filter_: str | None) -> Iterator[Mapping[str, Any]]:
    """All rows, whole: a reply that is asked for by size holds each of them."""
    arguments: dict[str, Any] = {"table": table, "limit": ROWS_A_PAGE}
    if filter_ is not None:
        arguments["filter"] = filter_
    while True:
        page = ask("list", arguments)
        yield from page["rows"]
        if page["next_cursor"] is None:
            return
        arguments["cursor"] = page["next_cursor"]


def _markdown(row: Mapping[str, Any], dump: Mapping[str, Any]) -> str:
    from convmem.row_text import markdown

    return markdown(row["data"], title_field=dump.get("title_field"), body_field=dump.get("body_field"))


def _json(row: Mapping[str, Any]) -> str:
    import json

    return json.dumps(row, ensure_ascii=False, indent=2) + "\n"
