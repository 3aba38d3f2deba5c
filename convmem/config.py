"""Settings: from flags, environment and convmem.env to one frozen value that knows where each part came from.

    flag > environment CONVMEM_… > convmem.env in the working directory > convmem.env in the data directory >
    environment under another name, where there is one > .mini-app-mcp.env in the working directory > default

A setting is a row of SETTINGS; the variable's name is also its key in convmem.env. What cannot be meant is refused with
its name and the place where it stands, never guessed: a misspelt key in a file would otherwise be a guard that is not
there. Variables of the environment that we do not know are left alone: they may belong to other programs.

Rejected: pydantic-settings. It would be the slowest import before the socket is bound, and it cannot say which line of
which file a value came from.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from convmem import addresses, data_dir, files, table_settings
from convmem import setting_values as reading
from convmem.addresses import Address
from convmem.errors import DataDirectoryUnusable, SettingInvalid, UnsafeBind
from convmem.limits import SETTINGS_FILE_BYTES_MAX
from convmem.setting_values import BYTE_ORDER_MARK, Found, Setting
from convmem.table_settings import TableSettings

SETTINGS_FILE = "convmem.env"
PROFILES = ("core", "messages", "memory", "tables", "all")
LOG_FORMATS = ("text", "json")
REDACTED = ("capture", "all")
DISTILLED = ("off", "daily")
# Names of the environment that mean one of our settings where nothing else says anything of it.
ALIASES = {"RETENTION_DAYS": "retention_days"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything a start of convmem depends on. `sources` says for each setting where its value came from."""

    data_dir: Path
    bind: Address
    profile: str
    allowed_hosts: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    http_token: bytes | None = field(repr=False)
    backup_to: Path | None
    backup_every_ms: int
    redact: Literal["capture", "all"]
    retention_days: int
    distill: Literal["off", "daily"]
    log_format: Literal["text", "json"]
    tables: TableSettings
    socket: Path | None
    sources: Mapping[str, str]

    def refuse_unsafe_bind(self, *, has_tokens: bool) -> None:
        """Raise UnsafeBind if others reach the address and no token keeps them out."""
        if not self.bind.is_loopback and self.http_token is None and not has_tokens:
            raise UnsafeBind(
                f"{self.bind} can be reached by others and there is no token: make one with `convmem token create "
                f"NAME`, set CONVMEM_HTTP_TOKEN or CONVMEM_HTTP_TOKEN_FILE, or bind to 127.0.0.1:{self.bind.port}"
            )


def load(flags: Mapping[str, str | None], environment: Mapping[str, str], working_directory: Path | None) -> Settings:
    """Return the settings; SettingInvalid or DataDirectoryUnusable if they cannot be meant.

    `flags` are given by setting name, lists joined by commas, None where a flag is absent. `working_directory` is None
    where there is none any more.
    """
    here = working_directory or Path("/")
    layers = [_from_flags(flags, here), _from_environment(environment, here)]
    if working_directory is not None:
        layers.append(dict(_from_file(working_directory / SETTINGS_FILE)))
    named = next((layer["data_dir"] for layer in layers if "data_dir" in layer), None)
    directory = _read(BY_NAME["data_dir"], named) if named else _default_data_dir(environment)
    if directory != working_directory:
        layers.append(dict(_from_file(directory / SETTINGS_FILE)))
        if "data_dir" in layers[-1]:
            raise SettingInvalid(
                f"{layers[-1]['data_dir'].source}: a data directory cannot name another one", setting="CONVMEM_DATA_DIR"
            )
    layers += [_from_aliases(environment, here), table_settings.foreign_variables(environment, here)]
    if working_directory is not None:
        foreign = working_directory / table_settings.FOREIGN_FILE
        layers.append(dict(table_settings.foreign_lines(foreign, _lines(foreign))))
    found: dict[str, Found] = {}
    for layer in reversed(layers):
        found.update(layer)
    return _settings(found, directory, environment, here)


def client_token(
    token_file: str | None, environment: Mapping[str, str], working_directory: Path | None
) -> bytes | None:
    """The token for a daemon elsewhere: in the file that a flag names, else CONVMEM_TOKEN. Raises SettingInvalid."""
    here = working_directory or Path("/")
    token: bytes | None = None
    if token_file is not None:
        setting = BY_NAME["http_token_file"]._replace(variable="--token-file")
        token = _read(setting, Found(token_file, "flag", here))
    elif "CONVMEM_TOKEN" in environment:
        setting = BY_NAME["http_token"]._replace(variable="CONVMEM_TOKEN")
        token = _read(setting, Found(environment["CONVMEM_TOKEN"], "environment", here))
    return token


def _settings(found: Mapping[str, Found], directory: Path, environment: Mapping[str, str], here: Path) -> Settings:
    if "http_token" in found and "http_token_file" in found:
        raise SettingInvalid(
            f"a token is given twice: CONVMEM_HTTP_TOKEN ({found['http_token'].source}) and "
            f"CONVMEM_HTTP_TOKEN_FILE ({found['http_token_file'].source})",
            setting="CONVMEM_HTTP_TOKEN",
        )
    values = {
        setting.name: _read(setting, found.get(setting.name) or Found(setting.default or "", "default", directory))
        for setting in SETTINGS
        if setting.name in found or setting.default is not None
    }
    return Settings(
        data_dir=directory,
        bind=values["bind"],
        profile=values["profile"],
        allowed_hosts=values["allowed_hosts"],
        trusted_proxies=values["trusted_proxies"],
        http_token=values.get("http_token") or values.get("http_token_file"),
        backup_to=_outside(values.get("backup_to"), directory, found.get("backup_to")),
        backup_every_ms=values["backup_every_ms"],
        redact=values["redact"],
        retention_days=values["retention_days"],
        distill=values["distill"],
        log_format=values["log_format"],
        tables=table_settings.made(values, directory, here),
        socket=_socket(directory, environment),
        sources={
            setting.name: found[setting.name].source if setting.name in found else "default" for setting in SETTINGS
        },
    )


def _outside(backup_to: Path | None, directory: Path, found: Found | None) -> Path | None:
    """A copy beside the original would be lost with it."""
    if backup_to is not None and Path(os.path.realpath(backup_to)).is_relative_to(os.path.realpath(directory)):
        assert found is not None
        raise SettingInvalid(
            f"CONVMEM_BACKUP_TO ({found.source}): a backup cannot stand in the data directory",
            setting="CONVMEM_BACKUP_TO",
        )
    return backup_to


def _from_flags(flags: Mapping[str, str | None], here: Path) -> dict[str, Found]:
    assert set(flags) <= set(BY_NAME)
    return {name: Found(text, f"flag {BY_NAME[name].flag}", here) for name, text in flags.items() if text is not None}


def _from_environment(environment: Mapping[str, str], here: Path) -> dict[str, Found]:
    return {
        setting.name: Found(environment[setting.variable], "environment", here)
        for setting in SETTINGS
        if setting.variable in environment
    }


def _from_aliases(environment: Mapping[str, str], here: Path) -> dict[str, Found]:
    return {
        name: Found(environment[alias], f"environment {alias}", here)
        for alias, name in ALIASES.items()
        if alias in environment
    }


def _from_file(path: Path) -> Iterator[tuple[str, Found]]:
    """Yield what the lines NAME=VALUE of one file say; blank lines and lines that start with # say nothing."""
    seen = set()
    for number, line in enumerate(_lines(path), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        source = f"{path}:{number}"
        variable, equals, value = (piece.strip() for piece in text.partition("="))
        if not equals:
            raise SettingInvalid(f"{source}: not a line NAME=VALUE", setting=SETTINGS_FILE)
        if variable not in BY_VARIABLE:
            raise SettingInvalid(f"{source}: there is no setting {variable!r}", setting=variable)
        if variable in seen:
            raise SettingInvalid(f"{source}: {variable} stands here twice", setting=variable)
        seen.add(variable)
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        yield BY_VARIABLE[variable].name, Found(value, source, path.parent)


def _lines(path: Path) -> list[str]:
    if not os.access(path.parent, os.X_OK):
        return []  # Nothing in there can be meant for us; a data directory like this is refused when it is opened.
    if path.exists() and not path.is_file():
        raise SettingInvalid(f"{path} is no regular file", setting=SETTINGS_FILE)
    try:
        data = files.read_text(path, bytes_max=SETTINGS_FILE_BYTES_MAX + 1) or b""
    except OSError as error:
        raise SettingInvalid(f"{path} cannot be read: {error.strerror}", setting=SETTINGS_FILE) from None
    if len(data) > SETTINGS_FILE_BYTES_MAX:
        raise SettingInvalid(f"{path} is larger than {SETTINGS_FILE_BYTES_MAX} bytes", setting=SETTINGS_FILE)
    try:
        return data.removeprefix(BYTE_ORDER_MARK).decode().split("\n")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise SettingInvalid(f"{path}:{number}: not UTF-8", setting=SETTINGS_FILE) from None


def _read(setting: Setting, found: Found) -> Any:
    try:
        if any(character < " " or character == "\x7f" for character in found.text):
            raise ValueError("holds control characters")
        return setting.read(found)
    except ValueError as error:
        raise SettingInvalid(f"{setting.variable} ({found.source}): {error}", setting=setting.variable) from None


def _default_data_dir(environment: Mapping[str, str]) -> Path:
    path = data_dir.default(environment)
    if path is None:
        raise DataDirectoryUnusable(
            f"uid {os.getuid()} has no home directory: name a data directory with --data-dir or CONVMEM_DATA_DIR",
            path="",
            uid=os.getuid(),
        )
    return Path(path)


def _socket(directory: Path, environment: Mapping[str, str]) -> Path | None:
    path = data_dir.socket_path(str(directory), environment)
    return None if path is None else Path(path)


_listen = reading.one(addresses.parse)
_hosts = reading.each(addresses.host)
_ips = reading.each(addresses.ip)
_token_text = reading.one(lambda text: reading.token(os.fsencode(text)))
_token_file = reading.token_file
_every = reading.one(reading.duration_ms)
_profile, _log_format = reading.choice(*PROFILES), reading.choice(*LOG_FORMATS)
_redact, _distill = reading.choice(*REDACTED), reading.choice(*DISTILLED)
_days = reading.one(reading.days)
SETTINGS = (
    Setting("data_dir", "--data-dir", "CONVMEM_DATA_DIR", None, "directory of the store", reading.path),
    Setting("bind", "--bind", "CONVMEM_BIND", "127.0.0.1:8484", "address to listen on", _listen),
    Setting("profile", "--profile", "CONVMEM_PROFILE", "core", "which tools /mcp shows", _profile),
    Setting("allowed_hosts", "--allowed-host", "CONVMEM_ALLOWED_HOSTS", "", "names that Host may say", _hosts),
    Setting("trusted_proxies", "--trusted-proxy", "CONVMEM_TRUSTED_PROXIES", "", "proxies to believe", _ips),
    Setting("http_token", None, "CONVMEM_HTTP_TOKEN", None, "token that clients send", _token_text),
    Setting(
        "http_token_file", "--http-token-file", "CONVMEM_HTTP_TOKEN_FILE", None, "file with that token", _token_file
    ),
    Setting("backup_to", "--backup-to", "CONVMEM_BACKUP_TO", None, "directory of a backup to keep up", reading.path),
    Setting("backup_every_ms", "--backup-every", "CONVMEM_BACKUP_EVERY", "6h", "how often it is made", _every),
    Setting("redact", "--redact", "CONVMEM_REDACT", "capture", "what secrets are taken out of", _redact),
    Setting(
        "retention_days",
        "--retention-days",
        "CONVMEM_RETENTION_DAYS",
        "30",
        "when distill drops what was captured",
        _days,
    ),
    Setting("distill", "--distill", "CONVMEM_DISTILL", "off", "when the daemon distills by itself", _distill),
    Setting("log_format", "--log-format", "CONVMEM_LOG_FORMAT", "text", "form of the journal", _log_format),
    *table_settings.SETTINGS,
)
BY_NAME = {setting.name: setting for setting in SETTINGS}
BY_VARIABLE = {setting.variable: setting for setting in SETTINGS}
