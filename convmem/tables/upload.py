"""Putting a snapshot on another host that speaks S3: one file, one request.

Many hosts speak it, and few all of it. So nothing is sent that must not be: no multipart for what one request can hold,
and no checksum header unless the settings ask for one. What was not told to us is guessed only where a wrong guess is
harmless: the region, which most of them ignore.

The library comes with the extra `s3` and is imported when the first file is sent. Rejected: boto3 (it sends checksums
that other hosts refuse), and requests signed by hand.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from convmem import folders
from convmem.errors import UploadFailed, UploadNotConfigured
from convmem.limits import UPLOAD_BYTES_MAX, UPLOAD_RETRIES_MAX, UPLOAD_S_MAX

NEEDED = ("endpoint", "bucket", "access_key_id", "secret_access_key")
VARIABLE = "CONVMEM_S3_{}"
REGION_DEFAULT = "us-east-1"
PREFIX_DEFAULT = "convmem-snapshots/"
# As in s3.eu-central-1.amazonaws.com; but s3.amazonaws.com and s3.example.com say none.
REGION_IN_HOST = re.compile(r"(?:^|\.)s3\.([a-z0-9-]+)\.[a-z0-9-]+\.[a-z]+")


class Bucket(NamedTuple):
    """Where files go, and as whom. Its text shows no secret."""

    endpoint: str
    bucket: str
    access_key_id: str
    secret_access_key: str
    prefix: str
    region: str
    is_virtual_hosted: bool
    has_checksum: bool

    def __repr__(self) -> str:
        return f"Bucket({self.endpoint}, {self.bucket})"


def bucket(told: Mapping[str, str]) -> Bucket:
    """The bucket that the settings name (by name without CONVMEM_S3_, in lower case). UploadNotConfigured with every
    name that is missing, also the library's.
    """
    missing = [VARIABLE.format(name.upper()) for name in NEEDED if not told.get(name)]
    try:
        import obstore  # noqa: F401
    except ImportError:
        missing.append("convmem[s3]")
    if missing:
        raise UploadNotConfigured(f"an upload needs {', '.join(missing)}", missing=missing)
    endpoint = told["endpoint"].rstrip("/")
    if urlsplit(endpoint).scheme not in ("http", "https") or not urlsplit(endpoint).hostname:
        raise UploadNotConfigured("CONVMEM_S3_ENDPOINT is no URL like https://s3.host", missing=["CONVMEM_S3_ENDPOINT"])
    return Bucket(
        endpoint=endpoint,
        bucket=told["bucket"],
        access_key_id=told["access_key_id"],
        secret_access_key=told["secret_access_key"],
        prefix=told.get("prefix", PREFIX_DEFAULT),
        region=told.get("region") or region_of(endpoint),
        is_virtual_hosted=told.get("virtual_hosted_style") == "true",
        has_checksum=told.get("checksum") == "sha256",
    )


def region_of(endpoint: str) -> str:
    """The region that a host's name says (`s3.<region>.…`), or the one that most hosts take for any."""
    found = REGION_IN_HOST.search(urlsplit(endpoint).hostname or "")
    return found[1] if found else REGION_DEFAULT


async def put(into: Bucket, path: Path, name: str) -> None:
    """Put a file there under the prefix and its name. UploadFailed, whose sentence holds no secret."""
    size = folders.size(path)
    if size > UPLOAD_BYTES_MAX:
        raise UploadFailed("the file is larger than one request can hold", file=name)
    from obstore import put_async
    from obstore.exceptions import BaseError

    store = _store(into)
    try:
        await put_async(store, f"{into.prefix}{name}", path, use_multipart=False)
    except (BaseError, OSError) as error:
        # What the host says of a bucket that is not there comes as an OSError too.
        raise UploadFailed(f"it could not be sent: {_reason(error, into)}", file=name) from None


def _store(into: Bucket) -> Any:
    from obstore.store import S3Store

    endpoint = into.endpoint
    if into.is_virtual_hosted:
        parts = urlsplit(endpoint)
        endpoint = f"{parts.scheme}://{into.bucket}.{parts.netloc}{parts.path}"
    options: dict[str, Any] = {"checksum_algorithm": "SHA256"} if into.has_checksum else {}
    return S3Store(
        into.bucket,
        endpoint=endpoint,
        access_key_id=into.access_key_id,
        secret_access_key=into.secret_access_key,
        region=into.region,
        virtual_hosted_style_request=into.is_virtual_hosted,
        client_options={
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=UPLOAD_S_MAX / 6),
            "timeout": timedelta(seconds=UPLOAD_S_MAX),
        },
        retry_config={"max_retries": UPLOAD_RETRIES_MAX, "retry_timeout": timedelta(seconds=UPLOAD_S_MAX)},
        **options,
    )


def _reason(error: Exception, into: Bucket) -> str:
    """The first line of what the library says, without what is secret in it."""
    text = str(error).split("\n", 1)[0][:200]
    for secret in (into.secret_access_key, into.access_key_id):
        text = text.replace(secret, "…")
    return text
