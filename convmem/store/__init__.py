"""The way down: a mailbox, a log that is the truth, and an index that is folded from it."""
