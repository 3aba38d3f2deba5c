"""hooks/options: arguments are read without a parser, and none of them can stop a host."""

import pytest

from convmem.hooks.options import FORMS, OPTIONS, parse


def test_an_option_and_its_text_stand_apart_or_together():
    apart = parse(["--url", "http://a", "--verbose", "--from", "claude-code"])
    together = parse(["--url=http://a", "--verbose", "--from=claude-code"])
    for options in (apart, together):
        assert options.texts == {"--url": "http://a", "--from": "claude-code"}
        assert (options.form, options.verbose, options.fault) == ("claude-code", True, "")


def test_nothing_given_is_plain_events_in_silence():
    options = parse([])
    assert (options.form, options.verbose, options.fault) == (FORMS[0], False, "")


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--bogus"], "--bogus is not an option"),
        (["event.json"], "event.json is not an option"),
        (["--verbose=yes"], "--verbose is not an option"),
        (["--url"], "--url needs a URL"),
        (["--url="], "--url must not be empty"),
        (["--data-dir", ""], "--data-dir must not be empty"),
        (["--from", "codex"], "--from is one of events, claude-code"),
    ],
)
def test_what_cannot_be_meant_is_a_fault_and_no_error(arguments: list[str], fault: str):
    assert parse(arguments).fault == fault
    assert parse([*arguments, "--verbose"]).fault == fault


def test_no_option_takes_a_token():
    assert [option.flag for option in OPTIONS if "token" in option.flag] == ["--token-file"]
