"""The client for hooks, `convmem capture`: what an agent program runs at each prompt and each tool call.

    stdin -> incoming -> claude_code, events -> posting ------------------> POST /capture
                                             \\-> spool -> drain (detached) -> posting

It must not be noticed: it ends within milliseconds, with status 0 and without a word, whatever befalls it. So it
imports next to nothing, asks the daemon only if that answers at once, and leaves the rest to a file and to a process of
its own. Only what is redacted leaves the process.
"""
