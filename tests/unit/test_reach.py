"""reach: who may do more may do all that others may."""

import pytest

from convmem.reach import REACHES, Reach, reaches

MAY: dict[Reach, set[Reach]] = {"read": {"read"}, "write": {"read", "write"}, "admin": {"read", "write", "admin"}}


@pytest.mark.parametrize("reach", REACHES)
def test_each_step_reaches_those_below_it_and_none_above(reach: Reach):
    assert {needed for needed in REACHES if reaches(reach, needed)} == MAY[reach]
