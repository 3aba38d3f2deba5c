"""What the nouns of tables look like to programs."""

from convmem.tables.model import Dump, Field, Row, TableSchema

FIELDS = (Field(name="a", type="string", required=True, description="first"), Field(name="b", type="array"))


def test_a_schema_says_what_is_there_and_leaves_out_what_is_not():
    assert TableSchema(table="t", fields=FIELDS).facts() == {
        "table": "t",
        "fields": [
            {"name": "a", "type": "string", "required": True, "description": "first"},
            {"name": "b", "type": "array", "required": False},
        ],
        "history": "full",
    }


def test_unknown_keys_stand_where_they_stood():
    dump = Dump(dir="x", sync="bidirectional", unknown={"d": 1})
    fields = (Field(name="a", type="string", unknown={"f": 2}),)
    facts = TableSchema(table="t", fields=fields, dump=dump, history="off", unknown={"s": [3]}).facts()
    assert facts["dump"] == {"dir": "x", "sync": "bidirectional", "d": 1}
    assert facts["fields"] == [{"name": "a", "type": "string", "required": False, "f": 2}]
    assert (facts["history"], facts["s"]) == ("off", [3])


def test_a_field_is_found_by_exactly_its_name():
    schema = TableSchema(table="t", fields=(Field(name="é", type="string"), Field(name="e\u0301", type="number")))
    found = schema.field("e\u0301")
    assert found is not None
    assert found.type == "number"
    assert schema.field("E") is None


def test_a_row_is_told_with_its_times():
    row = Row(id="x", data={"a": 1}, created_at=1, updated_at=2)
    assert row.facts() == {"id": "x", "data": {"a": 1}, "created_at": 1, "updated_at": 2}
