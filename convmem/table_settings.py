"""The settings of tables: where they are, how much is kept beside them, and the other host for snapshots.

Each has a twin of mini-app-mcp's name (`MINI_APP_…`), so that a directory which that program has used needs no new
settings: from the environment, and from its own file in the working directory. Ours win wherever both say something.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convmem import setting_values as reading
from convmem.errors import SettingInvalid
from convmem.limits import COPIES_KEPT_MAX, HISTORY_CHUNK_MIN_DEFAULT, HISTORY_KEEP_RECENT_DEFAULT, HISTORY_KEPT_MAX
from convmem.setting_values import Found, Setting

FOREIGN_FILE = ".mini-app-mcp.env"
OURS, THEIRS = "CONVMEM_", "MINI_APP_"
PROJECT_DIRECTORY, SCHEMA_FILE = ".convmem", "schema.yaml"

_copies = reading.whole(1, COPIES_KEPT_MAX)
_kept = reading.whole(1, HISTORY_KEPT_MAX)


def _text(found: Found) -> str:
    if not found.text.strip():
        raise ValueError("is empty")
    return found.text.strip()


SETTINGS = (
    Setting("user_dir", None, "CONVMEM_USER_DIR", None, "directory of the user's tables", reading.path),
    Setting("project_dir", None, "CONVMEM_PROJECT_DIR", None, "directory of a project's tables", reading.path),
    Setting("schema", None, "CONVMEM_SCHEMA", None, "schema of the one table that is the default", reading.path),
    Setting("database", None, "CONVMEM_DB", None, "file of its rows", reading.path),
    Setting("backup_retention", None, "CONVMEM_BACKUP_RETENTION", "10", "backups kept of each table", _copies),
    Setting("snapshot_retention", None, "CONVMEM_SNAPSHOT_RETENTION", "10", "snapshots kept of each table", _copies),
    Setting(
        "history_keep_recent",
        None,
        "CONVMEM_HISTORY_KEEP_RECENT",
        str(HISTORY_KEEP_RECENT_DEFAULT),
        "versions of a row kept as they are",
        _kept,
    ),
    Setting(
        "history_chunk_min",
        None,
        "CONVMEM_HISTORY_CHUNK_MIN",
        str(HISTORY_CHUNK_MIN_DEFAULT),
        "versions that are packed together",
        _kept,
    ),
    Setting("s3_endpoint", None, "CONVMEM_S3_ENDPOINT", None, "URL of the host for snapshots", _text),
    Setting("s3_bucket", None, "CONVMEM_S3_BUCKET", None, "bucket there", _text),
    Setting("s3_access_key_id", None, "CONVMEM_S3_ACCESS_KEY_ID", None, "who we are there", _text),
    Setting("s3_secret_access_key", None, "CONVMEM_S3_SECRET_ACCESS_KEY", None, "and what proves it", _text),
    Setting(
        "s3_prefix", None, "CONVMEM_S3_PREFIX", "convmem-snapshots/", "how names there begin", lambda found: found.text
    ),
    Setting("s3_region", None, "CONVMEM_S3_REGION", None, "region, if the URL does not say it", _text),
    Setting(
        "s3_virtual_hosted_style",
        None,
        "CONVMEM_S3_VIRTUAL_HOSTED_STYLE",
        "false",
        "the bucket is a part of the host's name",
        reading.one(reading.truth),
    ),
    Setting(
        "s3_checksum", None, "CONVMEM_S3_CHECKSUM", "none", "checksum sent along", reading.choice("none", "sha256")
    ),
)
NAMES = tuple(setting.name for setting in SETTINGS)
SECRETS = ("s3_access_key_id", "s3_secret_access_key")
BY_FOREIGN_VARIABLE = {THEIRS + setting.variable.removeprefix(OURS): setting for setting in SETTINGS}


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """All of them. `upload` holds what was said of the other host, by name without `s3_`; texts, as upload.py reads."""

    user_dir: Path
    project_dir: Path | None
    schema: Path | None
    database: Path | None
    backup_retention: int
    snapshot_retention: int
    history_keep_recent: int
    history_chunk_min: int
    upload: Mapping[str, str] = field(repr=False)
    working_directory: Path

    def shown(self, name: str) -> str:
        """A setting as people are shown it."""
        if name.startswith("s3_"):
            text = self.upload.get(name.removeprefix("s3_"), "")
            return ("set, not shown" if text else "not set") if name in SECRETS else text
        value = getattr(self, name)
        return "" if value is None else str(value)


def made(values: Mapping[str, Any], data_dir: Path, here: Path) -> TableSettings:
    """The settings of tables from what was found. SettingInvalid if one is given without the other that it needs."""
    database, schema = values.get("database"), values.get("schema")
    if schema is not None and database is None:
        raise SettingInvalid("CONVMEM_SCHEMA names a table without CONVMEM_DB, its file", setting="CONVMEM_SCHEMA")
    if database is not None and schema is None:
        schema = here / SCHEMA_FILE
    project = values.get("project_dir")
    if project is None and (here / PROJECT_DIRECTORY).is_dir():
        project = here / PROJECT_DIRECTORY
    upload = {name.removeprefix("s3_"): values[name] for name in NAMES if name.startswith("s3_") and name in values}
    return TableSettings(
        user_dir=values.get("user_dir") or data_dir / "tables",
        project_dir=project,
        schema=schema,
        database=database,
        backup_retention=values["backup_retention"],
        snapshot_retention=values["snapshot_retention"],
        history_keep_recent=values["history_keep_recent"],
        history_chunk_min=values["history_chunk_min"],
        upload={name: str(value).lower() if isinstance(value, bool) else value for name, value in upload.items()},
        working_directory=here,
    )


def foreign_variables(environment: Mapping[str, str], here: Path) -> dict[str, Found]:
    """What the environment says under the names of mini-app-mcp."""
    return {
        setting.name: Found(environment[variable], f"environment {variable}", here)
        for variable, setting in BY_FOREIGN_VARIABLE.items()
        if variable in environment
    }


def foreign_lines(path: Path, lines: list[str]) -> Iterator[tuple[str, Found]]:
    """What the lines of its file say. The file is another program's: what we do not know there is left alone."""
    for number, line in enumerate(lines, start=1):
        variable, equals, value = (piece.strip() for piece in line.strip().removeprefix("export ").partition("="))
        setting = BY_FOREIGN_VARIABLE.get(variable)
        if setting is None or not equals or line.lstrip().startswith("#"):
            continue
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        yield setting.name, Found(os.fspath(value), f"{path}:{number}", path.parent)
