"""convmem doctor: what is wrong between a client and its memory, and the one thing to change for each."""

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from convmem.cli.journal import visible
from convmem.cli.printing import print_json, print_text
from convmem.cli.start import AsJSON, DataDir, TokenFile, elsewhere, start_of, unknown_variables
from convmem.clock import SystemClock
from convmem.config import client_token
from convmem.errors import SettingInvalid

if TYPE_CHECKING:
    from convmem.doctor.findings import Finding

STYLES = {"ok": "green", "warning": "yellow", "failure": "bold red"}
OUTCOME_WIDTH, NAME_WIDTH = 7, 21
URL = Annotated[
    str | None,
    typer.Argument(
        metavar="[URL]",
        help="another daemon, for example http://host:8484; without one, the data directory of this machine "
        "[CONVMEM_URL]",
        callback=elsewhere,
        show_default=False,
    ),
]


def doctor(
    context: typer.Context,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
    as_json: AsJSON = False,
) -> None:
    """Look at a data directory, or at a daemon behind a URL; say what to change. Changes nothing."""
    from convmem.doctor.findings import status_of

    findings = []
    show = _shower(as_json=as_json)
    for finding in _examined(context, data_dir, url, token_file):
        findings.append(finding)
        show(finding)
        if as_json and finding.name == "url-plain":
            # Said before the token goes out, whatever is printed of it later.
            typer.echo(f"{finding.seen}: whoever is on the way can read a token", err=True)
    if as_json:
        print_json([finding.facts() for finding in findings])
    raise typer.Exit(status_of(findings))


def _examined(
    context: typer.Context, data_dir: str | None, url: str | None, token_file: str | None
) -> "Iterator[Finding]":
    start = start_of(context)
    if url is not None:
        if data_dir is not None:
            raise SettingInvalid("--data-dir is of this machine, a URL of another", setting="--data-dir")
        # Imported here, like what a data directory needs: only one of them is.
        from convmem.doctor import remote
        from convmem.doctor.visit import Visit

        def token() -> bytes | None:
            return client_token(token_file, start.environment, start.working_directory)

        yield from remote.examine(Visit(url, start.environment, SystemClock(), token))
        return
    if token_file is not None:
        raise SettingInvalid("--token-file goes with a URL", setting="--token-file")
    from convmem.doctor import local

    settings = local.read(data_dir, start.environment, start.working_directory)
    unknown = tuple(unknown_variables(start.environment))
    yield from local.examine(settings, start.environment, SystemClock(), unknown)


def _shower(*, as_json: bool) -> "Callable[[Finding], None]":
    """What shows each finding as it comes: in a pipe fields behind tabs, on a terminal in colour with the change below
    it.
    """
    if as_json:
        return lambda finding: None
    if not sys.stdout.isatty():
        return lambda finding: print_text("\t".join(_fields(finding)))
    # Imported here: a pipe does without, and so does every other verb.
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)

    def show(finding: "Finding") -> None:
        outcome, name, seen, change = _fields(finding)
        line = Text.assemble(
            (outcome.ljust(OUTCOME_WIDTH + 1), STYLES[outcome]), (name.ljust(NAME_WIDTH + 1), "cyan"), seen
        )
        console.print(line, soft_wrap=True)
        if change:
            console.print(Text(" " * (OUTCOME_WIDTH + 1) + "-> ").append(change, "bold"), soft_wrap=True)

    return show


def _fields(finding: "Finding") -> tuple[str, str, str, str]:
    return finding.kind.outcome, finding.name, visible(finding.seen), visible(finding.change)
