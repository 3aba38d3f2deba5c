"""Delivering what waits in a spool: one process at a time, in order, patiently but not for ever.

What the daemon will never take is dropped and counted; on anything else the events stay where they are. Each request
says how many were dropped, and one without events does where no other is left to say it. Pauses grow, and after a while
without any success the work is left to whoever comes next: a hook that finds nobody at it begins anew (detaching.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from convmem.clock import Clock
from convmem.hooks.claim import Claim
from convmem.hooks.posting import OK, REFUSED, Outcome
from convmem.hooks.spool import Spool
from convmem.limits import (
    CAPTURE_EVENTS_MAX,
    DELIVERY_PAUSE_MS_MAX,
    DELIVERY_PAUSE_MS_MIN,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    Send = Callable[[Sequence[bytes], Mapping[str, Any]], Outcome]
else:
    from convmem.hooks.named_tuple import NamedTuple

TOO_LARGE = 413
# How often whoever rests looks whether somebody else wants to have a go.
LOOK_MS = 100


class Delivered(NamedTuple):
    """How many events went out, how many were dropped, why it ended before all was done (empty: it was), and how many
    the daemon knows to have been dropped at any time.
    """

    sent: int
    dropped: int
    reason: str
    told: int = 0


def drain(
    spool: Spool, claim: Claim, send: Send, clock: Clock, patience_ms: float, sleep_ms: Callable[[float], None]
) -> Delivered:
    """Deliver until nothing waits, or `patience_ms` went by without success; the claim is given back. Unavailable."""
    sent = dropped = one_by_one = tried = known = 0
    reason = ""
    pause_ms, deadline_ms = DELIVERY_PAUSE_MS_MIN, clock.monotonic_ms() + patience_ms
    while True:
        batch = spool.head(1 if one_by_one else CAPTURE_EVENTS_MAX)
        if not batch.raw:
            count = batch.behind["dropped"]
            if count > tried:
                outcome, tried = send((), batch.behind), count
                known, reason = (count, "") if outcome.status == OK else (known, outcome.reason)
            if spool.leave(claim):
                # What came late may have found the claim taken.
                left = None if spool.is_empty() else spool.claim()
                if left is None:
                    return Delivered(sent, dropped, reason, known)
                claim = left
            continue
        outcome = send(batch.events, batch.behind) if batch.events else Outcome(OK)
        number = len(batch.events)
        if outcome.status == OK or (outcome.status == REFUSED and number == 1):
            refused = batch.spoiled + (outcome.refused if outcome.status == OK else number)
            spool.take_off(batch, refused)
            if batch.events and outcome.status == OK:
                tried = known = batch.behind["dropped"]
            sent, dropped = sent + number - (refused - batch.spoiled), dropped + refused
            one_by_one = max(0, one_by_one - number)
            pause_ms, deadline_ms = DELIVERY_PAUSE_MS_MIN, clock.monotonic_ms() + patience_ms
        elif outcome.status in (REFUSED, TOO_LARGE) and number > 1:
            one_by_one = number  # One of them is at fault, or all of them are too much: each by itself tells.
        else:
            rest_ms = max(pause_ms, outcome.retry_after_ms)
            if clock.monotonic_ms() + rest_ms > deadline_ms or not _rested(claim, rest_ms, clock, sleep_ms):
                claim.close()
                return Delivered(sent, dropped, outcome.reason, known)
            pause_ms = min(2 * pause_ms, DELIVERY_PAUSE_MS_MAX)


def _rested(claim: Claim, rest_ms: float, clock: Clock, sleep_ms: Callable[[float], None]) -> bool:
    """Rest for so long; False as soon as nothing is to be delivered by us any more."""
    until_ms = clock.monotonic_ms() + rest_ms
    while (left_ms := until_ms - clock.monotonic_ms()) > 0:
        if claim.is_over():
            return False
        sleep_ms(min(left_ms, LOOK_MS))
    return True
