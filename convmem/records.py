"""Records of other programs' files, as an importer sends them: each is a command of its own, and has its outcome.

The answer comes once all of them are on the disk. A record that is refused keeps no other one out; sending records
again is always safe, since each is known by its source. Where too many writes wait already, these wait their turn.

A dry run asks the same rules on what is stored now, and writes nothing: what one record of it would change, the next
one does not see.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from convmem.access import StoreAccess
from convmem.domain import Decider, Origin, Place, Stamp
from convmem.errors import Busy, CallerError, ConvmemError, Invalid
from convmem.limits import BUSY_RETRY_MS, IMPORT_BATCH_RECORDS

if TYPE_CHECKING:
    from convmem.inputs import Input

ARGUMENTS = frozenset({"records", "dry_run", "resurrect"})
# So many wait for the writer at once: half of its room stays for others.
AT_ONCE = 512
# An id for what is only tried.
NO_ID = "00000000000000000000000000"


class Ask(NamedTuple):
    """What a request holds."""

    records: Sequence[Any]
    dry_run: bool
    resurrect: bool


def given(arguments: Mapping[str, Any]) -> Ask:
    """The body of a request. Invalid with `field`."""
    for name in arguments.keys() - ARGUMENTS:
        raise Invalid(f"{name[:64]} is not an argument here", field=name[:64])
    records = arguments.get("records")
    if not isinstance(records, list) or not 1 <= len(records) <= IMPORT_BATCH_RECORDS:
        raise Invalid(f"records must be a list of 1 to {IMPORT_BATCH_RECORDS} records", field="records")
    flags = [arguments.get(name, False) for name in ("dry_run", "resurrect")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise Invalid("dry_run and resurrect must be true or false", field="dry_run")
    return Ask(records, *flags)


async def taken(access: StoreAccess, ask: Ask) -> dict[str, Any]:
    """{outcomes[{outcome, …} or {outcome: "refused", code, message, field?}]}, in the order of the records.

    RetryError or StoreFailed if it is not known that all are stored: then all may be sent again.
    """
    commands = await asyncio.to_thread(_read, ask, redacts=access.redacts_everything)
    if ask.dry_run:
        return {"outcomes": await access.read(_tried, commands)}
    outcomes: list[Mapping[str, Any]] = []
    for start in range(0, len(commands), AT_ONCE):
        outcomes += await _written(access, commands[start : start + AT_ONCE])
    return {"outcomes": outcomes}


def _read(ask: Ask, *, redacts: bool) -> list[Any]:
    """The command of each record, or its refusal."""
    from convmem.inputs import checked
    from convmem.memory.imports import ImportLesson, ImportPreference, ImportSection
    from convmem.messages.imports import ImportMessage
    from convmem.redact.records import cleaned

    kinds: Mapping[Any, type[Input]] = {
        "message": ImportMessage,
        "preference": ImportPreference,
        "lesson": ImportLesson,
        "section": ImportSection,
    }
    commands: list[Any] = []
    for record in ask.records:
        try:
            if not isinstance(record, dict) or record.get("type") not in kinds:
                raise Invalid(f"type must be one of {', '.join(kinds)}", field="type")
            said = {name: value for name, value in record.items() if name != "type"} | {"resurrect": ask.resurrect}
            commands.append(checked(kinds[record["type"]], cleaned(said) if redacts else said))
        except CallerError as refused:
            commands.append(refused)
    return commands


async def _written(access: StoreAccess, commands: Sequence[Any]) -> list[Mapping[str, Any]]:
    """The outcome of each. What finds no room beside the writes of others comes again, behind all that did."""
    outcomes: list[Any] = list(commands)
    left = [place for place, command in enumerate(commands) if not isinstance(command, ConvmemError)]
    while left:
        try:
            found = await access.write_all([commands[place] for place in left])
        except Busy as busy:
            found = [busy] * len(left)
        for place, outcome in zip(left, found, strict=True):
            outcomes[place] = outcome
        left = [place for place in left if isinstance(outcomes[place], Busy)]
        if left:
            await asyncio.sleep(outcomes[left[0]].details.get("retry_after_ms", BUSY_RETRY_MS) / 1000)
    for outcome in outcomes:
        if isinstance(outcome, ConvmemError) and not isinstance(outcome, CallerError):
            raise outcome
    return list(map(_facts, outcomes))


def _tried(connection: apsw.Connection, commands: Sequence[Any]) -> list[Mapping[str, Any]]:
    """What would come of each by itself."""
    from convmem.memory.imports import DECIDERS as OF_MEMORY
    from convmem.messages.imports import DECIDERS as OF_MESSAGES

    deciders: Mapping[type[Any], Decider] = {**OF_MESSAGES, **OF_MEMORY}
    stamp = Stamp(Place(0, 0, Origin("", "")), NO_ID, 1)
    outcomes: list[Any] = []
    for command in commands:
        if isinstance(command, CallerError):
            outcomes.append(command)
            continue
        try:
            outcomes.append({"outcome": deciders[type(command)](connection, command, stamp).answer["outcome"]})
        except CallerError as refused:
            outcomes.append(refused)
    return list(map(_facts, outcomes))


def _facts(outcome: Any) -> Mapping[str, Any]:
    if not isinstance(outcome, CallerError):
        facts: Mapping[str, Any] = outcome
        return facts
    field = outcome.details.get("field")
    return {
        "outcome": "refused",
        "code": outcome.code,
        "message": outcome.message,
        **({} if field is None else {"field": field}),
    }
