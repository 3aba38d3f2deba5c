"""The seam between the transports and the process that owns the store.

A transport knows who is calling and from where; the gate turns that into what the caller may do. Nothing else of the
daemon is visible from here, so a transport is tested without a store.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from convmem.domain import Access, Origin
from convmem.reach import Reach
from convmem.tokens import TokenBook

Status = Literal["ok", "degraded", "stopping", "failed"]
Progress = Callable[[float, float, str], Coroutine[Any, Any, None]]


Run = Callable[[Mapping[str, Any], Progress], Awaitable[Mapping[str, Any]]]
RunFor = Callable[[Mapping[str, Any], Progress, Origin], Awaitable[Mapping[str, Any]]]


class Verb(NamedTuple):
    """One of /admin/{verb}: `run(arguments, progress, origin)` returns its facts or raises a ConvmemError.
    `names_paths`: an argument is a path of this machine, so only whoever is on it may ask.
    """

    run: RunFor
    names_paths: bool = False


def for_anybody(run: Run) -> RunFor:
    """A verb that does the same whoever asks."""

    async def run_for(arguments: Mapping[str, Any], progress: Progress, origin: Origin) -> Mapping[str, Any]:
        return await run(arguments, progress)

    return run_for


class CallAccess(Access, Protocol):
    """What a caller may do, for one call, and what the call has cost so far."""

    @property
    def visits(self) -> Sequence[tuple[str, float]]:
        """Each query that ran on a reader, in order: its name and its ms."""


class Gate(Protocol):
    """What a transport needs of the daemon."""

    verbs: Mapping[str, Verb]

    def export(self) -> AsyncGenerator[bytes]:
        """The store as JSON Lines, in pieces of some size, as it is at one moment; raises before the first piece.

        Whoever stops reading closes it, which lets go of that moment.
        """

    async def take(self, body: AsyncIterator[bytes], arguments: Mapping[str, str]) -> Mapping[str, Any]:
        """Bring in records: the body is JSON Lines; arguments `policy` and `dry_run`. Facts, or a ConvmemError."""

    async def capture(self, arguments: Mapping[str, Any], origin: Origin) -> Mapping[str, Any]:
        """Store what a hook saw: {stored, replayed, dropped[]} once it is durable, or a ConvmemError."""

    def access(self, origin: Origin, progress: Progress | None, reach: Reach = "admin") -> CallAccess:
        """What this caller may do, for one call; never raises, refusals come from what is then asked of it.

        `progress(done, total, sentence)` tells the caller how far the call has come; it returns at once and never
        raises, even if the caller is slow or gone. None: the caller did not ask.
        """

    def status(self) -> Status:
        """How the daemon is, in every phase: degraded still reads, stopping and failed take nothing more."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the HTTP side must know.

    `default_profile` is what /mcp shows. `token` or one of `tokens` is required of every caller over TCP if there is
    any, and always where others reach the address. `allowed_hosts`
    are host names and IP addresses in their shortest lower-case spelling, without ports and brackets. `trusted_proxies`
    are IP addresses in their shortest spelling. `loopback_bind`: only this machine reaches the address.
    """

    default_profile: str = "core"
    token: bytes | None = field(default=None, repr=False)
    tokens: TokenBook | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    loopback_bind: bool = True

    def __post_init__(self) -> None:
        has_token = self.token is not None or self.tokens is not None
        assert self.loopback_bind or has_token, "others reach the address, so there must be a token"
