"""Tables out of a backup: which files may be there already, and where each comes to.

They come back to the data directory, wherever the user's tables were; the one table of single-table mode too. That one
gets its own name among the others if nobody has it, so it is there whether or not the settings that made it the one are
there again; else it stands apart, and only those settings can name it. Either way the answer says what to set.

A restore that was cut off may have put some of them there: they are those of the backup, byte for byte, and are written
again. Anything else belongs to somebody, and no restore may mix it with its own.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from convmem import files, folders
from convmem.errors import BackupRefused, SchemaError
from convmem.files import Files
from convmem.limits import SCHEMA_BYTES_MAX
from convmem.store.manifest import Manifest
from convmem.tables import schema
from convmem.tables.kept import SINGLE

DIRECTORY = "tables"
LOCK = ".lock"
ONE_SCHEMA, ONE_ROWS = f"{DIRECTORY}/{SINGLE}/schema.yaml", f"{DIRECTORY}/{SINGLE}/{SINGLE}.db"


@dataclass(frozen=True)
class Places:
    """Where the tables of a backup come to: each part's name in the backup, and its path in the data directory."""

    data_dir: Path
    manifest: Manifest
    moved: Mapping[str, str]

    def refuse_others(self) -> None:
        """BackupRefused if the directory of tables holds anything that is not the backup's."""
        root = self.data_dir / DIRECTORY
        hashes = {self.moved.get(part.name, part.name): part.sha256 for part in self.manifest.parts}
        for name in folders.names(root):
            inside = folders.names(root / name) if folders.is_directory(root / name) else None
            for path in [name] if inside is None else [f"{name}/{inner}" for inner in inside]:
                if path != LOCK and hashes.get(f"{DIRECTORY}/{path}") != _hash(root / path):
                    sentence = f"the data directory holds {DIRECTORY}/{path}: restore into an empty one"
                    raise BackupRefused(sentence, part=f"{DIRECTORY}/{path}")

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        """Put a file of a backup (its name is that of its part) in its place. OSError."""
        target = self.data_dir / self.moved.get(name, name)
        folders.make(target.parent)
        with files.appearing(target) as write:
            for piece in pieces:
                write(piece)

    def facts(self) -> dict[str, str]:
        """What whoever restores has to know: {single_table}, if there is the one table of single-table mode."""
        there = [name for name in (ONE_SCHEMA, ONE_ROWS) if self.manifest.part(name) is not None]
        if not there:
            return {}
        schema_file, rows = (self.data_dir / self.moved.get(name, name) for name in (ONE_SCHEMA, ONE_ROWS))
        named = "" if not self.moved else f"is the table {schema_file.parent.name}; "
        lacks = "" if len(there) == 2 else ", of which the backup lacks one"
        sentence = f"what CONVMEM_DB named {named}set CONVMEM_SCHEMA={schema_file} and CONVMEM_DB={rows}{lacks}"
        return {"single_table": f"{sentence}, to have it as the default again"}


def places(data_dir: Path, manifest: Manifest, source: Files) -> Places:
    """Where the tables of the backup in `source` come to. OSError."""
    name = _name_of_the_one(manifest, source)
    taken = {part.name.lower().split("/")[1] for part in manifest.parts if part.name.startswith(f"{DIRECTORY}/")}
    if name is None or name.lower() in taken:
        return Places(data_dir, manifest, {})
    directory = f"{DIRECTORY}/{name}"
    return Places(data_dir, manifest, {ONE_SCHEMA: f"{directory}/schema.yaml", ONE_ROWS: f"{directory}/{name}.db"})


def _name_of_the_one(manifest: Manifest, source: Files) -> str | None:
    """What the schema of the one table calls it; None if there is none that can be read."""
    part = manifest.part(ONE_SCHEMA)
    if part is None or manifest.part(ONE_ROWS) is None or not source.exists(part.file):
        return None
    with closing(source.open_to_read(part.file)) as file:
        text = file.read(0, min(part.bytes, SCHEMA_BYTES_MAX + 1))
    try:
        return schema.parse(text).table
    except SchemaError:
        return None


def _hash(path: Path) -> str:
    if not folders.is_file(path):
        return ""
    digest = sha256()
    for piece in folders.pieces(path):
        digest.update(piece)
    return digest.hexdigest()
