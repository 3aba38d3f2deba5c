"""How one value of many rows is found: which columns SQLite adds up, and what they make together.

The idea: a sum is refused only if no number holds it. Integers are added up as two halves, so that neither can overflow
on the way, and are exact. Fractions are added up twice, as they are and scaled down; where the first sum has overflowed
the second has not, and the mean of large numbers is a number still.

Rejected: SQLite's own sum() of integers (an error if it overflows on the way to a sum that fits).
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import isfinite
from typing import Any, NamedTuple

from convmem.errors import AggregateRefused
from convmem.limits import INT64_MAX, INT64_MIN
from convmem.tables.model import FieldType

# More than there are rows, so that numbers scaled by it have a sum.
SCALE = 1 << 64


class Method(NamedTuple):
    """How a scalar is found: of which types, which columns of SQL over `v`, and what they make together."""

    of: tuple[FieldType, ...]
    columns: tuple[str, ...]
    made: Callable[..., Any]


def _total(high: int | None, low: int | None, real: float | None, scaled: float | None) -> int | float | None:
    """The sum of integers, from their halves, and of fractions, which is wanted scaled if it overflows on the way."""
    if high is None and real is None:
        return None
    whole = ((high or 0) << 32) + (low or 0)
    if real is None:
        if not INT64_MIN <= whole <= INT64_MAX:
            raise AggregateRefused("the sum of these integers is beyond 64 bits; filter the rows, or take their avg")
        return whole
    fractions = _fractions(real, scaled)
    return _finite(None if fractions is None else whole + fractions)


def _mean(high: int | None, low: int | None, real: float | None, scaled: float | None, count: int) -> float | None:
    if not count:
        return None
    fractions = _fractions(real or 0.0, scaled)
    return _finite(None if fractions is None else (((high or 0) << 32) + (low or 0) + fractions) / count)


def _fractions(real: float, scaled: float | None) -> Fraction | None:
    """The sum of fractions; None if another program has put one there that is infinite."""
    if isfinite(real):
        return Fraction(real)
    return Fraction(scaled) * SCALE if scaled is not None and isfinite(scaled) else None


def _finite(value: Fraction | None) -> float:
    try:
        if value is not None:
            return float(value)
    except OverflowError:
        pass
    raise AggregateRefused("the sum of these numbers is too large")


_HALVES = (
    "sum(CASE typeof(v) WHEN 'integer' THEN v >> 32 END)",
    "sum(CASE typeof(v) WHEN 'integer' THEN v & 4294967295 END)",
    "sum(CASE typeof(v) WHEN 'real' THEN v END)",
    f"sum(CASE typeof(v) WHEN 'real' THEN v / {SCALE}.0 END)",
)
METHODS: Mapping[str, Method] = {
    "count": Method((), ("count(*)",), lambda count: count),
    "sum": Method(("number",), _HALVES, _total),
    "avg": Method(("number",), (*_HALVES, "count(v)"), _mean),
    "min": Method(("number", "string"), ("min(v)",), lambda least: least),
    "max": Method(("number", "string"), ("max(v)",), lambda greatest: greatest),
}
