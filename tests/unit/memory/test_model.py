"""The nouns: what makes two records one, and how sure a statement is."""

from hypothesis import given
from hypothesis import strategies as st

from convmem.memory.model import NAME_BYTES, folded_text, lesson_name, next_confidence, preference_name
from tests.support.texts import texts

projects = st.none() | texts
three = st.tuples(texts, texts, texts)


def test_tenths_add_up_exactly():
    told = [0.5]
    while told[-1] < 1:
        told.append(next_confidence(told[-1]))
    assert told == [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert next_confidence(1.0) == 1.0


def test_what_a_file_brought_is_brought_to_tenths():
    assert next_confidence(0.0) == 0.1
    assert next_confidence(0.123) == 0.2
    assert next_confidence(0.999) == 1.0


@given(projects, three, projects, three)
def test_names_are_the_same_for_the_same_texts_alone(
    project: str | None, mine: tuple[str, str, str], other: str | None, theirs: tuple[str, str, str]
):
    assert (lesson_name(project, *mine) == lesson_name(other, *theirs)) is ((project, mine) == (other, theirs))
    same = (project, *mine[:2]) == (other, *theirs[:2])
    assert (preference_name(project, *mine[:2]) == preference_name(other, *theirs[:2])) is same


@given(texts, texts)
def test_names_do_not_run_into_each_other(first: str, second: str):
    assert lesson_name(None, first, second, "") != lesson_name(first, second, "", "")
    if first:
        assert preference_name(None, first, second) != preference_name(None, "", first + second)
    assert preference_name("", first, second) != preference_name(None, first, second)
    assert len(preference_name(None, first, second)) == len(lesson_name("p", first, second, "")) == NAME_BYTES


def test_texts_are_folded_one_by_one():
    assert folded_text("É", "x\u0301Y") == "é\0x\u0301y"
    assert folded_text("e", "\u0301") == "e\0\u0301"
