"""convmem connect: let an agent program use the daemon, by one entry in its configuration.

A token is needed in the entry if the URL leaves this machine, or if there are tokens here, or if CONVMEM_TOKEN is set
(as for a tunnel to a daemon that asks for one). Then the entry says where the program finds it, never what it is. Where
none is needed none is named: a program that finds the variable unset would send its name, or refuse to start.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from convmem import config, tokens
from convmem.cli.asking import CallFailed
from convmem.cli.printing import print_text
from convmem.cli.start import URL, DataDir, TokenFile, path_of, settings_of, start_of
from convmem.config import Settings
from convmem.connecting import clients, config_files, daemon_urls, documents
from convmem.connecting.clients import CLIENTS, TOKEN_VARIABLE, Client, NoHome, Server, Surroundings
from convmem.connecting.config_files import Changed
from convmem.connecting.daemon_urls import DaemonURL
from convmem.connecting.misfits import Misfit
from convmem.errors import DataDirectoryUnusable

PROGRAM = "convmem"
Edit = Callable[[str], str]


def connect(
    context: typer.Context,
    client: Annotated[str, typer.Argument(metavar="CLIENT", help=", ".join(CLIENTS))],
    print_only: Annotated[bool, typer.Option("--print", help="show the entry and change nothing")] = False,
    profile: Annotated[str | None, typer.Option("--profile", metavar="NAME", help="which tools it is shown")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="take the entry out")] = False,
    stdio: Annotated[bool, typer.Option("--stdio", help="let it start `convmem stdio` instead of a URL")] = False,
    url: URL = None,
    token_file: TokenFile = None,
    data_dir: DataDir = None,
) -> None:
    """Write convmem into the configuration of an agent program, keep all else that is there, and keep a copy."""
    program = clients.named(client)
    if program is None:
        raise typer.BadParameter(f"{client!r} is none of {', '.join(CLIENTS)}")
    if profile is not None and profile not in config.PROFILES:
        raise typer.BadParameter(f"--profile is one of {', '.join(config.PROFILES)}")
    if remove and print_only:
        raise typer.BadParameter("--print shows an entry and --remove takes it out: choose one")
    start = start_of(context)
    around = Surroundings(start.environment, start.working_directory or Path("/"), sys.platform)
    if remove:
        _remove(program, around)
        return
    settings = _settings(context, data_dir)
    with_url = program.speaks_http and not stdio
    if with_url and token_file is not None:
        raise typer.BadParameter(f"--token-file goes with --stdio: {program.title} takes {TOKEN_VARIABLE}")
    if url is None and token_file is not None:
        raise typer.BadParameter("--token-file goes with --url: whoever opens the store of this machine needs none")
    target = _target(settings, url, profile) if with_url or url is not None else None
    needs_token = target is not None and _needs_token(target, settings, start.environment)
    if with_url:
        assert target is not None
        server = Server(target.url, needs_token=needs_token)
    else:
        file = None if token_file is None else _token_file(path_of(context, token_file), is_checked=not print_only)
        command = _command(around, target, profile, file, settings)
        server = Server(None, command, needs_token=needs_token and file is None)
    if server.needs_token and not program.sees_environment:
        raise CallFailed(
            f"{program.title} does not see the variables of your shell: put the token into a file for you alone "
            "and name it with --token-file"
        )
    if print_only:
        print_text(_snippet(program, server))
        return
    _write(program, around, server)
    _say_what_is_next(program, server, target)


def _settings(context: typer.Context, data_dir: str | None) -> Settings | None:
    """The settings of this machine's daemon; None for a user who has no place for one."""
    try:
        return settings_of(context, data_dir=data_dir)
    except DataDirectoryUnusable:
        return None


def _target(settings: Settings | None, url: str | None, profile: str | None) -> DaemonURL:
    try:
        if url is not None:
            return daemon_urls.read(url, profile)
        if settings is None:
            return daemon_urls.read(f"http://{config.BY_NAME['bind'].default}", profile)
        return daemon_urls.of_bind(settings.bind, profile)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--url" if url is not None else None) from None


def _needs_token(target: DaemonURL, settings: Settings | None, environment: Mapping[str, str]) -> bool:
    has_tokens = settings is not None and (
        settings.http_token is not None or os.path.lexists(settings.data_dir / tokens.FILE)
    )
    return not target.is_loopback or has_tokens or TOKEN_VARIABLE in environment


def _token_file(path: Path, *, is_checked: bool) -> Path:
    path = Path(os.path.abspath(path))
    try:
        if is_checked and not config_files.is_private(path):
            raise CallFailed(f"others can read {path}: chmod 600 it first")
    except OSError as error:
        raise CallFailed(f"{path}: {error.strerror}") from None
    return path


def _command(
    around: Surroundings,
    target: DaemonURL | None,
    profile: str | None,
    token_file: Path | None,
    settings: Settings | None,
) -> tuple[str, ...]:
    """The command line of `convmem stdio`, with paths that hold wherever it is started."""
    words = [*_program(around), "stdio"]
    if target is not None:
        words += ["--url", target.base]
    elif settings is not None and settings.sources["data_dir"] != "default":
        words += ["--data-dir", os.path.abspath(settings.data_dir)]
    words += ["--profile", profile] if profile else []
    words += ["--token-file", str(token_file)] if token_file is not None else []
    for word in words:
        if not word.isprintable():
            raise CallFailed(f"{word!r} holds characters that a configuration cannot hold")
    return tuple(words)


def _program(around: Surroundings) -> list[str]:
    """How to start this program from anywhere: as it was started, as it is installed, or through its interpreter."""
    if os.path.basename(sys.argv[0]) == PROGRAM and os.sep in sys.argv[0]:
        return [os.path.abspath(around.here / sys.argv[0])]
    beside = os.path.join(os.path.dirname(sys.executable), PROGRAM)
    found = shutil.which(beside) or shutil.which(PROGRAM, path=around.environment.get("PATH", ""))
    return [os.path.abspath(around.here / found)] if found else [sys.executable, "-m", PROGRAM]


def _snippet(program: Client, server: Server) -> str:
    path = program.paths[0]
    return documents.snippet(program.form, path, program.entry(server, path)).removesuffix("\n")


def _write(program: Client, around: Surroundings, server: Server) -> None:
    files = _files(program, around)
    path = _file_to_change(program, files)

    def edit(text: str) -> str:
        keys = program.path_in(documents.meaning(program.form, text))
        before = documents.entry_at(program.form, text, keys)
        entry, ours = clients.with_additions(program, before, program.entry(server, keys))
        return documents.with_entry(program.form, text, keys, entry, ours)

    changed, backup = _changed(path, edit)
    if not changed:
        print_text(f"{path}: nothing to change")
    else:
        print_text(f"{path}: {'changed' if backup else 'made'}" + _kept(backup))


def _remove(program: Client, around: Surroundings) -> None:
    def edit(text: str) -> str:
        for keys in program.paths:
            text = documents.without_entry(program.form, text, keys)
        return text

    removed = 0
    for path in _files(program, around):
        if _read(path) is None:
            continue
        changed, backup = _changed(path, edit)
        if changed:
            removed += 1
            print_text(f"{path}: removed{_kept(backup)}")
    if removed:
        typer.echo(program.then, err=True)
    else:
        print_text(f"{program.title} has no entry of convmem: nothing to remove")


def _kept(backup: Path | None) -> str:
    return f"; a copy of what was there: {backup.name}" if backup else ""


def _files(program: Client, around: Surroundings) -> list[Path]:
    try:
        return program.files(around)
    except NoHome as error:
        raise CallFailed(
            f"{error}, so nobody knows where {program.title} has its configuration; --print shows what belongs there"
        ) from None


def _file_to_change(program: Client, files: list[Path]) -> Path:
    """The file that has our entry, else the first that is there, else the first."""
    there = {path: data for path in files if (data := _read(path)) is not None}
    for path, data in reversed(there.items()):
        with _told(path):
            text = documents.decoded(data)
            if any(documents.entry_at(program.form, text, keys) is not None for keys in program.paths):
                return path
    return next(iter(there), files[0])


def _changed(path: Path, edit: Edit) -> tuple[bool, Path | None]:
    """Edit a file; whether that changed it, and the copy of what was there. CallFailed leaves it as it was."""
    with _told(path):
        try:
            return config_files.change(path, lambda before: edit(documents.decoded(before)).encode(), _time())
        except Changed:
            raise CallFailed(f"{path}: another program keeps writing it; end that and try again") from None


def _read(path: Path) -> bytes | None:
    with _told(path):
        return config_files.read(path)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What goes wrong with a file inside this block becomes a line with its name: CallFailed."""
    try:
        yield
    except Misfit as error:
        place = f"{path}:{error.line}:{error.column}"
        raise CallFailed(f"{place}: {error.message}; nothing was changed") from None
    except OSError as error:
        raise CallFailed(f"{path}: {error.strerror or error}; nothing was changed") from None


def _time() -> str:
    from convmem.clock import SystemClock

    return datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")


def _say_what_is_next(program: Client, server: Server, target: DaemonURL | None) -> None:
    if server.needs_token:
        typer.echo(
            f"It takes its token from {TOKEN_VARIABLE}: set that where {program.title} is started. "
            "`convmem token create NAME` makes one.",
            err=True,
        )
        if target is not None and not target.is_loopback and not target.is_encrypted:
            typer.echo("http shows that token to the network between: use https or an SSH tunnel.", err=True)
    typer.echo(program.then, err=True)
