"""convmem distill: what was captured becomes sections of the profile, and what is old goes."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from convmem.cli.operating import operate
from convmem.cli.printing import print_json, print_text
from convmem.cli.progress import Tell
from convmem.cli.start import URL, AsJSON, DataDir, RetentionDays, TokenFile, settings_of, start_of
from convmem.config import Settings

DEFAULT = "default"
VARIABLES = frozenset({"CONVMEM_RETENTION_DAYS", "RETENTION_DAYS"})
DryRun = Annotated[bool, typer.Option("--dry-run", help="only say what would be written and pruned")]
# One of each kind and many, as they are counted.
COUNTED: Mapping[str, tuple[str, str]] = {
    "prompt": ("prompt", "prompts"),
    "tool_call": ("tool call", "tool calls"),
    "error": ("error", "errors"),
}
# What happened to a section, and what a dry run says of it.
OUTCOMES: Mapping[str, tuple[str, str]] = {
    "written": ("written", "would be written"),
    "unchanged": ("unchanged", "unchanged"),
    "deleted": ("deleted, there is nothing to say any more", "would be deleted, there is nothing to say any more"),
    "absent": ("not written, there is nothing to say", "not written, there is nothing to say"),
}


def distill(
    context: typer.Context,
    dry_run: DryRun = False,
    retention_days: RetentionDays = None,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
    as_json: AsJSON = False,
) -> None:
    """Write the profile sections usage_stats and topics from what hooks captured, and prune what is older than the
    retention.
    """
    arguments: dict[str, Any] = {"dry_run": dry_run}
    # A daemon was started with what was set then; who sets it here and now means this run. Only where it is set nowhere
    # does whoever holds the store go by its own. Files of this machine say nothing about another one's.
    is_here_and_now = retention_days is not None or not VARIABLES.isdisjoint(start_of(context).environment)
    if url is None or is_here_and_now:
        settings = settings_of(context, data_dir=data_dir, retention_days=retention_days)
        if settings.sources["retention_days"] != DEFAULT:
            arguments["retention_days"] = settings.retention_days

    def own(settings: Settings, tell: Tell) -> Mapping[str, Any]:
        from convmem import offline

        return offline.distill(settings, arguments, tell)

    facts = operate(context, "distill", arguments, data_dir=data_dir, url=url, token_file=token_file, own=own)
    if as_json:
        print_json(facts)
    else:
        print_text("\n".join(_lines(facts)))


def _lines(facts: Mapping[str, Any]) -> list[str]:
    is_dry = bool(facts["dry_run"])
    lines = [f"counted: {_counts(facts['counted'])}"]
    for section in facts["sections"]:
        lines.append(f"{section['section']}: {OUTCOMES[section['outcome']][is_dry]}")
        lines += [f"  {line}" for line in section.get("content", "").split("\n") if line]
    verb = "would be pruned" if is_dry else "pruned"
    days = facts["retention_days"]
    lines.append(f"{verb}: {_counts(facts['pruned'])} older than {days} day{'s' * (days != 1)}")
    return lines


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[kind]:,} {names[counts[kind] != 1]}" for kind, names in COUNTED.items())
