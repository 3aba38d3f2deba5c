"""One daemon for all verbs that ask: they change nothing."""

from collections.abc import Iterator

import pytest

from tests.support.written import Written, written_and_held


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    with written_and_held(tmp_path_factory.mktemp("written")) as held:
        yield held
