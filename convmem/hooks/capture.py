"""`convmem capture`: from stdin to the daemon or to the spool, without its host noticing.

    nothing waits and the daemon is near    -> ask it, for milliseconds
    else, or if it does not answer          -> behind what waits; a process of its own delivers
    the spool cannot be used                -> ask it all the same; where it is far or slow, a process of its own does
    nobody is there and nowhere to wait     -> dropped

Whatever goes wrong ends here, in silence unless --verbose asks for one line. A fault of our own ends the process
without a word too: the host's work is worth more than its record.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from convmem import data_dir
from convmem.clock import RANDOM_BITS, Clock, SystemClock, sleep_ms
from convmem.hooks import events, incoming
from convmem.hooks.claim import Claim
from convmem.hooks.events import NotAnEvent
from convmem.hooks.json_text import encoded
from convmem.hooks.options import Options, parse
from convmem.hooks.spool import Busy, Spool, Unavailable
from convmem.hooks.target import Misplaced, Target, target_of
from convmem.limits import (
    CAPTURE_EVENTS_MAX,
    DELIVERY_ANSWER_MS_MAX,
    DELIVERY_BYTES_MAX,
    DELIVERY_PATIENCE_IN_FRONT_MS,
    DELIVERY_PATIENCE_MS,
    HOOK_ANSWER_MS_MAX,
)

NO_PLACE = "there is no place to keep state"
FNV_START, FNV_PRIME = 0x6C62272E07BB014262B821756295C58D, 2**88 + 0x13B


class Report:
    """What became of the events, and the first thing that went wrong in words; `nothing` says so if none was there."""

    def __init__(self, nothing: str) -> None:
        self.numbers = {"sent": 0, "handed on": 0, "waiting": 0, "dropped": 0}
        self.nothing = nothing
        self.reason = ""

    def add(self, what: str, number: int, reason: str = "") -> None:
        """Count events by what became of them."""
        self.numbers[what] += number
        self.reason = self.reason or reason

    def __str__(self) -> str:
        parts = [f"{number} {what}" for what, number in self.numbers.items() if number]
        return f"convmem capture: {', '.join(parts) or self.nothing}" + (self.reason and f" ({self.reason})")


def run(arguments: Sequence[str], environment: Mapping[str, str], working_directory: str) -> None:
    """Capture what stdin holds, or what else the arguments say. Never raises for what a host or a daemon does."""
    options = parse(arguments)
    is_in_front = "--drain" in options.switches
    report = Report("nothing was delivered" if is_in_front else "nothing to capture")
    clock = SystemClock()
    try:
        if options.fault:
            raise Misplaced(options.fault)
        target = target_of(options, environment, working_directory)
        spool = spool_of(target, environment, clock)
        if "--status" in options.switches:
            if spool is not None:
                sys.stdout.write(encoded(spool.facts()).decode() + "\n")
            return
        if is_in_front:
            _drain_in_front(target, spool, clock, report)
        else:
            _capture(options, target, spool, clock, report)
    except Misplaced as fault:
        incoming.read()
        report.add("dropped", 0, str(fault))
    except Unavailable as fault:
        report.add("dropped", 0, str(fault))
    if options.verbose:
        sys.stderr.write(f"{report}\n")


def spool_of(target: Target, environment: Mapping[str, str], clock: Clock) -> Spool | None:
    """Where events for a daemon wait; None where there is no place to keep state."""
    state = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        home = environment.get("HOME", "")
        home = home if os.path.isabs(home) else data_dir.known_home()
        if not os.path.isabs(home):
            return None
        state = os.path.join(home, ".local/state")
    return Spool(os.path.join(state, "convmem/spool"), _digest(os.fsencode(target.name)), clock)


def _digest(data: bytes) -> str:
    """A name for a file that stands for these bytes: FNV-1a of 128 bits. Importing hashlib would take a tenth of all
    the time that a hook takes; nobody chooses the bytes to hit the name of others.
    """
    value = FNV_START
    for byte in data:
        value = (value ^ byte) * FNV_PRIME % 2**128
    return f"{value:032x}"


def _capture(options: Options, target: Target, spool: Spool | None, clock: Clock, report: Report) -> None:
    lines = _lines(options, clock, report)
    may_be_slow = False
    is_asked = target.is_near and (spool is None or spool.is_empty())
    if is_asked:
        lines, may_be_slow = _sent_at_once(target, spool, lines, clock, report)
    try:
        if spool is None:
            raise Unavailable(NO_PLACE if lines else "")
        if lines or report.numbers["dropped"]:
            spool.append(lines, report.numbers["dropped"])
    except Busy as fault:
        report.add("dropped", len(lines), str(fault))
        return
    except Unavailable as fault:
        report.reason = report.reason or str(fault)
        if target.is_near and not is_asked:
            lines, may_be_slow = _sent_at_once(target, None, lines, clock, report)
        _hand_on(target, lines, clock, report, is_asked_in_vain=target.is_near and not may_be_slow)
        return
    report.add("waiting", len(lines))
    # Nobody else is at it: else whoever is sees what has been added.
    if not spool.is_empty() and (claim := spool.claim()) is not None:
        from convmem.hooks import detaching

        detaching.begin(claim, lambda: _deliver(target, spool, claim, clock, DELIVERY_PATIENCE_MS))


def _hand_on(target: Target, lines: list[bytes], clock: Clock, report: Report, *, is_asked_in_vain: bool) -> None:
    """Have a process of its own ask the daemon once, patiently; for events that can wait nowhere."""
    if is_asked_in_vain or not lines:
        report.add("dropped", len(lines))
        return
    from convmem.hooks import detaching, posting

    def ask() -> None:
        for request in _requests(lines):
            posting.deliver(target, request, None, DELIVERY_ANSWER_MS_MAX, clock)

    detaching.begin(None, ask)
    report.add("handed on", len(lines))


def _requests(lines: list[bytes]) -> Iterator[list[bytes]]:
    """The same in so many requests as the daemon takes."""
    request: list[bytes] = []
    for line in lines:
        if len(request) == CAPTURE_EVENTS_MAX or sum(map(len, request)) + len(line) > DELIVERY_BYTES_MAX:
            yield request
            request = []
        request.append(line)
    yield request


def _lines(options: Options, clock: Clock, report: Report) -> list[bytes]:
    """The events on stdin as the lines that are sent; what is none is dropped."""
    now_ms = clock.now_ms()
    data = incoming.read()
    if data is None:
        report.add("dropped", 1, "what came is too large")
        return []
    lines = []
    for value in incoming.values(data):
        try:
            if isinstance(value, incoming.Malformed):
                raise value
            said = _reader(options.form)(value)
            line = None if said is None else events.line(said, _minted(clock), now_ms)
        except (NotAnEvent, incoming.Malformed) as fault:
            report.add("dropped", 1, str(fault))
        else:
            lines += [] if line is None else [line]
    return lines


def _reader(form: str) -> Callable[[object], object]:
    """What makes an event, or None, of a value that has this form."""
    if form == "claude-code":
        from convmem.hooks import claude_code

        return claude_code.event_of
    return lambda value: value


def _minted(clock: Clock) -> str:
    """An event id for one that has none: whoever sends it again sends the same."""
    return f"{clock.random_bits():0{RANDOM_BITS // 4}x}"


def _sent_at_once(
    target: Target, spool: Spool | None, lines: list[bytes], clock: Clock, report: Report
) -> tuple[list[bytes], bool]:
    """Ask the daemon for milliseconds; return the events that it did not take, and whether it may yet."""
    if not 0 < len(lines) <= CAPTURE_EVENTS_MAX or sum(map(len, lines)) >= DELIVERY_BYTES_MAX:
        return lines, True
    from convmem.hooks import posting

    at_rest = None if spool is None else spool.at_rest()
    outcome = posting.deliver(target, lines, at_rest, HOOK_ANSWER_MS_MAX, clock)
    if outcome.status == posting.OK:
        report.add("sent", len(lines) - outcome.refused)
        report.add("dropped", outcome.refused, "the daemon refused it" if outcome.refused else "")
        return [], False
    report.reason = report.reason or outcome.reason
    if outcome.status == posting.REFUSED and len(lines) == 1:
        report.add("dropped", 1)
        return [], False
    return lines, outcome.status == posting.NO_ANSWER


def _deliver(target: Target, spool: Spool, claim: Claim, clock: Clock, patience_ms: float) -> tuple[int, int, str, int]:
    from convmem.hooks import drain, posting

    def send(lines: Sequence[bytes], facts: Mapping[str, object]) -> posting.Outcome:
        return posting.deliver(target, lines, facts, DELIVERY_ANSWER_MS_MAX, clock)

    return drain.drain(spool, claim, send, clock, patience_ms, sleep_ms)


def _drain_in_front(target: Target, spool: Spool | None, clock: Clock, report: Report) -> None:
    """Deliver what waits, tell what was dropped, and wait for that; where another process is at it and gets on, wait
    for that one.
    """
    if spool is None:
        report.reason = NO_PLACE
        return
    told = 0
    facts = first = spool.facts()
    while not spool.is_empty() or facts["dropped"]:
        claim = spool.ask_for_claim(DELIVERY_PATIENCE_IN_FRONT_MS)
        if claim is not None:
            sent, dropped, reason, told = _deliver(target, spool, claim, clock, DELIVERY_PATIENCE_IN_FRONT_MS)
            report.add("sent", sent, reason)
            report.add("dropped", dropped)
            break
        before, facts = facts["depth"], spool.facts()
        if facts["depth"] >= before:
            report.reason = "another process is trying to deliver"
            break
    else:
        report.reason = "" if facts is first else "another process delivered what waited"
    left = spool.facts()["depth"]
    report.add("waiting", left)
    if not left:
        report.nothing = "nothing waits"
    if told:
        report.add("waiting", 0, f"the daemon knows of {told} dropped")
