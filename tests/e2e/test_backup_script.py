"""contrib/backup: the script for cron against a real daemon and a real S3 host, and each of its exit statuses."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.daemons import daemon
from tests.support.s3 import s3_server
from tests.support.source import REPOSITORY
from tests.support.tabled import put_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="the script needs curl"),
]
SCRIPT = REPOSITORY / "contrib" / "backup" / "convmem-backup.sh"


def ran(*arguments: str, **environment: str) -> tuple[int, str]:
    """The script's exit status and what it said."""
    done = subprocess.run(
        ["/bin/sh", str(SCRIPT), *arguments],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def test_snapshots_are_made_and_sent(tmp_path: Path):
    root = tmp_path / "data" / "tables"
    put_table(root)
    with s3_server() as s3:
        settings = {f"CONVMEM_S3_{name.upper()}": value for name, value in s3.settings.items()}
        with daemon(tmp_path / "data", environment=settings | {"CONVMEM_HTTP_TOKEN": "secret"}) as running:
            at = {"CONVMEM_URL": running.url.removesuffix("/mcp")}
            assert ran(**at)[0] == 1, "without the token"
            status, said = ran(**at, CONVMEM_TOKEN="secret")
            assert (status, said) == (0, "convmem-backup: done\n")
            assert len(s3.names()) == 1
            assert ran("--local", **at, CONVMEM_TOKEN="secret")[0] == 0
            assert len(s3.names()) == 1
            assert len(list((root / "_snapshots").iterdir())) == 2
            for path in (root / "notes").glob("notes.db*"):
                path.unlink()
            (root / "notes" / "notes.db").write_bytes(b"spoiled" * 1_000)
            status, said = ran("--local", **at, CONVMEM_TOKEN="secret")
            assert (status, "STORAGE_ERROR" in said) == (2, True)
            running.stop()


def test_a_host_that_takes_nothing_and_a_daemon_that_refuses(tmp_path: Path):
    put_table(tmp_path / "data" / "tables")
    names = ("ENDPOINT", "BUCKET", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
    settings = {f"CONVMEM_S3_{name}": "x" for name in names} | {"CONVMEM_S3_ENDPOINT": "http://127.0.0.1:9"}
    with daemon(tmp_path / "data", environment=settings) as running:
        status, said = ran(CONVMEM_URL=running.url)
        assert (status, "UPLOAD_FAILED" in said) == (3, True)
        running.stop()
    with daemon(tmp_path / "data") as running:
        status, said = ran(CONVMEM_URL=running.url)
        assert (status, "UPLOAD_NOT_CONFIGURED" in said) == (2, True)
        running.stop()
    assert ran(CONVMEM_URL="http://127.0.0.1:9")[0] == 1
    assert ran("--nonsense")[0] == 2
