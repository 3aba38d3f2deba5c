"""What the process was started with, and the options that are settings, declared once for all verbs.

An option's name, variable and meaning are rows of config.SETTINGS: help text and settings cannot drift apart.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from convmem.config import BY_NAME, SETTINGS, Settings, load
from convmem.errors import SettingInvalid


class Start(NamedTuple):
    """Environment and working directory of the process; None where the working directory is gone."""

    environment: Mapping[str, str]
    working_directory: Path | None


def _option(name: str, metavar: str) -> Any:
    setting = BY_NAME[name]
    assert setting.flag is not None
    default = f"; default {setting.default}" if setting.default else ""
    return typer.Option(setting.flag, metavar=metavar, help=f"{setting.meaning} [{setting.variable}{default}]")


DataDir = Annotated[str | None, _option("data_dir", "PATH")]
Bind = Annotated[str | None, _option("bind", "HOST:PORT")]
Profile = Annotated[str | None, _option("profile", "NAME")]
AllowedHosts = Annotated[list[str] | None, _option("allowed_hosts", "NAME")]
TrustedProxies = Annotated[list[str] | None, _option("trusted_proxies", "IP")]
HTTPTokenFile = Annotated[str | None, _option("http_token_file", "PATH")]
BackupTo = Annotated[str | None, _option("backup_to", "PATH")]
BackupEvery = Annotated[str | None, _option("backup_every_ms", "6h")]
Redact = Annotated[str | None, _option("redact", "capture|all")]
RetentionDays = Annotated[str | None, _option("retention_days", "DAYS")]
Distill = Annotated[str | None, _option("distill", "off|daily")]
LogFormat = Annotated[str | None, _option("log_format", "text|json")]


def elsewhere(context: typer.Context, url: str | None) -> str | None:
    """Another machine's daemon, by the flag; else by CONVMEM_URL, unless a flag names a data directory of this one.

    What was given on the command line is read before what was not.
    """
    if url is None and context.params.get("data_dir") is None:
        return start_of(context).environment.get("CONVMEM_URL") or None
    return url


URL = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="another daemon, for example http://host:8484 [CONVMEM_URL]",
        callback=elsewhere,
    ),
]
TokenFile = Annotated[
    str | None, typer.Option("--token-file", metavar="PATH", help="file with the token for --url [CONVMEM_TOKEN]")
]
AsJSON = Annotated[bool, typer.Option("--json", help="one JSON document instead of a table")]


def start_of(context: typer.Context) -> Start:
    """The Start that the entry point left in the context."""
    start = context.find_root().obj
    assert isinstance(start, Start)
    return start


def settings_of(context: typer.Context, **flags: str | Sequence[str] | None) -> Settings:
    """The settings of this command: its flags by setting name, the environment, the files. Raises SettingInvalid."""
    start = start_of(context)
    for name, given in flags.items():
        if given == "":
            raise SettingInvalid(f"{BY_NAME[name].flag} must not be empty", setting=BY_NAME[name].flag or name)
    texts = {
        name: given if given is None or isinstance(given, str) else ",".join(given) or None
        for name, given in flags.items()
    }
    return load(texts, start.environment, start.working_directory)


def path_of(context: typer.Context, text: str) -> Path:
    """A path that an argument names, from the working directory on; it may not exist. BadParameter for an empty one."""
    if not text:
        # What a script has where a variable is not set: it would mean the working directory.
        raise typer.BadParameter("a path must not be empty")
    return (start_of(context).working_directory or Path("/")) / os.path.expanduser(text)


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Variables that look like settings and are none: a misspelt one would be a guard that is not there."""
    known = {setting.variable for setting in SETTINGS} | {"CONVMEM_TOKEN", "CONVMEM_URL"}
    return sorted(name for name in environment if name.startswith("CONVMEM_") and name not in known)
