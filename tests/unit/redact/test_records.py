"""Records of other programs' files lose their secrets, and what makes two of them two stays."""

from convmem.redact.records import cleaned

KEY = "AKIA" + "IOSFODNN7EXAMPLE"


def test_every_text_that_is_kept_loses_its_secret():
    record = {
        "type": "message",
        "content": f"key {KEY}",
        "summary": KEY,
        "tags": [KEY, "plain", 5],
        "links": [{"type": "t", "conversation": KEY, "id": "x"}, 7],
        "captured": {"kind": "prompt", "directory": f"/srv/{KEY}"},
        "value": KEY,
        "importance": 5,
        "at": None,
    }
    found = cleaned(record)
    assert KEY not in repr(found)
    assert found["tags"][1:] == ["plain", 5]
    assert (found["importance"], found["at"], found["links"][1]) == (5, None, 7)


def test_ids_that_held_a_secret_stay_two():
    first, second = (cleaned({"id": f"{KEY}{number}", "conversation": "c"}) for number in (1, 2))
    assert first["id"] != second["id"]
    assert KEY not in first["id"]
    assert first["conversation"] == "c"
    assert cleaned(first) == first, "what is sent to a daemon that cleans everything stays as it is"


def test_what_is_no_text_is_left_to_whoever_reads_it():
    odd = {"content": 5, "tags": "x", "links": "y", "captured": [1], "id": None}
    assert cleaned(odd) == odd
