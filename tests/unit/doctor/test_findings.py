"""doctor/findings: rows that can be relied on, and the status that comes of several."""

import pytest

from convmem.doctor import local, local_findings, remote, remote_findings
from convmem.doctor.findings import OUTCOMES, Finding, Kind, check_of, failure, ok, status_of, warning
from convmem.errors import EXIT_STATUS

KINDS = {**local_findings.KINDS, **remote_findings.KINDS}


def test_no_finding_stands_in_both_tables():
    assert len(KINDS) == len(local_findings.KINDS) + len(remote_findings.KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_row_says_what_it_means_and_has_a_status_that_goes_with_its_outcome(name: str):
    kind = KINDS[name]
    assert kind.outcome in OUTCOMES
    assert kind.meaning
    assert not kind.meaning.endswith(".")
    assert "|" not in kind.meaning
    assert (kind.status == 0) == (kind.outcome != "failure")
    assert kind.status in {0, 1, *EXIT_STATUS.values()}


@pytest.mark.parametrize(
    ("kinds", "steps", "beside"),
    [
        (local_findings.KINDS, local.CHECKS, {"health": "daemon", "look": "any"}),
        (remote_findings.KINDS, remote.STEPS, {"host": "http"}),
    ],
    ids=["local", "remote"],
)
def test_a_finding_is_of_a_check_that_is_made(kinds: dict[str, Kind], steps: dict[str, object], beside: dict[str, str]):
    assert {check_of(name) for name in kinds} - set(beside) <= set(steps)
    assert {check_of(name) for name in kinds} >= set(steps) - {"daemon"}


def test_the_one_thing_to_change_is_named_exactly_if_something_is_not_fine():
    with pytest.raises(AssertionError):
        Finding("x-bad", failure("bad"), "seen")
    with pytest.raises(AssertionError):
        Finding("x-fine", ok("fine"), "seen", "something")
    facts = Finding("x-bad", failure("bad"), "seen", "do").facts()
    assert facts == {"check": "x", "finding": "x-bad", "outcome": "failure", "seen": "seen", "change": "do"}


FINE, ODD = Finding("a-fine", ok("fine"), "seen"), Finding("a-odd", warning("odd"), "seen", "do")
BAD, REFUSED = Finding("a-bad", failure("bad"), "seen", "do"), Finding("a-no", failure("no", status=14), "seen", "do")
STATUSES = [
    ([], 0),
    ([FINE, ODD], 0),
    ([BAD, ODD], 1),
    ([BAD, REFUSED], 14),
    ([REFUSED, Finding("b-no", failure("no", status=11), "seen", "do")], 14),
]


@pytest.mark.parametrize(("findings", "status"), STATUSES)
def test_warnings_do_not_fail_and_a_status_of_its_own_wins(findings: list[Finding], status: int):
    assert status_of(findings) == status
