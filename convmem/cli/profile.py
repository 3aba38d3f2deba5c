"""convmem profile: what an agent is told of the user, as text; and the sections of it that a person writes.

Hooks print it at the start of a session, so it says nothing where nothing is stored, and imports little. On this
machine it asks over the local socket; of another one it asks the tool that every token may call.
"""

import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from convmem import files
from convmem.cli.asking import CallFailed, reach
from convmem.cli.operating import operate
from convmem.cli.printing import print_json, print_text
from convmem.cli.progress import Tell
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile, start_of
from convmem.config import Settings
from convmem.errors import ConvmemError, NotFound

if TYPE_CHECKING:
    from convmem.cli.call import Place

VERB, TOOL = "profile", "get_profile"
SECTION_BYTES_MAX = 64 * 1024

app = typer.Typer(no_args_is_help=False, rich_markup_mode=None)
Section = Annotated[str, typer.Argument(metavar="SECTION", help="for example identity, goals, style or notes")]


@app.callback(invoke_without_command=True)
def profile(
    context: typer.Context,
    max_chars: Annotated[
        int, typer.Option("--max-chars", metavar="N", help="at most so many characters", min=1)
    ] = 3000,
    project: Annotated[str | None, typer.Option("--project", metavar="NAME", help="this project's own first")] = None,
    as_json: AsJSON = False,
    url: URL = None,
    token_file: TokenFile = None,
    data_dir: DataDir = None,
) -> None:
    """Show what agents are told of you, or write a section of it yourself: set, edit, delete."""
    if context.invoked_subcommand is not None:
        return
    arguments = {} if project is None else {"project": project}
    facts = reach(
        context,
        data_dir=data_dir,
        url=url,
        token_file=token_file,
        there=lambda place: _of(place, arguments),
        here=lambda settings: _own(settings, _nobody, {"action": "show", **arguments}),
    )
    if as_json:
        print_json(facts)
        return
    from convmem.profile_text import profile_text

    # One of the characters is the end of the last line.
    if text := profile_text(facts, max_chars - 1):
        print_text(text)


def _of(place: "Place", arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The facts of the profile, from a daemon."""
    if place.socket is not None:
        from convmem.cli.streaming import ask

        return ask(place, VERB, {"action": "show", **arguments}, _nobody)
    from convmem.cli.call import call

    # A URL may name an endpoint whose tools are others; one that names none is asked where this tool surely is.
    has_path = "/mcp" in place.url
    return call(place if has_path else place._replace(url=f"{place.url.rstrip('/')}/mcp/memory"), TOOL, arguments)


def _nobody(done: float, total: float, sentence: str) -> None:
    """What is done in no time is not told."""


def _own(settings: Settings, tell: Tell, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    from convmem import profiles

    return profiles.own(settings, arguments, tell)


@app.command("set")
def set_section(
    context: typer.Context,
    section: Section,
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="else what comes on stdin")] = None,
    url: URL = None,
    token_file: TokenFile = None,
    data_dir: DataDir = None,
) -> None:
    """Write a section of the profile, in the place of what it said."""
    content = _stdin() if text is None else text
    _write(context, section, content, {"data_dir": data_dir, "url": url, "token_file": token_file})


@app.command("edit")
def edit_section(
    context: typer.Context,
    section: Section,
    url: URL = None,
    token_file: TokenFile = None,
    data_dir: DataDir = None,
) -> None:
    """Change a section of the profile in your editor (VISUAL, else EDITOR, else vi)."""
    where = {"data_dir": data_dir, "url": url, "token_file": token_file}
    try:
        known = str(_asked(context, {"action": "read", "section": section}, where)["content"])
    except NotFound:
        known = ""
    with TemporaryDirectory(prefix="convmem-") as directory:
        path = Path(directory) / f"{section}.txt"
        with files.appearing(path) as write:
            write(known.encode())
        _edited(context, path)
        content = _decoded(files.read_text(path, bytes_max=SECTION_BYTES_MAX) or b"")
        if content == known.rstrip("\n"):
            print_text(f"section {section} stays as it is")
            return
        try:
            _write(context, section, content, where)
        except (ConvmemError, CallFailed) as error:
            print_text(content)
            raise CallFailed(f"section {section} was not written ({error}); the text is printed above") from None


def _edited(context: typer.Context, path: Path) -> None:
    environment = start_of(context).environment
    editor = environment.get("VISUAL") or environment.get("EDITOR") or "vi"
    # Ctrl-C is for the editor; this process waits for it.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        command = [*shlex.split(editor), str(path)]
        status = subprocess.run(command, env=dict(environment), check=False).returncode  # noqa: S603 - a person chose it
    except (OSError, ValueError) as error:
        raise CallFailed(f"the editor {editor!r} cannot be started ({error}): set VISUAL or EDITOR") from None
    finally:
        signal.signal(signal.SIGINT, before)
    if status:
        raise CallFailed(f"the editor {editor!r} ended with status {status}: nothing was changed")


@app.command("delete")
def delete_section(
    context: typer.Context,
    section: Section,
    url: URL = None,
    token_file: TokenFile = None,
    data_dir: DataDir = None,
) -> None:
    """Delete a section of the profile."""
    where = {"data_dir": data_dir, "url": url, "token_file": token_file}
    _asked(context, {"action": "delete", "section": section}, where)
    print_text(f"section {section} is deleted")


def _write(context: typer.Context, section: str, content: str, where: Mapping[str, str | None]) -> None:
    facts = _asked(context, {"action": "set", "section": section, "content": content}, where)
    print_text(f"section {section} is written" if facts["changed"] else f"section {section} says that already")


def _asked(context: typer.Context, arguments: Mapping[str, Any], where: Mapping[str, str | None]) -> Mapping[str, Any]:
    return operate(
        context,
        VERB,
        arguments,
        data_dir=where["data_dir"],
        url=where["url"],
        token_file=where["token_file"],
        own=lambda settings, tell: _own(settings, tell, arguments),
    )


def _stdin() -> str:
    return _decoded(sys.stdin.buffer.read(SECTION_BYTES_MAX + 1))


def _decoded(data: bytes) -> str:
    """The text, without the ends of line behind it."""
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError:
        raise CallFailed("the text is not UTF-8") from None
