"""store/manifest: documents in which no byte changes unnoticed."""

import pytest

from convmem.errors import BackupRefused
from convmem.limits import MANIFEST_BYTES_MAX
from convmem.store import manifest
from convmem.store.manifest import MANIFEST, PROVEN, Manifest, Part, Proof
from tests.support.faulty_files import FaultyFiles

MADE = Manifest(
    created_at="2026-01-31T08:00:00.000Z",
    convmem="1.0",
    store_id="0123abcd",
    generation=3,
    sequence=9,
    log_bytes=700,
    state_hash="ab" * 32,
    parts=(Part(name="convmem.log", file="log-3", bytes=700, sha256="cd" * 32),),
)
PROOF = Proof(proven_at_ms=1_700_000_000_000, manifest="ef" * 32)


def holding(name: str, data: bytes) -> FaultyFiles:
    disk = FaultyFiles()
    disk.open(name).write(0, data)
    return disk


def test_what_was_put_is_read_again_with_its_seal() -> None:
    disk = FaultyFiles()
    for name, document in ((MANIFEST, MADE), (PROVEN, PROOF)):
        sealed, data = manifest.sealed(document)
        manifest.put(disk, name, data)
        assert manifest.read(disk, name, type(document)) == sealed
    assert disk.names() == [MANIFEST, PROVEN]
    assert manifest.read(disk, MANIFEST, Manifest) != MADE, "the seal is part of it"


def test_sealing_again_changes_nothing() -> None:
    sealed, data = manifest.sealed(MADE)
    assert manifest.sealed(sealed) == (sealed, data)


def test_a_document_that_is_not_there_is_none() -> None:
    assert manifest.read(FaultyFiles(), MANIFEST, Manifest) is None


@pytest.mark.parametrize(("name", "document"), [(MANIFEST, MADE), (PROVEN, PROOF)])
def test_every_flipped_bit_is_noticed(name: str, document: Manifest | Proof) -> None:
    _, data = manifest.sealed(document)
    for at in range(len(data)):
        for bit in range(8):
            changed = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
            with pytest.raises(BackupRefused):
                manifest.read(holding(name, changed), name, type(document))


@pytest.mark.parametrize("size", [0, 1, 40, -1])
def test_a_document_that_was_cut_or_grew_is_noticed(size: int) -> None:
    _, data = manifest.sealed(MADE)
    for changed in (data[:size], data + b" ", data + data, b" " + data):
        with pytest.raises(BackupRefused, match="not what was written"):
            manifest.read(holding(MANIFEST, changed), MANIFEST, Manifest)


def test_the_same_facts_in_another_spelling_are_noticed() -> None:
    _, data = manifest.sealed(MADE)
    with pytest.raises(BackupRefused):
        manifest.read(holding(MANIFEST, data.replace(b":", b": ")), MANIFEST, Manifest)


def test_a_newer_version_says_so() -> None:
    data = b'{"format":"convmem-backup","version":2,"something":"else"}\n'
    with pytest.raises(BackupRefused, match="newer convmem"):
        manifest.read(holding(MANIFEST, data), MANIFEST, Manifest)


def test_an_endless_document_is_not_read_to_its_end() -> None:
    with pytest.raises(BackupRefused, match="not what was written"):
        manifest.read(holding(MANIFEST, b"[" * (MANIFEST_BYTES_MAX + 10)), MANIFEST, Manifest)


def test_a_time_is_written_in_utc_to_the_millisecond() -> None:
    assert manifest.iso(1_769_846_400_007) == "2026-01-31T08:00:00.007Z"
