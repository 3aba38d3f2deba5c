"""The two stores of OpenCode, told alike: a database, and the files that it had before.

    opencode.db                                    session, message, part: ids in columns, the rest as JSON
    storage/session/<project>/<session>.json       and message/<session>/<message>.json, part/<message>/<part>.json
    storage/session/info/<session>.json            the same, older; and session/message/<session>/<message>.json,
                                                   session/part/<session>/<message>/<part>.json

The idea: an id is what a path or a column says. A move of files by OpenCode itself once left other ids in the JSON, so
what stands there is asked only where nothing goes by the name of the path.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from convmem.importers.model import Notes
from convmem.importers.opencode_parts import Piece
from convmem.importers.rows import Database
from convmem.importers.sources import Source, Unreadable
from convmem.importers.splitting import decoded
from convmem.importers.times import at_ms
from convmem.limits import IMPORT_ELEMENT_BYTES_MAX


class Session(NamedTuple):
    """What a store says of a session beside its messages. `at` is when it began."""

    id: str
    where: str
    title: str | None
    directory: str | None
    is_child: bool
    at: int | None
    messages: int


class Store(Protocol):
    """Sessions, their messages, and the parts of these, in no order. What cannot be read goes to the notes."""

    def sessions(self) -> Iterator[Session]: ...

    def messages(self, session: str) -> Iterator[Piece]: ...

    def parts(self, message: str) -> Iterator[Piece]: ...


class Tables:
    """A database."""

    def __init__(self, source: Source, notes: Notes) -> None:
        self._database = Database(source, notes)
        self._notes = notes

    def sessions(self) -> Iterator[Session]:
        """Also those that have messages and no row of their own."""
        groups = {group.key: group for group in self._database.groups("message", "session_id", "time_created")}
        columns = ("id", "parent_id", "title", "directory", "time_created")
        rows = {row.get("id"): row for row in self._database.rows("session", columns)}
        for name in (*rows, *(key for key in groups if key not in rows)):
            row, group = rows.get(name, {}), groups.get(name)
            if not isinstance(name, str):
                self._notes.skip(f"{self._database.name}, table session", "a session without an id")
                continue
            at, least = at_ms(row.get("time_created")), at_ms(group.least) if group else None
            if group is None and self._is_newer(name):
                continue
            yield Session(
                id=name,
                where=f"{self._database.name}, session {name}",
                title=_text(row.get("title")),
                directory=_text(row.get("directory")),
                is_child=_text(row.get("parent_id")) is not None,
                at=least if at is None else at,
                messages=group.size if group else 0,
            )

    def messages(self, session: str) -> Iterator[Piece]:
        """The messages of a session."""
        return self._pieces("message", {"session_id": session})

    def parts(self, message: str) -> Iterator[Piece]:
        """The parts of a message."""
        return self._pieces("part", {"message_id": message})

    def _pieces(self, table: str, where: Mapping[str, str]) -> Iterator[Piece]:
        for row in self._database.rows(table, ("id", "time_created", "data"), where):
            name, text = row.get("id"), row.get("data")
            if not isinstance(name, str):
                self._notes.skip(f"{self._database.name}, table {table}", "a row without an id")
                continue
            data = _object(text) if isinstance(text, str) else None
            if data is None:
                self._notes.skip(f"{self._database.name}, {table} {name}", "its JSON is damaged")
            yield Piece(name, at_ms(row.get("time_created")), data)

    def _is_newer(self, session: str) -> bool:
        """True if the messages of a session stand in a table of newer versions alone. They are not read."""
        newer = len(list(self._database.rows("session_message", ("id",), {"session_id": session})))
        if newer:
            why = f"its {newer} messages are kept as a newer OpenCode does it, which is not known here"
            self._notes.skip(f"{self._database.name}, session {session}", why)
        return bool(newer)


class Place(NamedTuple):
    """Which file of a storage it is: of a session, a message or a part; whose, and its id."""

    kind: str
    owner: str
    id: str


def place_of(source: Source) -> Place | None:
    """Where a file stands in a storage; None if it is none of one."""
    folders = ["", "", "", "", *source.parts[:-1]]
    name = source.parts[-1] if source.parts else ""
    own = name.removesuffix(".json")
    if own == name or not own:
        return None
    if folders[-4:-2] == ["session", "part"]:
        return Place("part", folders[-1], own)
    if folders[-2] in ("session", "message", "part"):
        return Place(folders[-2], folders[-1], own)
    return None


class Files:
    """All files of storages that were given together, found by their paths and read when their turn comes."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        # Kind, owner, id, and the files of that name: the older and the newer layout may hold the same one.
        self._sessions: dict[str, list[Source]] = {}
        self._owned: dict[str, dict[str, dict[str, list[Source]]]] = {"message": {}, "part": {}}
        # Ids by which messages and parts know them that have no file of the name of the path.
        self._aliases: dict[str, dict[str, str]] = {"message": {}, "part": {}}

    def add(self, place: Place, source: Source) -> None:
        """A file that stands at a place."""
        named = self._sessions if place.kind == "session" else self._owned[place.kind].setdefault(place.owner, {})
        named.setdefault(place.id, []).append(source)

    def sessions(self) -> Iterator[Session]:
        """Also those of which there are messages alone."""
        owners = self._owned["message"]
        for name, sources in self._sessions.items():
            data = self._object(sources, self._notes) or {}
            self._alias("message", name, data, self._sessions)
            yield self._session(name, sources[0].name, data)
        known = self._sessions.keys() | set(self._aliases["message"].values())
        for name in [name for name in owners if name not in known]:
            first = next(iter(owners[name].values()))[0]
            yield self._session(name, first.name, {})

    def messages(self, session: str) -> Iterator[Piece]:
        """The messages of a session."""
        yield from self._messages(session, self._notes)

    def parts(self, message: str) -> Iterator[Piece]:
        """The parts of a message."""
        for name, sources in self._of("part", message).items():
            yield Piece(name, None, self._object(sources, self._notes))

    def pass_over_orphans(self) -> None:
        """Count parts that are left of messages which were taken back."""
        messages = {name: sources for owned in self._owned["message"].values() for name, sources in owned.items()}
        parts = self._owned["part"]
        orphans = parts.keys() - messages.keys()
        if orphans:
            others = (sources for name, sources in messages.items() if name not in parts)
            orphans -= {(self._object(sources, Notes()) or {}).get("id") for sources in others}
        for _ in (part for name in orphans for part in parts[name]):
            self._notes.pass_over("part without a message")

    def _session(self, name: str, where: str, data: dict[str, Any]) -> Session:
        at = _time(data)
        if at is None:
            times = (message.at for message in self._messages(name, Notes()))
            at = min((time for time in times if time is not None), default=None)
        return Session(
            id=name,
            where=where,
            title=_text(data.get("title")),
            directory=_text(data.get("directory")),
            is_child=_text(data.get("parentID")) is not None,
            at=at,
            messages=len(self._of("message", name)),
        )

    def _messages(self, session: str, notes: Notes) -> Iterator[Piece]:
        messages = self._of("message", session)
        for name, sources in messages.items():
            data = self._object(sources, notes)
            self._alias("part", name, data or {}, messages)
            yield Piece(name, _time(data or {}), data)

    def _of(self, kind: str, owner: str) -> Mapping[str, list[Source]]:
        owned = self._owned[kind]
        return owned.get(owner) or owned.get(self._aliases[kind].get(owner, ""), {})

    def _alias(self, kind: str, name: str, data: dict[str, Any], others: Mapping[str, Any]) -> None:
        """What belongs to a session or message may go by the id in its JSON, if that is nobody's name."""
        own = _text(data.get("id"))
        if own and name not in self._owned[kind] and own not in others:
            self._aliases[kind][name] = own

    def _object(self, sources: list[Source], notes: Notes) -> dict[str, Any] | None:
        """What the first of the files says that says something."""
        why = ""
        for source in sources:
            try:
                with source.opened() as file:
                    text = file.read(IMPORT_ELEMENT_BYTES_MAX).strip(b"\0 \t\r\n")
            except Unreadable as error:
                why = str(error)
                continue
            data = _object(text)
            if data is not None:
                return data
            why = "it is damaged" if text else "it is empty, as a full disk leaves a file"
        notes.skip(sources[0].name, why)
        return None


def _object(text: bytes | str) -> dict[str, Any] | None:
    try:
        data = decoded(text if isinstance(text, bytes) else text.encode(errors="replace"))
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _time(data: dict[str, Any]) -> int | None:
    """When it was made; the oldest messages say it among other things about themselves."""
    about = data.get("metadata") if "time" not in data else data
    time = about.get("time") if isinstance(about, dict) else None
    return at_ms(time.get("created")) if isinstance(time, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
