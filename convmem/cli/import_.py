"""convmem import: files that `convmem export` wrote, all of a file or none of it; and histories of other programs.

Which of both a file is, its first line says, never its name. What is said of the one kind alone is refused for the
other: an option that does nothing would be believed.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from convmem.cli import importing, progress
from convmem.cli.asking import CallFailed, reach
from convmem.cli.printing import print_json, print_table
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile, path_of
from convmem.config import Settings
from convmem.errors import SettingInvalid
from convmem.files import read_text

if TYPE_CHECKING:
    from convmem.cli.call import Place

PIECE_BYTES = 1024 * 1024
# The manifest, whose first key is its type.
MANIFEST, BEGINNING_BYTES = re.compile(rb'\A(\xef\xbb\xbf)?\s*\{[^}]*"type"\s*:\s*"manifest"'), 4_096
POLICIES = ("reject", "overwrite")
COLUMNS = ("records", "new", "unchanged", "overwritten", "file")
Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE…", help="files that `convmem export` wrote; files, archives, directories of others"),
]
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
    format_: importing.FormatOption = None,
    project: importing.ProjectOption = None,
    account: importing.AccountOption = None,
    since: importing.SinceOption = None,
    no_thinking: importing.NoThinking = False,
    keep_secrets: importing.KeepSecrets = False,
    resurrect: importing.Resurrect = False,
    report: importing.ReportOption = None,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
    as_json: AsJSON = False,
) -> None:
    """Bring in the records of files that convmem has written, or the histories of other programs."""
    if policy not in POLICIES:
        raise SettingInvalid(f"--policy: {policy!r} is none of {', '.join(POLICIES)}", setting="--policy")
    paths = [path_of(context, name) for name in names]
    asked = importing.Asked(format_, project, account, since, no_thinking, keep_secrets, resurrect, report)
    own = [path for path in paths if format_ is None and _is_own(path)]
    if not own:
        if policy != POLICIES[0]:
            raise typer.BadParameter("--policy is for files that `convmem export` wrote")
        where = importing.Where(data_dir, url, token_file)
        importing.import_others(context, paths, asked, where, dry_run=dry_run, as_json=as_json)
        return
    if len(own) < len(paths):
        raise typer.BadParameter("files of `convmem export` and those of others are imported one after the other")
    if asked != importing.NOTHING_ASKED:
        raise typer.BadParameter("a file of `convmem export` is taken in as it is: only --policy and --dry-run apply")
    found: list[Mapping[str, Any]] = []
    for path in own:
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


def _is_own(path: Path) -> bool:
    """True if a file begins as `convmem export` begins one. What cannot be read is told when it is opened."""
    try:
        return not path.is_dir() and bool(MANIFEST.match(read_text(path, bytes_max=BEGINNING_BYTES) or b""))
    except OSError:
        return True


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
