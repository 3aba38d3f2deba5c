"""Tables out of a backup: which files may be there already, and how one comes to its place.

They come back to the data directory, wherever the user's tables were. A restore that was cut off may have put some of
them there: they are those of the backup, byte for byte, and are written again. Anything else belongs to somebody, and
no restore may mix it with its own.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from convmem import files, folders
from convmem.errors import BackupRefused
from convmem.store.manifest import Manifest

DIRECTORY = "tables"
LOCK = ".lock"


def refuse_others(data_dir: Path, manifest: Manifest) -> None:
    """BackupRefused if the directory of tables holds anything that is not the backup's."""
    root = data_dir / DIRECTORY
    for name in folders.names(root):
        inside = folders.names(root / name) if folders.is_directory(root / name) else None
        for path in [name] if inside is None else [f"{name}/{inner}" for inner in inside]:
            part = manifest.part(f"{DIRECTORY}/{path}")
            if path != LOCK and (part is None or _hash(root / path) != part.sha256):
                sentence = f"the data directory holds {DIRECTORY}/{path}: restore into an empty one"
                raise BackupRefused(sentence, part=f"{DIRECTORY}/{path}")


def _hash(path: Path) -> str:
    if not folders.is_file(path):
        return ""
    digest = sha256()
    for piece in folders.pieces(path):
        digest.update(piece)
    return digest.hexdigest()


def put(data_dir: Path, name: str, pieces: Iterator[bytes]) -> None:
    """Put a file of a backup (its name is that of its part) in its place. OSError."""
    target = data_dir / name
    folders.make(target.parent)
    with files.appearing(target) as write:
        for piece in pieces:
            write(piece)
