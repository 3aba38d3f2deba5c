"""What all inputs are made of: the base class, and the two leniencies that clients need.

Apart from domain.py, because pydantic is slow to import: a daemon listens before it needs the first input.
"""

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from convmem import strict_json
from convmem.limits import INT64_MAX, INT64_MIN


def _whole(value: Any) -> Any:
    """10, 10.0 and "10" are 10; True, 10.5 and "ten" are refused."""
    if isinstance(value, str) and re.fullmatch("-?[0-9]{1,19}", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be an integer")
    if not INT64_MIN <= value <= INT64_MAX:
        raise ValueError("must fit in 64 bits")
    return value


def _object(value: Any) -> Any:
    """Some clients send an object argument as a JSON string: read it by the same rules as the request."""
    if isinstance(value, str):
        try:
            return strict_json.parse(value.encode())
        except strict_json.MalformedJSON as error:
            raise ValueError(f"must be an object; as a JSON string it cannot be read: {error}") from None
    return value


AsWhole = BeforeValidator(_whole)
Whole = Annotated[int, AsWhole]
FromJSON = BeforeValidator(_object)


class Input(BaseModel):
    """Base of all inputs: frozen, strict types, no argument that is not named."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @property
    def size_bytes(self) -> int:
        """A small command; inputs that carry text say more."""
        return 1024
