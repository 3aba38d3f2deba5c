"""A refusal names the place where the value stands: line and column of a file, or the path of an argument."""

import pytest

from convmem.errors import Invalid, SchemaError
from convmem.limits import FIELD_CODE_POINTS_MAX, JSON_LEVELS_MAX
from convmem.tables.nodes import Node, Position, child_path, from_arguments


def test_what_stands_in_a_file_is_refused_with_line_and_column():
    error = Node("x", "x", "fields.0.type", Position(3, 7)).refused("is wrong")
    assert isinstance(error, SchemaError)
    assert error.message == "line 3, column 7: fields.0.type is wrong"
    assert error.details == {"line": 3, "column": 7}


def test_what_came_as_an_argument_is_refused_with_its_field():
    error = Node("x", "x", "fields.0.type").refused("is wrong")
    assert isinstance(error, Invalid)
    assert (error.message, error.details) == ("fields.0.type is wrong", {"field": "fields.0.type"})


def test_arguments_become_nodes_that_know_their_paths_and_lead_back():
    given = {"a": [1, {"b": "x"}, None], "c": True, "d": 1.5}
    node = from_arguments(given)
    assert node.plain() == given
    assert isinstance(node.value, dict)
    inner = node.value["a"].value
    assert isinstance(inner, tuple)
    assert [item.path for item in inner] == ["a.0", "a.1", "a.2"]
    assert [item.text for item in inner] == [None, None, None]


@pytest.mark.parametrize("text", ["a\0b", "\ud83d"])
def test_a_text_that_no_file_could_hold_is_refused_where_it_stands(text: str):
    with pytest.raises(Invalid) as caught:
        from_arguments({"fields": [{"description": text}]})
    assert caught.value.details == {"field": "fields.0.description"}


def test_arguments_may_be_as_deep_as_json_and_no_deeper():
    def nested(levels: int) -> object:
        return [nested(levels - 1)] if levels else 1

    from_arguments(nested(JSON_LEVELS_MAX - 1))
    with pytest.raises(Invalid):
        from_arguments(nested(JSON_LEVELS_MAX))


def test_a_path_stays_short_however_long_the_keys_are():
    path = "x" * 1000
    for name in range(100):
        path = child_path(path, name)
    assert len(path) == FIELD_CODE_POINTS_MAX + 1
