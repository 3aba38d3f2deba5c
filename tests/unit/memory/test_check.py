"""Each invariant is violated on purpose, and said."""

import pytest

from convmem.memory.check import INVARIANTS, VIOLATIONS_MAX, check
from tests.support.remembered import Remembered


def sound() -> Remembered:
    remembered = Remembered()
    remembered.remember()
    remembered.save_lesson()
    remembered.write_section("goals", "x")
    remembered.capture("seen")
    remembered.remember()
    remembered.prove()
    return remembered


# How the index is damaged, and what is then said of it.
DAMAGE = [
    ("UPDATE memory_preference SET changed_sequence = 0", "preference 1 was stated before it was created"),
    ("UPDATE memory_preference SET updated_at = created_at - 1", "preference 1 was stated before it was created"),
    ("UPDATE memory_preference SET confidence = 1.1", "preference 1 is surer than sure"),
    ("UPDATE memory_preference SET confidence = -0.1", "preference 1 is surer than sure"),
    ("UPDATE memory_lesson SET changed_sequence = 1", "lesson 2 was changed before it was learned"),
    ("UPDATE memory_section SET changed_sequence = 2", "section 3 was written before it was created"),
    ("UPDATE memory_section SET updated_at = created_at - 1", "section 3 was written before it was created"),
    ("UPDATE memory_lesson SET number = 1", "number 1 names a preference and a lesson"),
    ("UPDATE memory_lesson SET number = 0", "number 0 is none"),
    ("UPDATE memory_section SET sequence = 2, changed_sequence = 2", "entry 2 created two records"),
    ("UPDATE memory_preference SET key = 'indents'", "preference 1 is kept under another name"),
    ("UPDATE memory_preference SET project = 'p'", "preference 1 is kept under another name"),
    ("UPDATE memory_preference SET value = 'tabs'", "preference 1 is found by other words"),
    ("UPDATE memory_lesson SET mistake = 'x'", "lesson 2 is kept under another name"),
    ("UPDATE memory_lesson SET folded = 'x'", "lesson 2 is found by other words"),
    ("UPDATE memory_preference SET number = 3", "number 3 names a captured message too"),
    ("UPDATE memory_lesson SET number = 3", "number 3 names a captured message too"),
]


@pytest.mark.parametrize(("statement", "sentence"), DAMAGE)
def test_damage_is_named(statement: str, sentence: str):
    remembered = sound()
    remembered.connection.execute(statement)
    found = check(remembered.connection)
    assert any(violation.startswith(sentence) for violation in found), found


def test_no_invariant_is_left_untried():
    for sentence, _ in INVARIANTS:
        before, _, after = sentence.partition("{}")
        assert any(damage.startswith(before) and after[:12] in damage for _, damage in DAMAGE), sentence


def test_no_sentence_repeats_a_text():
    remembered = sound()
    remembered.connection.execute("UPDATE memory_preference SET key = 'hidden', value = 'hidden', confidence = 7")
    assert not [sentence for sentence in check(remembered.connection) if "hidden" in sentence]


def test_a_ruin_is_described_in_a_bounded_number_of_sentences():
    remembered = Remembered()
    for number in range(VIOLATIONS_MAX + 5):
        remembered.remember(key=str(number))
    remembered.connection.execute("UPDATE memory_preference SET folded = ''")
    assert len(check(remembered.connection)) == VIOLATIONS_MAX
