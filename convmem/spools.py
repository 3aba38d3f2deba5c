"""What clients of hooks have said of their spools, each by itself: how much waits there, and what had to be dropped.

Kept in memory since the start: it is news of others, who say it again with whatever they send next.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from convmem.clock import Clock
from convmem.domain import Origin
from convmem.limits import SPOOL_AGE_MS_MAX, SPOOLS_MAX


class Spool(NamedTuple):
    """One client's news; times are ms since the epoch. `first_told_at` is when it was first heard that something was
    dropped; before, when anything was heard.
    """

    depth: int
    oldest_at: int | None
    dropped: int
    dropped_since: int | None
    told_at: int
    first_told_at: int


Client = tuple[str, str]  # device, and how the client calls itself


class Spools:
    """The last news of each client."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_client: dict[Client, Spool] = {}

    def note(
        self, origin: Origin, *, depth: int, oldest_at: int | None, dropped: int, dropped_since: int | None
    ) -> None:
        """Remember what a client says now, in the place of what it said before."""
        client, now = (origin.device, origin.client or ""), self._clock.now_ms()
        before = self._by_client.pop(client, None)
        if before is not None and dropped < before.dropped and now - before.first_told_at < SPOOL_AGE_MS_MAX:
            # Another spool of the same name: what the one has lost is not found again by the other.
            dropped, dropped_since, told = before.dropped, before.dropped_since, before.first_told_at
        else:
            told = now if before is None or not before.dropped else before.first_told_at
        self._by_client[client] = Spool(depth, oldest_at, dropped, dropped_since, now, told)
        if len(self._by_client) > SPOOLS_MAX:
            # The one that was silent longest.
            del self._by_client[next(iter(self._by_client))]

    def facts(self) -> list[Mapping[str, Any]]:
        """For health: {device, client, depth, oldest_at?, dropped, dropped_since?, told_at, sentence?} of each."""
        return [_facts(client, spool) for client, spool in sorted(self._by_client.items())]


def _facts(client: Client, spool: Spool) -> dict[str, Any]:
    device, name = client
    facts = {name: value for name, value in spool._asdict().items() if value is not None and name != "first_told_at"}
    sentence = _sentence(device, spool)
    return {"device": device, "client": name, **facts} | ({"sentence": sentence} if sentence else {})


def _sentence(device: str, spool: Spool) -> str:
    """What a person should know; empty if all is well."""
    said = []
    if spool.dropped:
        said.append(f"{_events(spool.dropped)} dropped" + _since(spool.dropped_since))
    if spool.depth:
        said.append(f"{_events(spool.depth)} waiting" + _since(spool.oldest_at))
    return f"{device}: {', '.join(said)}" if said else ""


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _since(at_ms: int | None) -> str:
    try:
        return "" if at_ms is None else f" since {datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        # A year that no calendar has: the client's clock says so.
        return ""
