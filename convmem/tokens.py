"""Device tokens: who may come in by name, how far each reaches, and which profile it shows.

A token is 32 random bytes. It is shown once, when it is made; the file keeps its SHA-256, so whoever reads the file or
a backup of it cannot come in with what stands there. The file is replaced as a whole under a lock, and a daemon notices
that by looking at it: what was revoked is refused by the next request, without a restart.

Where there is a file a token is needed, whatever stands in it: neither damage nor the revocation of the last token
opens a door. Whoever wants an open one again removes the file.

Rejected: a slow hash, as for passwords. Nobody guesses 32 random bytes, and each request would pay for it.
"""

import base64
import hashlib
import hmac
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from convmem import files
from convmem.clock import Clock, secret_bytes, sleep_ms
from convmem.errors import Busy, Conflict, DiskFault, Invalid, NotFound
from convmem.limits import BUSY_RETRY_MS, TOKEN_NAME_BYTES_MAX, TOKENS_BYTES_MAX, TOKENS_MAX
from convmem.reach import Reach

FILE, LOCK = "tokens.json", "tokens.lock"
MARK, SECRET_BYTES = "cvm_", 32
# The device of the one token of the environment, and of callers who need none.
RESERVED = frozenset({"env", "local"})
LOCK_TRIES, LOCK_PAUSE_MS = 200, 25
Stand = tuple[int, int, int] | None


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One token as it is kept. `profile`: the only one it shows, None for any."""

    name: str
    sha256: str
    scope: Reach = "write"
    profile: str | None = None
    created_at_ms: int


class Tokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file holds."""

    version: Literal[1] = 1
    tokens: tuple[Token, ...] = ()


class Made(NamedTuple):
    """A token that was just made, and its secret, which nobody sees again; whether it is the first one."""

    token: Token
    secret: str
    is_first: bool


def read(directory: Path) -> tuple[Token, ...]:
    """The tokens of a data directory, none if there is no file. ValueError if it is not one of ours, OSError."""
    place = directory / FILE
    if not os.path.lexists(place):
        return ()
    if not place.is_file():
        # A link that leads nowhere, or what would be waited for without end (a pipe).
        raise ValueError("it is not a regular file")
    data = files.read_text(place, bytes_max=TOKENS_BYTES_MAX + 1) or b""
    if len(data) > TOKENS_BYTES_MAX:
        raise ValueError("the file is too large")
    try:
        return msgspec.json.decode(data, type=Tokens).tokens
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ValueError("the file is not one of ours") from None


def create(directory: Path, name: str, scope: Reach, profile: str | None, clock: Clock) -> Made:
    """Make a token. Invalid for a name that cannot be one, Conflict if it is taken, DiskFault, Busy."""
    is_plain = name.isprintable() and name == name.strip() and 1 <= len(name.encode()) <= TOKEN_NAME_BYTES_MAX
    if not is_plain or name in RESERVED:
        raise Invalid(
            f"name must be 1 to {TOKEN_NAME_BYTES_MAX} bytes of plain text, and not env or local", field="name"
        )
    secret = MARK + base64.urlsafe_b64encode(secret_bytes(SECRET_BYTES)).decode().rstrip("=")
    digest = hashlib.sha256(secret.encode()).hexdigest()
    token = Token(name=name, sha256=digest, scope=scope, profile=profile, created_at_ms=clock.now_ms())
    with _changing(directory) as known:
        if any(one.name == name for one in known):
            raise Conflict(f"there is a token of the name {name} already: revoke it first", field="name")
        if len(known) >= TOKENS_MAX:
            raise Invalid(f"there are {TOKENS_MAX} tokens already", field="name")
        _write(directory, (*known, token))
        return Made(token, secret, is_first=not known)


def revoke(directory: Path, name: str) -> int:
    """Take a token away; how many are left. NotFound, DiskFault, Busy."""
    if not os.path.lexists(directory / FILE):
        raise NotFound("there are no tokens", field="name")
    with _changing(directory) as known:
        left = tuple(one for one in known if one.name != name)
        if len(left) == len(known):
            raise NotFound(f"there is no token of the name {name}", field="name")
        _write(directory, left)
        return len(left)


@contextmanager
def _changing(directory: Path) -> Iterator[tuple[Token, ...]]:
    try:
        held = _locked(directory)
        try:
            yield read(directory)
        finally:
            held.close()
    except (OSError, ValueError) as error:
        raise DiskFault(f"{FILE} cannot be changed: {error}", path=FILE) from error


def _locked(directory: Path) -> files.HeldLock:
    """The lock of the file, waited for: whoever has it holds it for a moment only. Busy."""
    for _ in range(LOCK_TRIES):
        if (held := files.lock(directory / LOCK)) is not None:
            return held
        sleep_ms(LOCK_PAUSE_MS)
    raise Busy("somebody else is changing the tokens", retry_after_ms=BUSY_RETRY_MS)


def _write(directory: Path, tokens: tuple[Token, ...]) -> None:
    with files.appearing(directory / FILE) as put:
        put(msgspec.json.format(msgspec.json.encode(Tokens(tokens=tokens)), indent=2) + b"\n")


class TokenBook:
    """The tokens of a data directory as they are now, and when each was used last since the start."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._stand: Stand = None
        self._by_digest: tuple[tuple[bytes, Token], ...] = ()
        self._is_damaged = False
        self.last_used_ms: dict[str, int] = {}
        self._look()

    @property
    def is_needed(self) -> bool:
        """True if there are tokens, or were."""
        self._look()
        return self._stand is not None

    def find(self, digest: bytes) -> Token | None:
        """The token whose secret has this SHA-256. Each is compared, so that time tells nothing."""
        self._look()
        found = None
        for known, token in self._by_digest:
            if hmac.compare_digest(known, digest):
                found = token
        if found is not None:
            self.last_used_ms[found.name] = self._clock.now_ms()
        return found

    def _look(self) -> None:
        """Read the file again if it is another one than before."""
        try:
            status = os.stat(self._directory / FILE)
            stand: Stand = (status.st_ino, status.st_mtime_ns, status.st_size)
        except FileNotFoundError:
            stand = (0, 0, 0) if os.path.lexists(self._directory / FILE) else None
        except OSError:
            stand = (0, 0, 0)
        if stand == self._stand and not self._is_damaged:
            return
        try:
            tokens = read(self._directory)
            self._by_digest = tuple((bytes.fromhex(token.sha256), token) for token in tokens)
            self._is_damaged = False
        except (OSError, ValueError):
            self._by_digest, self._is_damaged = (), True
        self._stand = stand
