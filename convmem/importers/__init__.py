"""Histories of other programs, read: one file a format, each from bytes to records, and none of them knows a store."""
