"""convmem token: who may come in by name. Works on the file alone, beside a running daemon or without one."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from convmem import config, tokens
from convmem.cli.asking import CallFailed
from convmem.cli.printing import print_json, print_table, print_text
from convmem.cli.start import AsJSON, DataDir, settings_of
from convmem.clock import SystemClock
from convmem.reach import REACHES

app = typer.Typer(help="Make, list and revoke device tokens.", no_args_is_help=True)
COLUMNS = ("name", "scope", "profile", "created")


@app.command("create")
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="of the device; it stands in every record from there")],
    scope: Annotated[str, typer.Option("--scope", metavar="read|write|admin", help="how far it reaches")] = "write",
    profile: Annotated[str | None, typer.Option("--profile", metavar="NAME", help="the only one it shows")] = None,
    as_json: AsJSON = False,
    data_dir: DataDir = None,
) -> None:
    """Make a token and show it, once."""
    reach = next((known for known in REACHES if known == scope), None)
    if reach is None:
        raise typer.BadParameter(f"--scope is one of {', '.join(REACHES)}")
    if profile is not None and profile not in config.PROFILES:
        raise typer.BadParameter(f"--profile is one of {', '.join(config.PROFILES)}")
    settings = settings_of(context, data_dir=data_dir)
    from convmem.files import RealFiles
    from convmem.holding import usable

    with usable(settings.data_dir):
        RealFiles(settings.data_dir).prepare()
    made = tokens.create(settings.data_dir, name, reach, profile, SystemClock())
    if as_json:
        print_json({"name": made.token.name, "scope": made.token.scope, "profile": profile, "token": made.secret})
        return
    print_text(made.secret)
    typer.echo("This is shown once. Give it to the device as CONVMEM_TOKEN or in a file for --token-file.", err=True)
    if made.is_first:
        typer.echo("From now on the daemon asks every caller over TCP for a token.", err=True)


@app.command("list")
def list_tokens(context: typer.Context, as_json: AsJSON = False, data_dir: DataDir = None) -> None:
    """List the tokens by name."""
    settings = settings_of(context, data_dir=data_dir)
    try:
        found = tokens.read(settings.data_dir)
    except (OSError, ValueError) as error:
        raise CallFailed(f"{tokens.FILE} cannot be read: {error}") from None
    if as_json:
        facts = [
            {"name": one.name, "scope": one.scope, "profile": one.profile, "created_at_ms": one.created_at_ms}
            for one in found
        ]
        print_json({"tokens": facts})
        return
    print_table(COLUMNS, ([one.name, one.scope, one.profile or "any", _day(one.created_at_ms)] for one in found))


@app.command("revoke")
def revoke(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    data_dir: DataDir = None,
) -> None:
    """Take a token away; the next request that bears it is refused."""
    left = tokens.revoke(settings_of(context, data_dir=data_dir).data_dir, name)
    print_text(f"revoked; {left} left")
    if not left:
        typer.echo(f"Nobody comes in over TCP now. For a daemon that needs no token, remove {tokens.FILE}.", err=True)


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")
