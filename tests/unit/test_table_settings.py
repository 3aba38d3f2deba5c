"""The settings of tables: ours, their twins of another name, and what cannot be meant."""

from pathlib import Path

import pytest

from convmem.config import Settings
from convmem.errors import SettingInvalid
from convmem.table_settings import SECRETS
from tests.unit.test_config import data_dir, here, loaded

__all__ = ["data_dir", "here"]


def given(settings: Settings, name: str) -> object:
    return getattr(settings.tables, name)


def test_without_any_setting_tables_are_in_the_data_directory(here: Path):
    found = loaded(here).tables
    assert found.user_dir == here.parent / "data" / "tables"
    assert (found.project_dir, found.schema, found.database) == (None, None, None)
    assert (found.backup_retention, found.snapshot_retention) == (10, 10)
    assert (found.history_keep_recent, found.history_chunk_min) == (16, 48)
    assert found.upload == {"prefix": "convmem-snapshots/", "virtual_hosted_style": "false", "checksum": "none"}
    assert found.working_directory == here


def test_a_project_is_where_it_is(here: Path):
    (here / ".convmem").mkdir()
    assert loaded(here).tables.project_dir == here / ".convmem"
    assert loaded(here, CONVMEM_PROJECT_DIR="other").tables.project_dir == here / "other"


def test_one_table_needs_its_file_and_takes_the_usual_schema(here: Path):
    found = loaded(here, CONVMEM_DB="my.db").tables
    assert (found.schema, found.database) == (here / "schema.yaml", here / "my.db")
    found = loaded(here, CONVMEM_DB="/x/my.db", CONVMEM_SCHEMA="s.yaml").tables
    assert (found.schema, found.database) == (here / "s.yaml", Path("/x/my.db"))
    with pytest.raises(SettingInvalid):
        loaded(here, CONVMEM_SCHEMA="s.yaml")


@pytest.mark.parametrize(
    "variable", ["BACKUP_RETENTION", "SNAPSHOT_RETENTION", "HISTORY_KEEP_RECENT", "HISTORY_CHUNK_MIN"]
)
@pytest.mark.parametrize("text", ["0", "-1", "ten", "1.5", "", "99999999999"])
def test_a_number_that_cannot_be_meant_refuses_the_start(here: Path, variable: str, text: str):
    for prefix in ("CONVMEM_", "MINI_APP_"):
        with pytest.raises(SettingInvalid) as caught:
            loaded(here, **{prefix + variable: text})
        assert prefix + variable in str(caught.value)


def test_a_twin_counts_where_ours_says_nothing(here: Path, data_dir: Path):
    assert loaded(here, MINI_APP_USER_DIR="theirs").tables.user_dir == here / "theirs"
    (here / ".mini-app-mcp.env").write_text(
        "# of the other program\nexport MINI_APP_BACKUP_RETENTION='3'\nSOMETHING=else\nMINI_APP_USER_DIR=/from/file\n"
    )
    found = loaded(here)
    assert (found.tables.backup_retention, found.tables.user_dir) == (3, Path("/from/file"))
    assert found.sources["backup_retention"] == f"{here / '.mini-app-mcp.env'}:2"
    assert loaded(here, MINI_APP_USER_DIR="/from/environment").tables.user_dir == Path("/from/environment")
    (data_dir / "convmem.env").write_text("CONVMEM_USER_DIR=/ours\n")
    assert loaded(here, MINI_APP_USER_DIR="/from/environment").tables.user_dir == Path("/ours")


def test_the_host_for_snapshots_is_told_in_texts_and_its_keys_are_never_shown(here: Path):
    found = loaded(
        here,
        CONVMEM_S3_ENDPOINT="https://s3.example.com",
        CONVMEM_S3_BUCKET="b",
        CONVMEM_S3_ACCESS_KEY_ID="the-id",
        CONVMEM_S3_SECRET_ACCESS_KEY="the-secret",
        CONVMEM_S3_VIRTUAL_HOSTED_STYLE="TRUE",
        CONVMEM_S3_CHECKSUM="sha256",
    )
    assert found.tables.upload["secret_access_key"] == "the-secret"
    assert found.tables.upload["virtual_hosted_style"] == "true"
    assert "the-" not in repr(found)
    assert [found.tables.shown(name) for name in SECRETS] == ["set, not shown"] * 2
    assert found.tables.shown("s3_bucket") == "b"
    for wrong in ({"CONVMEM_S3_CHECKSUM": "md5"}, {"CONVMEM_S3_VIRTUAL_HOSTED_STYLE": "maybe"}):
        with pytest.raises(SettingInvalid):
            loaded(here, **wrong)
