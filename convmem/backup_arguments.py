"""The arguments of the verbs of backups, as a request holds them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from convmem.errors import Invalid
from convmem.limits import FIELD_CODE_POINTS_MAX


def refuse_others(arguments: Mapping[str, Any], *known: str) -> None:
    """Invalid for an argument that has no meaning."""
    for name in arguments.keys() - set(known):
        raise Invalid(f"{name[:FIELD_CODE_POINTS_MAX]} is not an argument here", field=name[:FIELD_CODE_POINTS_MAX])


def path_in(arguments: Mapping[str, Any], name: str) -> Path:
    """An absolute path of this machine: nobody knows the directory of whoever asks."""
    text = arguments.get(name)
    if not isinstance(text, str) or "\0" in text or not os.path.isabs(text):
        raise Invalid(f"{name} must be an absolute path", field=name)
    return Path(text)


def flag_in(arguments: Mapping[str, Any], name: str) -> bool:
    """An argument that is true or false, false if it is not there."""
    value = arguments.get(name, False)
    if not isinstance(value, bool):
        raise Invalid(f"{name} must be true or false", field=name)
    return value
