"""Tests of the seam to the daemon."""

import pytest

from convmem.transport.gate import Settings


def test_an_address_that_others_reach_without_a_token_is_our_fault():
    with pytest.raises(AssertionError, match="token"):
        Settings(loopback_bind=False)
    Settings(loopback_bind=False, token=b"t")


def test_a_token_is_not_shown():
    assert "geheim" not in repr(Settings(token=b"geheim"))
