"""How far a caller reaches: one ladder, on which each step may do all that those below it may.

Rejected: a right for each tool. Nobody would keep such a list for five programs on three machines.
"""

from typing import Literal

Reach = Literal["read", "write", "admin"]
REACHES: tuple[Reach, ...] = ("read", "write", "admin")


def reaches(reach: Reach, needed: Reach) -> bool:
    """True if whoever has `reach` may do what needs `needed`."""
    return REACHES.index(reach) >= REACHES.index(needed)
