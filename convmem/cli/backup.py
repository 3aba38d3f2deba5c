"""convmem backup: bring a backup up to date while the daemon runs, or prove that a restore of one would succeed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from convmem.cli.operating import operate
from convmem.cli.printing import print_json, print_table
from convmem.cli.start import AsJSON, DataDir, path_of

VERIFY = "verify"
Words = Annotated[list[str], typer.Argument(metavar="DEST | verify SRC")]
WithTokens = Annotated[bool, typer.Option("--with-tokens", help="copy the tokens of devices too")]


def backup(
    context: typer.Context,
    words: Words,
    with_tokens: WithTokens = False,
    data_dir: DataDir = None,
    as_json: AsJSON = False,
) -> None:
    """Copy the store to a directory, or prove by replay that a copy can be restored (./verify is a directory)."""
    if words[0] == VERIFY and len(words) == 2 and not with_tokens:
        facts = _verify(context, path_of(context, words[1]), data_dir)
    elif words[0] != VERIFY and len(words) == 1:
        facts = _back_up(context, path_of(context, words[0]), with_tokens, data_dir)
    else:
        raise typer.BadParameter("either one directory, or `verify` and one directory (without --with-tokens)")
    print_facts(facts, as_json=as_json)


def _back_up(context: typer.Context, directory: Path, with_tokens: bool, data_dir: str | None) -> Mapping[str, Any]:
    arguments = {"dest": str(directory), "with_tokens": with_tokens}

    def own(settings: Any, tell: Any) -> Mapping[str, Any]:
        from convmem import restoring

        return restoring.back_up(settings, arguments, tell)

    return operate(context, "backup", arguments, data_dir=data_dir, url=None, token_file=None, own=own)


def _verify(context: typer.Context, directory: Path, data_dir: str | None) -> Mapping[str, Any]:
    def own(settings: Any, tell: Any) -> Mapping[str, Any]:
        from convmem import restoring

        return restoring.verify(directory, tell)

    return operate(
        context,
        "backup-verify",
        {"src": str(directory)},
        data_dir=data_dir,
        url=None,
        token_file=None,
        own=own,
        needs_store=False,
    )


def print_facts(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """What was done, one fact a line, the parts one each."""
    if as_json:
        print_json(facts)
        return
    rows = [(name, str(value)) for name, value in facts.items() if name not in ("parts", "not_copied")]
    rows += [(part["name"], f"{part['bytes']} bytes in {part['file']}") for part in facts["parts"]]
    rows += [("not copied", sentence) for sentence in facts.get("not_copied", ())]
    print_table(("fact", "value"), rows)
