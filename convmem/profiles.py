"""The verb `profile`: what a person does with the profile from a terminal, in the daemon or on a store nobody holds.

show    what an agent would be given: the facts of get_profile
read    one section, whole
set     write a section; a person's own words stay as they are, unless the daemon takes secrets out of everything. With
        `replaces`, the SHA-256 of the text that it replaces (of an empty one if there was none), only in its place
delete  take a section away
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from convmem.config import Settings
from convmem.domain import Access, Origin
from convmem.errors import Invalid, NotFound

if TYPE_CHECKING:
    from convmem.engine import Engine
    from convmem.maintenance import Progress

Tell = Callable[[float, float, str], None]
Action = Callable[[Access, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


async def operate(access: Access, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Do what `action` says with the other arguments; the facts of that. Invalid with `field`, NotFound."""
    action = arguments.get("action")
    if not isinstance(action, str) or action not in ACTIONS:
        raise Invalid(f"action must be one of {', '.join(ACTIONS)}", field="action")
    return await ACTIONS[action](access, {name: value for name, value in arguments.items() if name != "action"})


async def _show(access: Access, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    # Imported here, as in all of these: a daemon listens before it has loaded the domain, and with it pydantic.
    from convmem.inputs import checked
    from convmem.memory.inputs import GetProfile
    from convmem.memory.profile import profile

    return await access.read(profile, checked(GetProfile, arguments).project)


async def _read(access: Access, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    from convmem.inputs import checked
    from convmem.memory import queries
    from convmem.memory.facts import section_facts
    from convmem.memory.inputs import ReadSection

    found = await access.read(queries.read_section, checked(ReadSection, arguments).section)
    if found is None:
        raise NotFound("the profile has no section of this name", field="section")
    return section_facts(found)


async def _set(access: Access, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    from convmem.inputs import checked
    from convmem.memory.cleaning import cleaned
    from convmem.memory.inputs import WriteSection

    ask = checked(WriteSection, arguments)
    if access.redacts_everything:
        ask, _ = cleaned(ask)
    written: Mapping[str, Any] = await access.write(ask)
    return written


async def _delete(access: Access, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    from convmem.inputs import checked
    from convmem.memory.inputs import DeleteSection

    deleted: Mapping[str, Any] = await access.write(checked(DeleteSection, arguments))
    return deleted


ACTIONS: Mapping[str, Action] = {"show": _show, "read": _read, "set": _set, "delete": _delete}


def own(settings: Settings, arguments: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """The same on a store that nobody holds. Raises StoreLocked if somebody does."""
    # Imported here: the daemon has this verb among its own.
    from convmem.daemon import operated

    async def work(engine: "Engine", progress: "Progress") -> Mapping[str, Any]:
        return await operate(engine.access(Origin("local", "cli")), arguments)

    return operated(settings, work, tell)
