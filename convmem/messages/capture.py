"""What hooks saw, as a client of `/capture` sends it: checked, cleaned, and stored, each event by a command of its own.

The answer comes once all of it is on the disk. An event that cannot be taken in is named in it and keeps no other one
out, since a client that has to send all of them again would be stuck with the bad one for ever. Sending an event again
is always safe: it is stored once (decide.py).
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from convmem.domain import Access
from convmem.errors import CallerError, ConvmemError, Invalid
from convmem.inputs import Input, Whole, checked
from convmem.limits import CAPTURE_EVENTS_MAX, EVENT_ID_BYTES_MAX
from convmem.messages import fields
from convmem.messages.cleaning import cleaned_event
from convmem.messages.inputs import CaptureEvent

BLANK = "BLANK"
# More text than this is cleaned in a thread: what takes longer than a turn of the loop keeps others waiting.
CLEANED_AT_ONCE_CODE_POINTS_MAX = 16_384


class Spool(Input):
    """What waits at a client, and what it had to drop; times are ms since the epoch."""

    depth: Annotated[Whole, Field(ge=0)]
    oldest_at: fields.Time | None = None
    dropped: Annotated[Whole, Field(ge=0)] = 0
    dropped_since: fields.Time | None = None


class CaptureGiven(Input):
    """A body of /capture."""

    events: Annotated[list[Any], Field(max_length=CAPTURE_EVENTS_MAX)]
    spool: Spool | None = None


class Dropped(NamedTuple):
    """An event that is not stored, and why."""

    place: int
    event_id: str | None
    code: str
    message: str
    field: str | None = None

    def facts(self) -> dict[str, Any]:
        """The same for programs."""
        facts = {"index": self.place, **self._asdict()}
        return {name: value for name, value in facts.items() if value is not None and name != "place"}


def given(arguments: Mapping[str, Any]) -> CaptureGiven:
    """The body as an input; Invalid with `field`. Without events it may only tell of a spool."""
    body = checked(CaptureGiven, arguments)
    if not body.events and body.spool is None:
        raise Invalid("events must have at least 1 entry", field="events")
    return body


async def capture(access: Access, body: CaptureGiven) -> dict[str, Any]:
    """{stored, replayed, dropped[{index, event_id?, code, message, field?}]}, once all of it is durable.

    Invalid if no event can be taken in; RetryError or StoreFailed if it is not known that all are stored: then all may
    be sent again.
    """
    code_points = sum(len(str(event)) for event in body.events)
    if code_points > CLEANED_AT_ONCE_CODE_POINTS_MAX:
        commands, dropped = await asyncio.to_thread(_read, body.events)
    else:
        commands, dropped = _read(body.events)
    refused = [one for one in dropped if one.code != BLANK]
    if refused and len(refused) == len(body.events):
        first = refused[0]
        field = f"events.{first.place}" + (f".{first.field}" if first.field else "")
        raise Invalid(f"events.{first.place}: {first.message}", field=field)
    outcomes = await _stored(access, commands)
    replayed = sum(answer["replayed"] for answer in outcomes)
    facts = [one.facts() for one in dropped]
    return {"stored": len(outcomes) - replayed, "replayed": replayed, "dropped": facts}


def _read(events: Sequence[Any]) -> tuple[list[CaptureEvent], list[Dropped]]:
    """The commands of those that can be taken in, cleaned, and the others."""
    commands, dropped = [], []
    for place, event in enumerate(events):
        event_id = event.get("event_id") if isinstance(event, dict) else None
        named = event_id if isinstance(event_id, str) and len(event_id) <= EVENT_ID_BYTES_MAX else None
        try:
            if not isinstance(event, dict):
                raise Invalid("an event must be an object")
            read = checked(CaptureEvent, event)
        except CallerError as error:
            dropped.append(Dropped(place, named, error.code, error.message, error.details.get("field")))
            continue
        if not read.content.strip():
            dropped.append(Dropped(place, named, BLANK, "there is nothing to store", "content"))
            continue
        commands.append(cleaned_event(read))
    return commands, dropped


async def _stored(access: Access, commands: Sequence[CaptureEvent]) -> list[Mapping[str, Any]]:
    """The answers to all commands, each a task: they share the batches of the writer."""
    outcomes: list[Any] = []

    async def store(command: CaptureEvent) -> None:
        try:
            outcomes.append(await access.write(command))
        except ConvmemError as error:
            outcomes.append(error)

    async with asyncio.TaskGroup() as tasks:
        for command in commands:
            tasks.create_task(store(command))
    for outcome in outcomes:
        if isinstance(outcome, ConvmemError):
            raise outcome
    return outcomes
