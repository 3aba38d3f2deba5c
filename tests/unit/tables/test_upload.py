"""One file to a host that speaks S3: a real one over HTTP, and what is asked of the settings before."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convmem.errors import UploadFailed, UploadNotConfigured
from convmem.tables.upload import bucket, put, region_of
from tests.support.s3 import S3, s3_server

GIVEN = {"endpoint": "http://h", "bucket": "b", "access_key_id": "the-id", "secret_access_key": "the-secret"}


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.1796111025973.db"
    path.write_bytes(b"rows" * 100_000)
    return path


def test_every_name_that_is_missing_is_named_at_once():
    with pytest.raises(UploadNotConfigured) as caught:
        bucket({"bucket": "b", "region": "x"})
    names = ("ENDPOINT", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
    assert caught.value.details["missing"] == [f"CONVMEM_S3_{name}" for name in names]


@pytest.mark.parametrize("endpoint", ["h", "ftp://h", "https://"])
def test_an_endpoint_is_a_url(endpoint: str):
    with pytest.raises(UploadNotConfigured):
        bucket({**GIVEN, "endpoint": endpoint})


@pytest.mark.parametrize(
    ("endpoint", "region"),
    [
        ("https://s3.eu-central-1.amazonaws.com", "eu-central-1"),
        ("https://bucket.s3.us-west-2.amazonaws.com", "us-west-2"),
        ("https://s3.fr-par.scw.cloud", "fr-par"),
        ("https://s3.amazonaws.com", "us-east-1"),
        ("http://127.0.0.1:9000", "us-east-1"),
        ("https://minio.home", "us-east-1"),
    ],
)
def test_the_region_is_in_the_hosts_name_or_the_usual_one(endpoint: str, region: str):
    assert region_of(endpoint) == region
    assert bucket({**GIVEN, "endpoint": endpoint}).region == region
    assert bucket({**GIVEN, "endpoint": endpoint, "region": "mine"}).region == "mine"


def test_nothing_shows_a_secret():
    assert "the-" not in repr(bucket(GIVEN))


@pytest.mark.slow
async def test_a_file_arrives_whole_under_the_prefix(s3: S3, file: Path):
    await put(bucket(s3.settings), file, file.name)
    assert s3.read(f"convmem-snapshots/{file.name}") == file.read_bytes()
    await put(bucket({**s3.settings, "prefix": "a/b-", "checksum": "sha256"}), file, file.name)
    assert s3.read(f"a/b-{file.name}") == file.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [{"bucket": "nowhere"}, {"endpoint": "http://127.0.0.1:9"}])
async def test_a_host_that_does_not_take_it_is_told_without_secrets(s3: S3, file: Path, wrong: dict[str, str]):
    with pytest.raises(UploadFailed) as caught:
        await put(bucket({**s3.settings, **wrong}), file, file.name)
    assert caught.value.details["file"] == file.name
    assert s3.settings["secret_access_key"] not in str(caught.value)
    assert s3.settings["access_key_id"] not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("checksum", ["none", "sha256"])
async def test_a_checksum_is_sent_only_if_it_is_asked_for(file: Path, checksum: str):
    heads: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer_once, args=(listener, heads))
        thread.start()
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        await put(bucket({**GIVEN, "endpoint": endpoint, "checksum": checksum}), file, file.name)
        thread.join()
    (head,) = heads
    assert head.startswith(b"PUT /b/convmem-snapshots/notes.1796111025973.db HTTP/1.1")
    assert (b"x-amz-checksum-sha256" in head) == (checksum == "sha256")
    assert b"x-amz-sdk-checksum" not in head


def _answer_once(listener: socket.socket, heads: list[bytes]) -> Any:
    connection, _ = listener.accept()
    with connection:
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(65536)
        head, _, body = received.partition(b"\r\n\r\n")
        heads.append(head.replace(b"\r\n", b"\n").split(b"\n")[0] + b"\n" + head.lower())
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(65536)
        connection.sendall(b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
