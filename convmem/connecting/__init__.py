"""Writing convmem into the configurations of agent programs, in which every other byte stays as it was.

clients says what each program wants to read and where it looks; documents changes one member of a text; config_files is
the disk.
"""
