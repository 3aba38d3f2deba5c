"""What clients of hooks say of their spools, by device."""

from convmem.domain import Origin
from convmem.limits import SPOOL_AGE_MS_MAX, SPOOLS_MAX
from convmem.spools import Spools
from tests.support.manual_clock import ManualClock

NINE_TWELVE = 1_764_580_320_000  # 2025-12-01 09:12 UTC


def test_what_was_dropped_is_said_by_device_in_a_sentence():
    spools = Spools(ManualClock())
    spools.note(Origin("laptop", "http"), depth=0, oldest_at=None, dropped=14, dropped_since=NINE_TWELVE)
    spools.note(Origin("desktop", "http"), depth=3, oldest_at=NINE_TWELVE, dropped=0, dropped_since=None)
    desktop, laptop = spools.facts()
    assert laptop["sentence"] == "laptop: 14 events dropped since 2025-12-01 09:12 UTC"
    assert desktop["sentence"] == "desktop: 3 events waiting since 2025-12-01 09:12 UTC"
    assert (laptop["device"], laptop["dropped"], laptop["depth"]) == ("laptop", 14, 0)


def test_a_client_with_nothing_to_tell_has_no_sentence_and_the_last_news_counts():
    clock = ManualClock()
    spools = Spools(clock)
    spools.note(Origin("laptop", "http"), depth=5, oldest_at=1, dropped=0, dropped_since=None)
    clock.pass_ms(7)
    spools.note(Origin("laptop", "http"), depth=0, oldest_at=None, dropped=0, dropped_since=None)
    assert spools.facts() == [{"device": "laptop", "client": "", "depth": 0, "dropped": 0, "told_at": clock.now_ms()}]


def test_a_time_that_no_calendar_has_is_left_out():
    spools = Spools(ManualClock())
    spools.note(Origin("laptop", "http"), depth=0, oldest_at=None, dropped=1, dropped_since=2**63 - 1)
    assert spools.facts()[0]["sentence"] == "laptop: 1 event dropped"


def test_so_many_devices_are_remembered_and_the_most_silent_one_is_forgotten():
    spools = Spools(ManualClock())
    for number in range(SPOOLS_MAX):
        spools.note(Origin(f"device {number}", "http"), depth=0, oldest_at=None, dropped=0, dropped_since=None)
    spools.note(Origin("device 0", "http"), depth=1, oldest_at=None, dropped=0, dropped_since=None)
    spools.note(Origin("one more", "http"), depth=0, oldest_at=None, dropped=0, dropped_since=None)
    devices = {facts["device"] for facts in spools.facts()}
    assert len(devices) == SPOOLS_MAX
    assert {"device 0", "one more"} < devices
    assert "device 1" not in devices


def test_two_clients_of_a_device_do_not_speak_for_each_other():
    spools = Spools(ManualClock())
    spools.note(Origin("laptop", "http", "convmem/0.1.0"), depth=0, oldest_at=None, dropped=3, dropped_since=None)
    spools.note(Origin("laptop", "http", "opencode"), depth=0, oldest_at=None, dropped=0, dropped_since=None)
    assert [(facts["client"], facts["dropped"]) for facts in spools.facts()] == [("convmem/0.1.0", 3), ("opencode", 0)]


def test_what_one_spool_has_lost_another_of_the_same_name_does_not_take_back():
    clock = ManualClock()
    spools = Spools(clock)
    spools.note(Origin("laptop", "http"), depth=5, oldest_at=1, dropped=14, dropped_since=NINE_TWELVE)
    clock.pass_ms(SPOOL_AGE_MS_MAX - 1)
    spools.note(Origin("laptop", "http"), depth=0, oldest_at=None, dropped=0, dropped_since=None)
    assert spools.facts()[0]["sentence"] == "laptop: 14 events dropped since 2025-12-01 09:12 UTC"
    clock.pass_ms(1)
    spools.note(Origin("laptop", "http"), depth=0, oldest_at=None, dropped=0, dropped_since=None)
    assert "sentence" not in spools.facts()[0], "a client forgets as well"
