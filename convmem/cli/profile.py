"""convmem profile: what an agent is told of the user, as text; and the sections of it that a person writes.

Hooks print it at the start of a session, so it says nothing where nothing is stored, and imports little. On this
machine it asks over the local socket; of another one it asks the tool that every token may call.

What a person has written in an editor is not lost: if it cannot be saved, it stays in a file that the message names.
What is only passing goes away, also if the command is told to end.
"""

import codecs
import hashlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Annotated, Any

import typer

from convmem import files, stopping
from convmem.cli.asking import CallFailed, reach
from convmem.cli.operating import operate
from convmem.cli.printing import print_json, print_text
from convmem.cli.progress import Tell
from convmem.cli.start import URL, DataDir, TokenFile, start_of
from convmem.config import Settings
from convmem.errors import Conflict, ConvmemError, NotFound

if TYPE_CHECKING:
    from convmem.cli.call import Place

VERB, TOOL = "profile", "get_profile"
# More than a section may have, so that what is too long is refused where the bound is known.
SECTION_BYTES_MAX = 64 * 1024
EDITED_BYTES_MAX = 16 * 1024 * 1024
CODE_POINTS_DEFAULT, CODE_POINTS_MIN = 3_000, 40
# How long an editor may take to end when it is told to.
EDITOR_ENDS_S = 2

app = typer.Typer(no_args_is_help=False, rich_markup_mode=None)
Section = Annotated[str, typer.Argument(metavar="SECTION", help="for example identity, goals, style or notes")]


@app.callback(invoke_without_command=True)
def profile(
    context: typer.Context,
    max_chars: Annotated[
        int | None,
        typer.Option(
            "--max-chars",
            metavar="N",
            help=f"at most so many characters, {CODE_POINTS_MIN} or more; default {CODE_POINTS_DEFAULT}",
            min=CODE_POINTS_MIN,
        ),
    ] = None,
    project: Annotated[str | None, typer.Option("--project", metavar="NAME", help="this project's own first")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="the facts as one JSON document, whole: --max-chars does not apply")
    ] = False,
    url: URL = None,
    token_file: TokenFile = None,
    data_dir: DataDir = None,
) -> None:
    """Show what agents are told of you, or write a section of it yourself: set, edit, delete."""
    if context.invoked_subcommand is not None:
        return
    if as_json and max_chars is not None:
        raise typer.BadParameter("--max-chars does not apply to --json; give one of them")
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
    if text := profile_text(facts, (max_chars or CODE_POINTS_DEFAULT) - 1):
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
    if not _is_utf8(content):
        raise CallFailed("the text is not UTF-8")
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
    editor = _editor(context, section)
    where = {"data_dir": data_dir, "url": url, "token_file": token_file}
    with stopping.raised(), TemporaryDirectory(prefix="convmem-") as directory:
        try:
            known = str(_asked(context, {"action": "read", "section": section}, where)["content"])
        except NotFound:
            known = ""
        path = Path(directory) / f"{section}.txt"
        before = f"{known}\n".encode() if known else b""
        with files.appearing(path) as write:
            write(before)
        status = _edited(context, editor, path)
        edited = files.read_text(path, bytes_max=EDITED_BYTES_MAX)
        try:
            if status:
                raise CallFailed(f"the editor {editor!r} ended with status {status}: nothing was changed")
            if edited is None or edited == before or (content := _decoded(edited)) == known:
                print_text(f"section {section} stays as it is")
                return
            _write(context, section, content, where, replaces=hashlib.sha256(known.encode()).hexdigest())
        except (ConvmemError, CallFailed) as error:
            if edited is None or edited == before or not edited.strip():
                raise
            reason = "it was changed meanwhile" if isinstance(error, Conflict) else str(error)
            kept = _kept(section, edited)
            raise CallFailed(f"section {section} was not written ({reason}); your text is kept in {kept}") from None


def _editor(context: typer.Context, section: str) -> str:
    environment = start_of(context).environment
    editor = environment.get("VISUAL") or environment.get("EDITOR")
    if editor is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CallFailed(f"there is no terminal for an editor: set EDITOR, or use `convmem profile set {section}`")
    return editor or "vi"


def _edited(context: typer.Context, editor: str, path: Path) -> int:
    """Let the editor change the file; the status that it ended with. Whoever ends this command ends the editor too."""
    before = signal.getsignal(signal.SIGINT)
    if sys.stdin.isatty():
        # Ctrl-C is for the editor; this process waits for it.
        signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        command = [*shlex.split(editor), str(path)]
        process = subprocess.Popen(command, env=dict(start_of(context).environment))  # noqa: S603 - a person chose it
        try:
            return process.wait()
        finally:
            _end(process)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CallFailed(f"the editor {editor!r} cannot be started ({reason}): set VISUAL or EDITOR") from None
    finally:
        signal.signal(signal.SIGINT, before)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """See that the process is gone."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(EDITOR_ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _kept(section: str, edited: bytes) -> Path:
    """Put what a person has written where only they can read it."""
    path = Path(mkdtemp(prefix="convmem-kept-")) / f"{section}.txt"
    with files.appearing(path) as write:
        write(edited)
    return path


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


def _write(context: typer.Context, section: str, content: str, where: Mapping[str, str | None], **more: str) -> None:
    facts = _asked(context, {"action": "set", "section": section, "content": content, **more}, where)
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


def _is_utf8(text: str) -> bool:
    """False if an argument held other bytes, which Python keeps as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _decoded(data: bytes) -> str:
    """The text with plain line ends, without the mark of its encoding and the end of its last line."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        # Of what is longer than it may be the last character may be cut apart.
        text = decoder.decode(data[: SECTION_BYTES_MAX + 1], final=len(data) <= SECTION_BYTES_MAX)
    except UnicodeDecodeError:
        raise CallFailed("the text is not UTF-8") from None
    return text.replace("\r\n", "\n").removesuffix("\n")
