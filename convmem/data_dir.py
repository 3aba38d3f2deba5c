"""Where the store of this user is and where its local socket stands, for whoever asks in a hurry.

The same answers as the settings give, without what it takes to read settings.
"""

import os
import sys
from collections.abc import Mapping

from convmem.limits import SOCKET_PATH_BYTES_MAX

SOCKET = "convmem.sock"


def default(environment: Mapping[str, str]) -> str | None:
    """The user's data directory for convmem on this platform; None for a user without a home."""
    given = environment.get("XDG_DATA_HOME", "")
    if sys.platform == "linux" and "ANDROID_DATA" not in environment:
        above = given if os.path.isabs(given) else os.path.join(_home(environment), ".local/share")
    elif sys.platform == "darwin" and not given:
        above = os.path.join(_home(environment), "Library/Application Support")
    else:
        # Imported only where it knows more than the two lines above: it would take as long as all else together.
        import platformdirs

        try:
            above = os.path.dirname(platformdirs.user_data_dir("convmem", appauthor=False))
        except RuntimeError:
            above = ""
    return os.path.join(above, "convmem") if os.path.isabs(above) else None


def _home(environment: Mapping[str, str]) -> str:
    return environment.get("HOME") or known_home()


def known_home() -> str:
    """The home that the system knows of this user, whatever the variables say; empty if it knows none."""
    # Imported here: nearly everybody has the variable.
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def socket_path(directory: str, environment: Mapping[str, str]) -> str | None:
    """The local socket's path: in the data directory, or if that is too long for a socket where the session keeps such.

    None where neither will do; then the address in store.lock serves.
    """
    inside = os.path.join(directory, SOCKET)
    if _is_usable(inside):
        return inside
    import hashlib

    name = hashlib.sha256(os.fsencode(os.path.realpath(directory))).hexdigest()[:16]
    outside = os.path.join(environment.get("XDG_RUNTIME_DIR", ""), f"convmem-{name}.sock")
    return outside if _is_usable(outside) else None


def _is_usable(path: str) -> bool:
    return os.path.isabs(path) and len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX
