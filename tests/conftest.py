"""What holds at the end of every test: a store that the test opened, and did not damage on purpose, is sound."""

from collections.abc import Iterator

import pytest

from tests.support import stores


@pytest.fixture(autouse=True)
def every_store_is_sound_afterwards() -> Iterator[None]:
    stores.OPENED.clear()
    yield
    found = stores.violations()
    stores.OPENED.clear()
    assert found == []
