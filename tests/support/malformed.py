"""Requests that are none, each with the code of its refusal: the same for lines of stdio and bodies over HTTP."""


def call_of(arguments: bytes) -> bytes:
    """A write_message with these arguments, raw."""
    head = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"write_message","arguments":'
    return head + arguments + b"}}"


PING = b'{"jsonrpc":"2.0","id":"p","method":"ping"}'
WHOLE = b'"session_id":"s","role":"user","content":'
UNREADABLE = {
    "a lone surrogate": call_of(b'{%b"\\ud83d"}' % WHOLE),
    "a lone surrogate as a name": call_of(b'{%b"x","\\ud800":1}' % WHOLE),
    "half a pair in the middle": call_of(b'{%b"a\\udc95b"}' % WHOLE),
    "NaN": call_of(b'{%b"x","metadata":{"importance":NaN}}' % WHOLE),
    "Infinity": call_of(b'{%b"x","metadata":{"importance":Infinity}}' % WHOLE),
    "-Infinity": call_of(b'{%b"x","metadata":{"importance":-Infinity}}' % WHOLE),
    "a number too large": call_of(b'{%b"x","metadata":{"importance":1e400}}' % WHOLE),
    "5000 digits": call_of(b'{%b"x","limit":%b}' % (WHOLE, b"9" * 5000)),
    "one more than 64 bits": call_of(b'{%b"x","limit":9223372036854775808}' % WHOLE),
    "a name twice": call_of(b'{%b"x","content":"y"}' % WHOLE),
    "a name twice deep inside": call_of(b'{%b"x","metadata":{"project":"a","project":"b"}}' % WHOLE),
    "a name twice, one escaped": call_of(b'{%b"x","cont\\u0065nt":"y"}' % WHOLE),
    "too deep": call_of(b'{%b"x","metadata":%b1%b}' % (WHOLE, b'{"a":' * 300, b"}" * 300)),
    "deeper than any stack": b"[" * 100_000,
    "bad UTF-8": call_of(b'{%b"\xff"}' % WHOLE),
    "an encoded surrogate": call_of(b'{%b"\xed\xa0\xbd"}' % WHOLE),
    "a cut character": call_of(b'{%b"\xf0\x9f\x98"}' % WHOLE),
    "a raw NUL": call_of(b'{%b"\x00"}' % WHOLE),
    "NUL alone": b"\x00",
    "UTF-16": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16-le"),
    "no JSON": b"{nope",
    "two texts on a line": PING + b" " + PING,
    "a comment": PING + b" // hello",
    "single quotes": PING.replace(b'"', b"'"),
}
NO_REQUEST = {
    "a batch": b"[%b]" % PING,
    "an empty batch": b"[]",
    "a string": b'"ping"',
    "null": b"null",
    "an id of null": PING.replace(b'"p"', b"null"),
    "a fraction as id": PING.replace(b'"p"', b"1.5"),
    "true as id": PING.replace(b'"p"', b"true"),
    "a list as id": PING.replace(b'"p"', b"[1]"),
    "no version": PING.replace(b'"jsonrpc":"2.0",', b""),
    "version 1": PING.replace(b"2.0", b"1.0"),
    "no method": PING.replace(b'"method":"ping"', b'"x":1'),
    "params as a list": PING.replace(b'"ping"', b'"ping","params":[1]'),
}
MALFORMED = {name: (line, -32700) for name, line in UNREADABLE.items()}
MALFORMED |= {name: (line, -32600) for name, line in NO_REQUEST.items()}
