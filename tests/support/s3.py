"""A real S3-compatible server for a test: moto's, as a process of its own on a free port of loopback."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import obstore
from obstore.store import S3Store

WAIT_S = 30


@dataclass
class S3:
    """The server: where it is, and the requests that put something there, with their headers in lower case."""

    endpoint: str
    bucket: str
    settings: dict[str, str] = field(default_factory=dict)

    def _store(self) -> S3Store:
        return S3Store(
            self.bucket,
            endpoint=self.endpoint,
            access_key_id="tester",
            secret_access_key="not-a-real-secret",
            region="us-east-1",
            client_options={"allow_http": True},
        )

    def names(self) -> list[str]:
        """The names of all objects."""
        return sorted(found["path"] for page in obstore.list(self._store()) for found in page)

    def read(self, name: str) -> bytes:
        """What an object holds."""
        return bytes(obstore.get(self._store(), name).bytes())


@contextmanager
def s3_server(bucket: str = "snapshots") -> Iterator[S3]:
    """A server with one empty bucket."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        server = S3(f"http://127.0.0.1:{port}", bucket)
        end = time.monotonic() + WAIT_S
        while True:
            try:
                made = httpx.put(f"{server.endpoint}/{bucket}", trust_env=False)
                break
            except httpx.TransportError:
                assert time.monotonic() < end, "the server did not start"
                time.sleep(0.05)
        assert made.status_code == 200, made.text
        server.settings = {
            "endpoint": server.endpoint,
            "bucket": bucket,
            "access_key_id": "tester",
            "secret_access_key": "not-a-real-secret",
        }
        yield server
    finally:
        process.terminate()
        process.wait(10)
