"""A data directory with known messages in it, and the daemon that holds it."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from convmem.cli.call import Place, call
from tests.support.commands import Daemon, daemon

LONG = "ü" * 40_000 + " the end"
MESSAGES: tuple[dict[str, Any], ...] = (
    {"session_id": "garden", "role": "user", "content": "The tomatoes go\nbehind the shed.\x1b[2J"},
    {"session_id": "garden", "role": "assistant", "content": LONG},
    {"session_id": "cat", "role": "user", "content": "Miso 味噌", "metadata": {"project": "house", "tags": ["pet"]}},
)


class Written(NamedTuple):
    """A data directory with MESSAGES in it, their ids, and the daemon that holds it."""

    data_dir: Path
    message_ids: tuple[str, ...]
    daemon: Daemon

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment in which a verb finds the data directory."""
        return {"CONVMEM_DATA_DIR": str(self.data_dir)}


def damaged_copy(data_dir: Path, target: Path) -> Path:
    """A copy of the store whose log is damaged in its first frame, with whole frames behind it."""
    shutil.copytree(data_dir, target, ignore=shutil.ignore_patterns("*.sock"))
    log = target / "convmem.log"
    data = bytearray(log.read_bytes())
    data[60] ^= 1
    log.write_bytes(data)
    return target


@contextmanager
def written_and_held(data_dir: Path) -> Iterator[Written]:
    """Start a daemon, write MESSAGES, and keep it running until the block ends."""
    with daemon("--data-dir", str(data_dir)) as running:
        place = Place(url=f"{running.url}/messages")
        ids = tuple(call(place, "write_message", message)["message_id"] for message in MESSAGES)
        yield Written(data_dir, ids, running)
