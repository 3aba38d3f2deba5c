"""convmem stdio: MCP on stdin and stdout, from the store of this machine or through a bridge to a daemon.

What takes long to import is left to whoever needs it: a bridge starts with every agent program, and it needs little.
"""

import logging
import re
import sys

import typer

from convmem.cli import journal
from convmem.cli.start import URL, DataDir, LogFormat, Profile, Redact, TokenFile, path_of, settings_of, start_of
from convmem.errors import SettingInvalid

# The MCP endpoint's path at the end of a URL, with or without a profile.
MCP = re.compile(r"/mcp(?:/([a-z]*))?/?$")


def stdio(
    context: typer.Context,
    data_dir: DataDir = None,
    profile: Profile = None,
    redact: Redact = None,
    log_format: LogFormat = None,
    url: URL = None,
    token_file: TokenFile = None,
) -> None:
    """Speak MCP on stdin and stdout until stdin ends: with the store in this process, or as a bridge to its holder."""
    given = {"data_dir": data_dir, "profile": profile, "redact": redact, "log_format": log_format}
    settings = settings_of(context, **given)
    if url is None and token_file is not None:
        raise SettingInvalid("--token-file goes with --url", setting="--token-file")
    journal.begin(settings.log_format, sys.stderr)
    from convmem import bridging
    from convmem.hooks.target import Misplaced, Target, address_of

    environment = start_of(context).environment
    if url is None:
        target = Target(None, str(settings.data_dir), environment, "")
        raise typer.Exit(bridging.run_here(settings, target))
    try:
        file = "" if token_file is None else str(path_of(context, token_file))
        target = Target(address_of(url), "", environment, file)
        target.token()
    except Misplaced as fault:
        raise SettingInvalid(str(fault), setting="--url") from None
    is_chosen = settings.sources["profile"] != "default"
    path = _path(url, settings.profile if is_chosen else None)
    logging.getLogger("convmem").info("bridge to %s%s", target.name, path)
    raise typer.Exit(bridging.run_there(target, path))


def _path(url: str, profile: str | None) -> str:
    """Where the MCP endpoint is: with the profile that was chosen, else the one that the URL names."""
    found = MCP.search(url)
    named = found[1] if found else None
    if profile and named and profile != named:
        raise SettingInvalid(f"--profile {profile}, but the URL names {named}", setting="--profile")
    chosen = profile or named
    return f"/mcp/{chosen}" if chosen else "/mcp"
