"""The doctor: looks at everything between a client and its memory, and names the one thing to change.

    findings    what can be found: names, outcomes, meanings; the page for people is written from them
    local       a data directory on this machine, and whoever holds it
    remote      a daemon behind a URL, step by step, as a client would come to it

It changes nothing: no file is made or written, no lock is taken, no port is occupied. Every step over the network has a
deadline, so that it ends wherever it is sent. It speaks HTTP over plain sockets and imports no MCP SDK.

Rejected: repairing what it finds. Whoever is asked what is wrong must not be the next thing that went wrong.
"""
