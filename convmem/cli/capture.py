"""convmem capture: what hooks of an agent program call.

The entry point runs the client (convmem/hooks) before this module, or any other verb, is read. What stands here shows
the verb among the others and what it takes, and does the same where the command line is called as a function.
"""

from typing import Annotated

import typer

from convmem.cli.start import start_of
from convmem.hooks.options import BY_FLAG


def _option(flag: str) -> typer.models.OptionInfo:
    option = BY_FLAG[flag]
    found: typer.models.OptionInfo = typer.Option(flag, metavar=option.takes or None, help=option.meaning)
    return found


def capture(
    context: typer.Context,
    form: Annotated[str | None, _option("--from")] = None,
    url: Annotated[str | None, _option("--url")] = None,
    token_file: Annotated[str | None, _option("--token-file")] = None,
    data_dir: Annotated[str | None, _option("--data-dir")] = None,
    drain: Annotated[bool, _option("--drain")] = False,
    status: Annotated[bool, _option("--status")] = False,
    verbose: Annotated[bool, _option("--verbose")] = False,
) -> None:
    """Remember what a hook saw: events as JSON on stdin.

    Always ends with status 0 and says nothing unless asked, so that no host stumbles over it. Where no daemon answers
    at once the events wait on disk ($XDG_STATE_HOME/convmem/spool) and are delivered later, each once.
    """
    from convmem.hooks.capture import run

    texts = {"--from": form, "--url": url, "--token-file": token_file, "--data-dir": data_dir}
    switches = {"--drain": drain, "--status": status, "--verbose": verbose}
    start = start_of(context)
    run(
        [f"{flag}={text}" for flag, text in texts.items() if text is not None]
        + [flag for flag, is_on in switches.items() if is_on],
        start.environment,
        str(start.working_directory or "/"),
    )
