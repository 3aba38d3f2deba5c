"""convmem stdio: MCP on stdin and stdout."""

import sys

import typer

from convmem.cli import journal
from convmem.cli.start import DataDir, LogFormat, Profile, Redact, settings_of


def stdio(
    context: typer.Context,
    data_dir: DataDir = None,
    profile: Profile = None,
    redact: Redact = None,
    log_format: LogFormat = None,
) -> None:
    """Speak MCP on stdin and stdout, with the store in this process, until stdin ends."""
    settings = settings_of(context, data_dir=data_dir, profile=profile, redact=redact, log_format=log_format)
    journal.begin(settings.log_format, sys.stderr)
    from convmem import daemon

    raise typer.Exit(daemon.run(daemon.stdio(settings)))
