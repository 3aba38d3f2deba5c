"""convmem config: every setting, its value, and where it came from."""

from collections.abc import Callable
from typing import Any

import typer

from convmem import table_settings
from convmem.cli.printing import print_json, print_table
from convmem.cli.start import (
    AllowedHosts,
    AsJSON,
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
)
from convmem.config import SETTINGS, Settings
from convmem.setting_values import duration_text

COLUMNS = ("setting", "value", "from")
SECRETS = {"http_token", "http_token_file"}
SHOWN: dict[str, Callable[[Any], str]] = {
    "allowed_hosts": ", ".join,
    "trusted_proxies": ", ".join,
    "backup_to": lambda path: "" if path is None else str(path),
    "backup_every_ms": duration_text,
}


def config(
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
    as_json: AsJSON = False,
) -> None:
    """Show each setting and where its value came from; the token itself is never shown."""
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
    shown = {setting.variable: (_shown(settings, setting.name), settings.sources[setting.name]) for setting in SETTINGS}
    if as_json:
        print_json({variable: {"value": value, "from": source} for variable, (value, source) in shown.items()})
    else:
        print_table(COLUMNS, ((variable, value, source) for variable, (value, source) in shown.items()))


def _shown(settings: Settings, name: str) -> str:
    if name in SECRETS:
        return "set, not shown" if settings.sources[name] != "default" else "not set"
    if name in table_settings.NAMES:
        return settings.tables.shown(name)
    return SHOWN.get(name, str)(getattr(settings, name))
