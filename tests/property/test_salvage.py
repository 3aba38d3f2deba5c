"""Salvage under any damage: it ends, what it makes is sound, and it neither invents nor hides anything."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem import checking
from convmem.clock import SystemClock
from convmem.daemon import domains
from convmem.files import RealFiles
from convmem.store import salvage
from tests.support.wrecks import DAMAGES, LATER, MOVES, SCRIPT, Wreck, content_of, expected

pytestmark = pytest.mark.slow

KINDS = {**DAMAGES, **MOVES, "nothing": lambda data, offset, size: data}
# Where, how much of what is left, and in which way; shares, since no two logs have one size.
BLOWS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.3), st.sampled_from(sorted(KINDS))), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Wreck]:
    """One that was never compacted, and one that was."""
    made = {}
    for is_compacted in (False, True):
        wreck = made[is_compacted] = Wreck(tmp_path_factory.mktemp("store"))
        wreck.play(SCRIPT, frames_of=2)
        if is_compacted:
            wreck.compact()
        wreck.play(LATER)
    return made


@settings(derandomize=True, max_examples=60, deadline=None)
@given(is_compacted=st.booleans(), has_index=st.booleans(), blows=BLOWS, cut=st.floats(0, 1))
def test_any_damage_leaves_a_sound_store_of_true_messages(
    stores: dict[bool, Wreck], is_compacted: bool, has_index: bool, blows: list[tuple[float, float, str]], cut: float
):
    whole = stores[is_compacted]
    with tempfile.TemporaryDirectory() as directory:
        wreck = whole.copy(Path(directory) / "from")
        if not has_index:
            wreck.drop_index()
        data = wreck.log.read_bytes()
        for place, share, kind in blows:
            offset = int(len(data) * place)
            data = KINDS[kind](data, offset, int((len(data) - offset) * share)) if len(data) - offset > 40 else data
        wreck.log.write_bytes(data[: int(len(data) * cut)] if cut < 0.5 else data)
        target = RealFiles(Path(directory) / "to")
        target.prepare()
        found = salvage.salvage(RealFiles(wreck.directory), target, domains(), SystemClock(), lambda *_: None)
        looked = checking.walk(target, domains(), SystemClock(), lambda *_: None)
        assert looked == {"violations": [], "leftovers": []}
        said = {(whole.ids[step.number], content_of(step)) for step in SCRIPT + LATER}
        messages = Wreck(target.root).messages()
        assert messages.items() <= said
        if has_index:
            assert messages == expected(whole.ids, [], SCRIPT + LATER)[0]
        if not has_index and messages != expected(whole.ids, [], SCRIPT + LATER)[0]:
            # A log that is cut cleanly behind a frame cannot be told from one that ended there.
            assert not found.is_whole or cut < 0.5
