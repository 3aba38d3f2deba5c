"""Times of other programs: one moment, however it is written, in every time zone."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convmem.importers.times import at_ms

MOMENT = 1_736_110_532_499


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/St_Johns"], autouse=True)
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    os.environ.pop("TZ", None)
    time.tzset()


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("2025-01-05T20:55:32.499880+00:00", MOMENT),
        ("2025-01-05T20:55:32.499Z", MOMENT),
        ("2025-01-05T20:55:32.499880123Z", MOMENT),
        ("2025-01-05T13:55:32.499-07:00", MOMENT),
        ("2025-01-05T13:55:32.499-0700", MOMENT),
        ("2025-01-05 20:55:32.499", MOMENT),
        ("2025-01-05T20:55:32,499z", MOMENT),
        (" 2025-01-05T20:55:32.499Z ", MOMENT),
        (1_736_110_532.499, MOMENT),
        ("1736110532.499", MOMENT),
        (MOMENT, MOMENT),
        (str(MOMENT), MOMENT),
        (1_736_110_532, MOMENT - 499),
        ("2025-01-05", 1_736_035_200_000),
        ("2025-01-05T24:00:00Z", 1_736_121_600_000),
        ("2025-01-05T24:00Z", 1_736_121_600_000),
        ("2025-01-05T20:55Z", 1_736_110_500_000),
        (253_402_300_800_000, 253_402_300_800_000),
    ],
)
def test_a_moment_is_one_number(given_: Any, expected: int):
    assert at_ms(given_) == expected


@pytest.mark.parametrize(
    "nothing",
    [
        *(None, "", "yesterday", True, False, 0, -1, "-1", float("nan"), float("inf"), 1e30, [], {}, "2025-13-01"),
        *("2025-01-05T25:00:00Z", "2025-01-05T24:00:01Z", "1969-12-31T23:59:59Z", "9999-99-99T00:00:00Z", "1" * 40),
    ],
)
def test_what_is_no_time_is_none(nothing: Any):
    assert at_ms(nothing) is None


@given(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=40)
    | st.from_regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?")
)
def test_whatever_a_file_says_it_is_a_time_or_none(value: Any):
    found = at_ms(value)
    assert found is None or 0 < found < 2**63
