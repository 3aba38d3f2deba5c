"""The messages domain in memory; whatever a test did to it is checked and folded again afterwards."""

from collections.abc import Iterator

import pytest

from tests.support.folded import Folded


@pytest.fixture
def folded() -> Iterator[Folded]:
    index = Folded()
    yield index
    index.prove()
