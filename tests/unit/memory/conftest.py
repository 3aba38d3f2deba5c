"""Memory and messages in memory; whatever a test did to them is checked and folded again afterwards."""

from collections.abc import Iterator

import pytest

from tests.support.remembered import Remembered


@pytest.fixture
def remembered() -> Iterator[Remembered]:
    index = Remembered()
    yield index
    index.prove()
