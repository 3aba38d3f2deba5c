"""Names of tables come from a list of what is allowed; names of fields are any text that can be seen."""

import pytest

from convmem.tables.names import DEVICES, field_name_fault, folded, table_name_fault

WAYS_OUT = [
    *("../x", "..", ".", "a/../../b", "/etc/x", "C:\\x", "a\\b", "%2e%2e", "a\0b", "x.", "x ", " x", "-rf", "_backup"),
    *(".hidden", "", "a" * 65, "e\u0301", "é", "ｎotes", "a\n", "a.b", "a:b"),
]


@pytest.mark.parametrize("name", WAYS_OUT)
def test_a_name_that_could_lead_elsewhere_is_none(name: str):
    assert table_name_fault(name)


@pytest.mark.parametrize("name", ["a", "A", "7", "notes", "reading-list", "a_b", "a" * 64, "con1", "com10", "select"])
def test_an_ordinary_name_is_one(name: str):
    assert table_name_fault(name) is None


def test_no_table_bears_the_name_of_a_device_however_it_is_written():
    assert {"con", "nul", "com1", "lpt9"} <= DEVICES
    for device in DEVICES:
        assert "device" in (table_name_fault(device) or "")
        assert "device" in (table_name_fault(device.upper()) or "")
        assert table_name_fault(f"{device}x") is None


def test_case_twins_are_one_table():
    assert folded("Notes") == folded("nOTES") != folded("notes_")


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "select",
        "a.b",
        "it's",
        '"',
        "$",
        "a]",
        "日本",
        "e\u0301",
        "é",
        " ",
        "🟡",
        "\u202e",
        "a" * 128,
        "no",
        "%_\\",
    ],
)
def test_a_field_may_have_any_name_that_can_be_seen(name: str):
    assert field_name_fault(name) is None


@pytest.mark.parametrize("name", ["", "a" * 129, "é" * 65, "a\nb", "a\tb", "\0", "\x7f", "\x85", "\ud800"])
def test_a_field_has_no_name_without_end_nor_with_what_cannot_be_seen(name: str):
    assert field_name_fault(name)
