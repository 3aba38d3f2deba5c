"""A sum or a mean is refused only if no number holds it."""

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convmem.errors import AggregateRefused
from convmem.tables.methods import METHODS, SCALE

LARGEST = 1.7976931348623157e308


def found(kind: str, *values: float) -> object:
    method = METHODS[kind]
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE r (v)")
    connection.executemany("INSERT INTO r VALUES (?)", [(value,) for value in values])
    (columns,) = connection.execute(f"SELECT {', '.join(method.columns)} FROM r")
    return method.made(*columns)


def test_a_mean_of_large_numbers_is_a_number():
    assert found("avg", 1e308, 1e308) == 1e308
    assert found("avg", LARGEST, LARGEST, LARGEST) == LARGEST
    assert found("avg", *[-1e308] * 1_000) == -1e308
    assert found("avg", LARGEST, 1) == LARGEST / 2


def test_a_sum_may_overflow_on_the_way():
    assert found("sum", 1e308, 1e308, -1e308) == 1e308
    with pytest.raises(AggregateRefused):
        found("sum", 1e308, 1e308)
    with pytest.raises(AggregateRefused):
        found("avg", float("inf"), 1.5)


@given(st.lists(st.floats(-1e300, 1e300) | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8))
def test_a_mean_lies_between_the_least_and_the_greatest(values: list[float]):
    mean = found("avg", *values)
    assert isinstance(mean, float)
    spread = max(map(abs, values)) * 1e-9
    assert min(values) - spread <= mean <= max(values) + spread


def test_scaling_leaves_room_for_every_row():
    assert LARGEST / SCALE * 2**63 < LARGEST
