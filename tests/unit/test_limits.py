"""Bounds that must fit each other: whoever changes one learns here which others meant it."""

import pytest

from convmem import limits

# A condition over names of limits.py, and what it is for.
AGREEMENTS = (
    ("BATCH_BYTES_MAX + 2 * CONTENT_BYTES_MAX < FRAME_BYTES_MAX", "any batch fits one frame"),
    ("CONTENT_BYTES_MAX < BATCH_BYTES_MAX <= MAILBOX_BYTES_MAX", "one holds the other"),
    ("BODY_BYTES_MAX > 6 * CONTENT_BYTES_MAX", "the content limit must be reachable however the text is escaped"),
    ("REPLY_BYTES_MAX > BODY_BYTES_MAX", "one holds the other"),
    ("NOTIFY_EXTENSION_MS > 2 * NOTIFY_OPENING_MS", "a manager hears in time that it shall wait on"),
    ("BRIDGE_ANSWER_BYTES_MAX >= 2 * REPLY_BYTES_MAX", "whatever the daemon answers passes the bridge"),
    ("BRIDGE_QUIET_MS_MAX < KEEP_ALIVE_S * 1000", "the daemon does not close what the bridge still uses"),
    ("HAND_OVER_MS_MAX > STOP_MS_MAX", "whoever gives the store away has time to finish"),
    ("TAKE_OVER_AFTER_MS < BRIDGE_PATIENCE_MS", "a request outlives the wait for the store"),
    ("LINE_BYTES_MAX > BODY_BYTES_MAX", "any record fits a line"),
    ("BODIES_BYTES_MAX > 8 * BODY_BYTES_MAX", "eight clients may send the largest message at once"),
    ("RECALL_SCORED_MAX >= RECALL_LIMIT_MAX", "one holds the other"),
    (
        "MEMORY_FACTS_BYTES_MAX + REPLY_ENVELOPE_BYTES + 4 * INTERACTIONS_CODE_POINTS_MAX <= REPLY_BYTES_DEFAULT",
        "one holds the other",
    ),
    ("CURSOR_BYTES_MAX >= 2 * SESSION_ID_BYTES_MAX + 64", "a cursor may hold a session id"),
    ("STOP_GRACE_S * 1000 < STOP_MS_MAX", "after the last answer there must be time to close the store"),
    ("ROWS_CURSOR_BYTES_MAX >= 2 * ORDER_FIELDS_MAX * ORDER_TEXT_BYTES * 2 // 3", "a cursor may hold texts that order"),
)


@pytest.mark.parametrize(("condition", "why"), AGREEMENTS)
def test_bounds_agree(condition: str, why: str):
    assert eval(condition, dict(vars(limits))), why
