"""The command line: one file a verb, listed here; results on stdout, everything for people on stderr.

A verb raises what went wrong; this is the one place that turns it into a line and an exit status. Heavy parts are
imported inside the verbs, so that `serve` listens and `--version` answers before they would have been read.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from convmem import __version__
from convmem.cli import (
    backup,
    capture,
    check,
    compact,
    config,
    connect,
    distill,
    doctor,
    export,
    import_,
    journal,
    profile,
    restore,
    salvage,
    search,
    serve,
    sessions,
    show,
    stdio,
    tables,
    token,
)
from convmem.cli.asking import CallFailed
from convmem.cli.printing import print_text
from convmem.cli.start import Start
from convmem.errors import EXIT_STATUS, ConvmemError, OperatorError

FAILURE = 1

app = typer.Typer(
    name="convmem",
    help="One daemon that remembers for all of a person's AI agents.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("stdio")(stdio.stdio)
app.command("connect")(connect.connect)
app.command("search")(search.search)
app.command("sessions")(sessions.sessions)
app.command("show")(show.show)
app.command("capture")(capture.capture)
app.add_typer(profile.app, name="profile")
app.command("export")(export.export)
app.command("import")(import_.import_)
app.command("backup")(backup.backup)
app.command("restore")(restore.restore)
app.command("compact")(compact.compact)
app.command("check")(check.check)
app.command("salvage")(salvage.salvage)
app.command("doctor")(doctor.doctor)
app.command("config")(config.config)
app.command("distill")(distill.distill)
app.add_typer(tables.app, name="tables")
app.add_typer(token.app, name="token")


def _print_version(wanted: bool) -> None:
    if wanted:
        print_text(f"convmem {__version__}")
        raise typer.Exit


@app.callback()
def _convmem(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """One daemon that remembers for all of a person's AI agents."""


def run(arguments: Sequence[str], environment: Mapping[str, str], working_directory: Path | None) -> int:
    """Run one command; return its exit status. Never raises for what a caller or an operator can put right."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character gets its escape, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        app(list(arguments), prog_name="convmem", obj=Start(environment, working_directory))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILURE
    except ConvmemError as error:
        journal.refusal(f"{error.code}: {error.message}")
        return EXIT_STATUS.get(type(error), FAILURE) if isinstance(error, OperatorError) else FAILURE
    except CallFailed as failure:
        journal.refusal(str(failure))
        return FAILURE
    raise AssertionError("typer ends with SystemExit")
