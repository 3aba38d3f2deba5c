"""Records as files of JSON Lines: out of a store, and into one."""
