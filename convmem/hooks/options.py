"""The arguments of `convmem capture`, read without a parser: importing one would take as long as everything else.

The same table describes the verb to the command line, which shows it in its help.
"""

from __future__ import annotations

from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from convmem.hooks.named_tuple import NamedTuple

FORMS = ("events", "claude-code")


class Option(NamedTuple):
    """One option: its flag, the name of what it takes (empty: it is a switch), and what it means."""

    flag: str
    takes: str
    meaning: str


OPTIONS = (
    Option("--from", "FORM", "what stdin holds: events, or claude-code for what Claude Code gives its hooks"),
    Option("--url", "URL", "the daemon, for example http://host:8484 [CONVMEM_URL]"),
    Option("--token-file", "PATH", "file with the token for --url [CONVMEM_TOKEN]"),
    Option("--data-dir", "PATH", "directory of the store of a daemon on this machine [CONVMEM_DATA_DIR]"),
    Option("--drain", "", "deliver what waits in the spool, and wait for that"),
    Option("--status", "", "print what waits in the spool as one line of JSON"),
    Option("--verbose", "", "say on stderr what was done"),
)
BY_FLAG = {option.flag: option for option in OPTIONS}


class Options:
    """What was asked for. `fault` says what could not be meant; then nothing is done."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.switches: set[str] = set()
        self.fault = ""

    @property
    def form(self) -> str:
        """What stdin holds: one of FORMS."""
        return self.texts.get("--from", FORMS[0])

    @property
    def verbose(self) -> bool:
        """Whether to say what was done."""
        return "--verbose" in self.switches


def parse(arguments: Sequence[str]) -> Options:
    """Read the arguments behind the verb. Never raises: a hook that is set up wrongly must not stop its host."""
    options = Options()
    left = list(arguments)
    while left:
        flag, equals, text = left.pop(0).partition("=")
        option = BY_FLAG.get(flag)
        if option is None or (equals and not option.takes):
            options.fault = options.fault or f"{flag} is not an option"
        elif not option.takes:
            options.switches.add(flag)
        elif not equals and (not left or left[0] in BY_FLAG):
            options.fault = options.fault or f"{flag} needs a {option.takes}"
        else:
            options.texts[flag] = text if equals else left.pop(0)
    empty = [flag for flag, text in options.texts.items() if not text]
    if empty:
        options.fault = options.fault or f"{empty[0]} must not be empty"
    if options.form not in FORMS:
        options.fault = options.fault or f"--from is one of {', '.join(FORMS)}"
    return options
