"""convmem serve: the HTTP daemon."""

import logging
import sys
from contextlib import suppress

import typer

from convmem.cli import journal
from convmem.cli.start import (
    AllowedHosts,
    BackupEvery,
    BackupTo,
    Bind,
    DataDir,
    Distill,
    HTTPTokenFile,
    LogFormat,
    Profile,
    Redact,
    RetentionDays,
    TrustedProxies,
    settings_of,
    start_of,
    unknown_variables,
)
from convmem.clock import SystemClock
from convmem.tokens import TokenBook


def serve(
    context: typer.Context,
    data_dir: DataDir = None,
    bind: Bind = None,
    profile: Profile = None,
    allowed_hosts: AllowedHosts = None,
    trusted_proxies: TrustedProxies = None,
    http_token_file: HTTPTokenFile = None,
    backup_to: BackupTo = None,
    backup_every: BackupEvery = None,
    redact: Redact = None,
    retention_days: RetentionDays = None,
    distill: Distill = None,
    log_format: LogFormat = None,
) -> None:
    """Run the daemon: MCP over HTTP, and a local socket beside it, until SIGTERM or SIGINT."""
    settings = settings_of(
        context,
        data_dir=data_dir,
        bind=bind,
        profile=profile,
        allowed_hosts=allowed_hosts,
        trusted_proxies=trusted_proxies,
        http_token_file=http_token_file,
        backup_to=backup_to,
        backup_every_ms=backup_every,
        redact=redact,
        retention_days=retention_days,
        distill=distill,
        log_format=log_format,
    )
    settings.refuse_unsafe_bind(has_tokens=TokenBook(settings.data_dir, SystemClock()).is_needed)
    journal.begin(settings.log_format, sys.stderr)
    for name in unknown_variables(start_of(context).environment):
        logging.getLogger("convmem").warning("%s is no setting: `convmem config` lists those that are", name)
    from convmem import daemon
    from convmem.notifying import service_manager

    manager = service_manager(start_of(context).environment)
    raise typer.Exit(daemon.run(daemon.serve(settings, _announce, manager)))


def _announce(line: str) -> None:
    with suppress(OSError):  # Nobody may be reading: no reason not to serve.
        print(journal.visible(line), flush=True)
