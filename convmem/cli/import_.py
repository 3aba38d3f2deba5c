"""convmem import: the records of files of JSON Lines, all of a file or none of it."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from convmem.cli import progress
from convmem.cli.asking import CallFailed, reach
from convmem.cli.printing import print_json, print_table
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile, path_of
from convmem.config import Settings
from convmem.errors import SettingInvalid

if TYPE_CHECKING:
    from convmem.cli.call import Place

PIECE_BYTES = 1024 * 1024
POLICIES = ("reject", "overwrite")
COLUMNS = ("records", "new", "unchanged", "overwritten", "file")
Files = Annotated[list[str], typer.Argument(metavar="FILE…", help="files that `convmem export` wrote")]
PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="reject|overwrite",
        help="a record that the store knows with other content refuses the file, or takes the stored one's place",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="check the file and say what would happen; change nothing")]


def import_(
    context: typer.Context,
    names: Files,
    policy: PolicyOption = POLICIES[0],
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
    as_json: AsJSON = False,
) -> None:
    """Bring in the records of files, one file after another; a file with one bad line changes nothing."""
    if policy not in POLICIES:
        raise SettingInvalid(f"--policy: {policy!r} is none of {', '.join(POLICIES)}", setting="--policy")
    found: list[Mapping[str, Any]] = []
    for path in [path_of(context, name) for name in names]:
        source = Source(path, policy, dry_run)
        with progress.shown() as tell:
            facts = reach(
                context,
                data_dir=data_dir,
                url=url,
                token_file=token_file,
                there=partial(_there, source=source, tell=tell),
                here=partial(_here, source=source, tell=tell),
                needs_store=False,
            )
        found.append({**facts, "file": str(source.path)})
        if not as_json:
            print_table(COLUMNS, [[str(found[-1][column]) for column in COLUMNS]])
    if as_json:
        print_json({"files": found})


class Source(NamedTuple):
    """A file, and what to do with its records."""

    path: Path
    policy: str
    dry_run: bool


def _there(place: "Place", source: Source, tell: progress.Tell) -> Mapping[str, Any]:
    from convmem.cli.streaming import upload
    from convmem.files import regular

    try:
        file = regular(source.path)
    except OSError as error:
        raise _unreadable(source.path, error) from None
    size = file.size()

    def pieces() -> Iterator[bytes]:
        for offset in range(0, size, PIECE_BYTES):
            piece = file.read(offset, min(PIECE_BYTES, size - offset))
            if not piece:
                raise CallFailed(f"{source.path} became shorter while it was read; nothing was imported")
            yield piece

    arguments = f"policy={source.policy}&dry_run={str(source.dry_run).lower()}"
    try:
        return upload(place, f"/import?{arguments}", pieces(), size, tell)
    finally:
        file.close()


def _here(settings: Settings, source: Source, tell: progress.Tell) -> Mapping[str, Any]:
    from convmem import offline

    try:
        return offline.bring(settings, source.path, source.policy, dry_run=source.dry_run, tell=tell)
    except OSError as error:
        raise _unreadable(source.path, error) from None


def _unreadable(path: Path, error: OSError) -> CallFailed:
    return CallFailed(f"{path} cannot be read: {error.strerror}")
