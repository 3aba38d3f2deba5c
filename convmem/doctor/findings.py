"""What the doctor can find: each finding has a name, an outcome and a meaning, and says the one thing to change.

The name begins with the check that it comes from: `tls-expired` is of the check `tls`. The tables beside this module
hold all of them; nothing is found that does not stand there, and docs/troubleshooting.md is written from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Outcome = Literal["ok", "warning", "failure"]
OUTCOMES: tuple[Outcome, ...] = ("ok", "warning", "failure")
DONE, FAILURE = 0, 1


class Kind(NamedTuple):
    """One row: what comes of it, what it means; whether what follows would be senseless, and the exit status."""

    outcome: Outcome
    meaning: str
    ends: bool = False
    status: int = DONE


def ok(meaning: str, *, ends: bool = False) -> Kind:
    """Nothing to do."""
    return Kind("ok", meaning, ends)


def warning(meaning: str, *, ends: bool = False) -> Kind:
    """It works, or would; something may go wrong or already does so for some clients."""
    return Kind("warning", meaning, ends)


def failure(meaning: str, *, ends: bool = False, status: int = FAILURE) -> Kind:
    """It does not work, or not for long. `status`: what a start would be refused with, if it would be."""
    return Kind("failure", meaning, ends, status)


@dataclass(frozen=True)
class Finding:
    """What one check has seen. `change` is the one setting or command to change; empty if and only if it is ok."""

    name: str
    kind: Kind
    seen: str
    change: str = ""

    def __post_init__(self) -> None:
        assert bool(self.change) == (self.kind.outcome != "ok"), self.name

    @property
    def check(self) -> str:
        """The check that it comes from."""
        return check_of(self.name)

    def facts(self) -> dict[str, str]:
        """The same for programs."""
        outcome = self.kind.outcome
        return {
            "check": self.check,
            "finding": self.name,
            "outcome": outcome,
            "seen": self.seen,
            "change": self.change,
        }


def check_of(name: str) -> str:
    """`tls` of `tls-expired`."""
    return name.partition("-")[0]


def status_of(findings: Sequence[Finding]) -> int:
    """The exit status: that of the first failure with one of its own, else FAILURE if there was any, else DONE."""
    found = [finding.kind.status for finding in findings if finding.kind.outcome == "failure"]
    return next((status for status in found if status != FAILURE), FAILURE if found else DONE)
